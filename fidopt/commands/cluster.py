"""``fidopt cluster``."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

from fidopt.commands.options import Json, Memory
from fidopt.commands.output import say, show, show_json

if TYPE_CHECKING:
    from fidopt.cluster import Running


def cluster(file: str = "local", /, *, memory: Memory = None, json: Json = False) -> int:
    """Start a Dask cluster, say where its scheduler and its dashboard are, and keep it until interrupted.

    Other commands use it with `--cluster ADDRESS`. Given the file itself, `--cluster FILE.yml`, they start such a
    cluster for as long as they run. The dashboard listens on loopback; deploy/README.md says how to see it from afar.

    Example: `fidopt cluster local`, or `fidopt cluster deploy/slurm.yml --memory 8GiB`

    Parameters
    ----------
    file
        a deploy file, or the name of one that comes along: local, ssh, slurm, kubernetes
    """
    from fidopt.cluster import deployment, run
    from fidopt.descriptors.deployment import Address

    wanted = deployment(file)
    # A batch system ends a job with SIGTERM: it then goes as by Ctrl-C, at whatever moment. A shell has what it starts
    # in the background ignore SIGINT, and `kill -INT` is to work there as well.
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with run(wanted, memory=memory, say=say) as running:
            _tell(running, kind=wanted.kind, json=json)
            if isinstance(wanted, Address):
                return 0
            threading.Event().wait()
    except KeyboardInterrupt:
        say("the cluster is ended")
        return 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _tell(running: Running, *, kind: str, json: bool) -> None:
    if json:
        show_json({"kind": kind, "scheduler": running.address, "dashboard": running.dashboard})
    else:
        show(f"scheduler: {running.address}")
        show(f"dashboard: {running.dashboard or 'none; it needs bokeh: pip install fidopt[cluster]'}")
        say(f"use it with --cluster {running.address}; Ctrl-C ends it")
    # Whoever reads this through a pipe waits for it, and this waits for an interruption.
    sys.stdout.flush()
