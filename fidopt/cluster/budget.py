"""What a worker's memory allows: how many threads it gets, and what one of its tasks may hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fidopt.descriptors.deployment import LEAST_MEMORY, Started, size_bytes
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client

#: A process with the engine loaded and its kernels compiled, measured: 250 MiB, 330 where it compiled them itself.
BASE = 350 << 20
#: Dask pauses a worker beyond this part of its limit, and ends it at 95 %.
USABLE = 0.8
#: The least a task is given: a shard of 16 million voxels of 16 bits, what it is read from, and its compressed chunks.
_LEAST_TASK = 128 << 20
#: How long a first worker is waited for before that is said.
_WORKERS_WITHIN = 10.0
#: Most characters of what was given that an error repeats.
_SHOWN = 40


@dataclass(frozen=True)
class Plan:
    """The workers of a cluster.

    Parameters
    ----------
    workers
        How many there are, a host of an SSH cluster.
    threads
        Threads of each.
    memory
        Bytes at which each is ended.
    """

    workers: int
    threads: int
    memory: int


def plan(started: Started) -> Plan:
    """Return what a deploy file asks for, and this machine's share where it leaves it open."""
    from dask.system import CPU_COUNT
    from distributed.system import MEMORY_LIMIT

    workers = started.workers or max(1, min(int(CPU_COUNT), int(MEMORY_LIMIT) // LEAST_MEMORY))
    cores = started.cores or max(1, int(CPU_COUNT) // workers)
    memory = _size(started.memory) or int(MEMORY_LIMIT) // workers
    task = _size(started.task) or _LEAST_TASK
    return Plan(workers, max(1, min(cores, _share(memory, 1) // task)), memory)


def checked_memory(text: str) -> int:
    """Return the bytes of ``--memory``.

    Raises
    ------
    UsageError
        When it is no size, or less than a worker needs.
    """
    found = size_bytes(text)
    if found is None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        msg = f"--memory expects a size such as 2GiB or 500MB, got {shown!r}"
        raise UsageError(msg)
    if found < LEAST_MEMORY:
        msg = f"--memory expects at least {LEAST_MEMORY >> 20}MiB, for a worker itself and one task, got {text!r}"
        raise UsageError(msg)
    return found


def task_bytes(client: Client | None, memory: str | None = None, *, say: Callable[[str], None] | None = None) -> int:
    """Return what one task may hold, wherever it runs.

    Parameters
    ----------
    client
        Whose workers are asked; None for this process's threads.
    memory
        The most memory of a worker, such as ``2GiB``; by default what the workers have, or this machine.
    say
        Told that there is no worker yet, where that takes a while.

    Raises
    ------
    UsageError
        When that is too little for a task on every thread; the message says how much is needed.
    """
    from blocks.graphs.warp import MEMORY_BYTES

    if client is None:
        return min(MEMORY_BYTES, _here(memory))
    budget = None if memory is None else checked_memory(memory)
    return min(MEMORY_BYTES, *(_of_worker(name, worker, budget) for name, worker in _workers(client, say).items()))


def _workers(client: Client, say: Callable[[str], None] | None) -> dict[str, Any]:
    """Return the workers of a cluster, of which one at least is waited for."""
    try:
        client.wait_for_workers(1, timeout=_WORKERS_WITHIN)
    except TimeoutError:
        if say is not None:
            say("the cluster has no worker yet; work begins with the first that comes, Ctrl-C ends the waiting")
        client.wait_for_workers(1)
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def _of_worker(name: str, worker: dict[str, Any], budget: int | None) -> int:
    limit, threads = int(worker["memory_limit"] or 0), int(worker["nthreads"])
    memory = min(n for n in (limit or None, budget or None, 1 << 50) if n is not None)
    share = _share(memory, threads)
    if share < _LEAST_TASK:
        needed = int((BASE + threads * _LEAST_TASK) / USABLE) >> 20
        msg = (
            f"the worker at {name} has {threads} threads and may use {memory >> 20}MiB, but needs {needed}MiB; "
            "give it fewer threads or more memory"
        )
        raise UsageError(msg)
    return share


def threads_here(memory: str | None) -> int:
    """Return how many of this process's threads compute: one a core, fewer where the memory has no room for them."""
    from dask.system import CPU_COUNT

    cores = int(CPU_COUNT)
    return cores if memory is None else max(1, min(cores, (checked_memory(memory) - BASE) // _LEAST_TASK))


def _here(memory: str | None) -> int:
    """Return a thread's share of this process's memory."""
    from distributed.system import MEMORY_LIMIT

    threads = threads_here(memory)
    if memory is None:
        return max(_LEAST_TASK, _share(int(MEMORY_LIMIT), threads))
    return (checked_memory(memory) - BASE) // threads


def _share(memory: int, threads: int) -> int:
    """Return what is left to each thread of a worker."""
    return max(0, int(memory * USABLE) - BASE) // threads


def _size(text: str | None) -> int | None:
    return None if text is None else size_bytes(text)
