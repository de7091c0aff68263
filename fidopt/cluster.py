"""Where a graph runs: this process's threads, a cluster on this machine, or one that is already there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fidopt.errors import MissingError, UsageError

if TYPE_CHECKING:
    from distributed import Client

#: Loopback: a dashboard shows the data's names and the machine's processes, and is nobody else's business.
HOST = "127.0.0.1"


@contextmanager
def connect(
    address: str | None = None,
    *,
    dashboard: bool = False,
    workers: int | None = None,
    memory: str | None = None,
    say: Callable[[str], None] = lambda _message: None,
) -> Iterator[Client | None]:
    """Yield a client of the cluster that graphs are to run on, or None for this process's own threads.

    Parameters
    ----------
    address
        A Dask scheduler's address, ``tcp://HOST:PORT``.
    dashboard
        Without an address: start a cluster of worker processes on this machine and say where its dashboard is.
    workers
        Worker processes of such a cluster, of one thread each; by default one a core.
    memory
        The most memory of one of its workers, such as ``2GiB``.
    say
        Told the dashboard's address.

    Raises
    ------
    UsageError
        When the address is none or nothing answers there.
    MissingError
        When a dashboard is asked for and bokeh, which draws it, is not installed.
    """
    if address is not None:
        with _there(address) as client:
            yield client
    elif dashboard:
        with _here(workers, memory) as client:
            say(f"dashboard: {client.dashboard_link}")
            yield client
    else:
        yield None


@contextmanager
def _there(address: str) -> Iterator[Client]:
    from distributed import Client

    if "://" not in address:
        msg = f"--cluster expects a scheduler's address such as tcp://127.0.0.1:8786, got {address!r}"
        raise UsageError(msg)
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        msg = f"no Dask scheduler answers at {address}: {error}; start one and give the address it prints"
        raise UsageError(msg) from error
    with client:
        yield client


@contextmanager
def _here(workers: int | None, memory: str | None) -> Iterator[Client]:
    import logging
    import os

    from distributed import Client, LocalCluster

    try:
        import bokeh  # noqa: F401 - the dashboard is bokeh's; distributed leaves it out in silence
    except ImportError as error:
        msg = "the dashboard needs bokeh: pip install 'fidopt[cluster]'"
        raise MissingError(msg) from error
    nannies = logging.getLogger("distributed.nanny")
    level = nannies.level
    try:
        with (
            LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                host=HOST,
                dashboard_address=f"{HOST}:0",
                memory_limit=memory or "auto",
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
            # The work is done: a worker that is slow to go, on a busy machine, is nothing to warn of.
            nannies.setLevel(logging.ERROR)
    finally:
        nannies.setLevel(level)
