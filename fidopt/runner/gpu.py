"""One GPU for one run: which one it is, and waiting until no other run has it."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def gpu_of(device: str, variables: Mapping[str, str] = os.environ) -> str | None:
    """Return the GPU behind a device's name as the driver knows it: its index or its UUID; None for a CPU.

    Parameters
    ----------
    device
        ``cpu``, or ``cuda:N``: the N-th of those that are visible.
    variables
        Where ``CUDA_VISIBLE_DEVICES`` may say which are; by default all, in the driver's order.
    """
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return None
    visible = [name.strip() for name in variables.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    index = int(number or 0)
    return visible[index] if index < len(visible) else str(index)


@contextmanager
def alone_on(gpu: str | None, *, say: Callable[[str], None], folder: Path | None = None) -> Iterator[None]:
    """Hold a GPU for one run: others of this machine, whoever starts them, wait for it.

    Parameters
    ----------
    gpu
        From :func:`gpu_of`; None holds nothing.
    say
        Told when another run has it.
    folder
        Where the locks lie, by default the folder of temporary files. They end with the process however it ends.
    """
    if gpu is None:
        yield
        return
    place = (folder or Path(tempfile.gettempdir())) / f"fidopt-gpu-{gpu.replace('/', '-')}.lock"
    # Another user may have made it: it is locked, never written.
    handle = os.open(place, os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"GPU {gpu} is another run's: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
