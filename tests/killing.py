"""The command, run as a process of its own and ended in the middle; and what it leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def fidopt(
    words: Sequence[str],
    *,
    after_s: float | None = None,
    when: Callable[[], object] | None = None,
    by: signal.Signals = signal.SIGKILL,
) -> subprocess.CompletedProcess[str]:
    """Run the command; where it is not done after so long, or when something holds, end it and all it started."""
    called = [sys.executable, "-c", "from fidopt.cli import main; raise SystemExit(main())", *words]
    process = subprocess.Popen(
        called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        while when is not None and process.poll() is None:
            if when():
                raise subprocess.TimeoutExpired(called, 0)
            time.sleep(0.002)
        out, err = process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        # Until it is waited for, an ended process keeps its number.
        os.killpg(process.pid, by)
        out, err = process.communicate()
    return subprocess.CompletedProcess(called, process.returncode, out, err)


def files(path: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def noted(store: Path) -> int | None:
    """Return how many shards the journals of a store hold; None where it is being finished, or no journal is there."""
    if not (store / ".journal" / "header.json").is_file() or any(store.glob(".zarr.json.*.partial")):
        return None
    logs = (store / ".journal").glob("*.log")
    return sum(len(re.findall(r" [0-9a-f]{8}\n", log.read_text())) for log in logs)
