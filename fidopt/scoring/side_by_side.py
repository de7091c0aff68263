"""Cases of one dataset scored side by side: as many processes as there are cores, and as the memory holds."""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

import dask
import psutil
from dask.system import CPU_COUNT

from blocks.image import grid_of, open_image
from fidopt.corpus import Case
from fidopt.errors import FidoptError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: A process with KonfAI, torch and the kernels loaded, and what scoring holds beyond it a voxel, with room to spare:
#: measured are 620 MiB, and 58 bytes for a registration of 192^3 with 36 labels.
BASE, A_VOXEL = 700 << 20, 128
#: Part of the memory that is there which is used where nobody says how much.
USABLE = 0.8
#: Seconds that a process takes to start and to load torch, KonfAI and the kernels: 3.0 to 3.8 were measured.
STARTING_S = 4.0


def processes_for(cases: Sequence[Case], *, memory_bytes: int | None = None) -> int:
    """Return how many cases are scored at a time.

    Parameters
    ----------
    cases
        Built cases.
    memory_bytes
        What all of them may use together; by default most of what is free.
    """
    voxels = max((_voxels(case) for case in cases), default=0)
    room = memory_bytes if memory_bytes is not None else int(psutil.virtual_memory().available * USABLE)
    return max(1, min(len(cases), int(CPU_COUNT), room // (BASE + A_VOXEL * voxels)))


def side_by_side(
    task: Callable[[Item], Result], items: Sequence[Item], *, processes: int
) -> Iterator[tuple[int, Result]]:
    """Yield each item's place and what a task makes of it, as they are done.

    The first is done here, and tells how long one takes; others are started for the rest where that is the sooner.

    Parameters
    ----------
    task
        Can be pickled, as its items and what it returns.
    items
        What it is done to.
    processes
        How many at a time.

    Raises
    ------
    FidoptError
        When a process was ended from outside; whatever a task raises comes as it is. No process is left.
    """
    begun = time.monotonic()
    for k, item in enumerate(items):
        yield k, task(item)
        left = len(items) - k - 1
        if _pays(time.monotonic() - begun, done=k + 1, left=left, processes=processes):
            yield from _in_processes(task, items, k + 1, min(processes, left))
            return


def _pays(seconds: float, *, done: int, left: int, processes: int) -> bool:
    """Whether the rest is done sooner in processes that have to be started first."""
    alone = seconds / done * left
    rounds = math.ceil(left / max(1, min(processes, left)))
    return left > 1 and processes > 1 and STARTING_S + seconds / done * rounds < alone


def _in_processes(
    task: Callable[[Item], Result], items: Sequence[Item], first: int, processes: int
) -> Iterator[tuple[int, Result]]:
    before = set(multiprocessing.active_children())
    threads = max(1, int(CPU_COUNT) // processes)
    # A fork would take the threads' locks along, and torch's.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _prepare, (threads,))
    done = False
    try:
        todo = {pool.submit(task, item): first + k for k, item in enumerate(items[first:])}
        for future in as_completed(todo):
            yield todo[future], future.result()
        done = True
    except BrokenProcessPool as error:
        msg = (
            "a process that scored a case was ended from outside, for its memory perhaps; what was scored is kept: "
            "run this again for the rest, with less --memory for fewer cases at a time"
        )
        raise FidoptError(msg) from error
    finally:
        # One that has done its work ends by itself, and gives back its semaphores, of which Python would warn.
        for process in set() if done else set(multiprocessing.active_children()) - before:
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _prepare(threads: int) -> None:
    """Make a process one of several: an interrupt is its parent's affair, and it ends when that does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
    dask.config.set(num_workers=threads)


def _voxels(case: Case) -> int:
    """Return the voxels of the largest store of a case that scoring holds whole."""
    stores = [*case.folder.glob("*.ome.zarr"), *case.folder.glob("truth/*.ome.zarr")]
    return 0 if case.dataset.large else max((math.prod(grid_of(open_image(p)).shape) for p in stores), default=0)
