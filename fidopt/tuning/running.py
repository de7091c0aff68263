"""Runs of a method on cases, side by side as far as its threads, its memory and its GPU allow."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from fidopt import resources
from fidopt.descriptors.method import Method
from fidopt.descriptors.rows import Row
from fidopt.resources import Roots
from fidopt.results import Line
from fidopt.runner import supervisor
from fidopt.runner.case import Order
from fidopt.runner.scorers import scorer_of
from fidopt.runner.session import Session, run_and_score
from fidopt.tuning.rows import Place

#: The part of a worker's memory that runs may take together, and by how much a run may need more than those before.
USABLE, MARGIN = 0.8, 1.2
#: Set when this process was interrupted: the runs it ends have no row.
_INTERRUPTED = threading.Event()


@dataclass(frozen=True)
class Job:
    """One setting on one case.

    Parameters
    ----------
    place
        Where its row goes.
    order
        The method, with the settings as its variant.
    roots
        The folders to work in, absolute; the results' is that of tuning.
    at_once
        How many runs its worker may have at a time.
    """

    place: Place
    order: Order
    roots: Roots
    at_once: int = 1


@dataclass(frozen=True)
class Worker:
    """Where runs go on.

    Parameters
    ----------
    executor
        Takes a job.
    threads, memory_bytes
        Of the worker in all.
    """

    executor: Executor
    threads: int
    memory_bytes: int

    def room(self, method: Method, peak_mib: int | None) -> int:
        """Return how many runs of a method it has room for.

        Parameters
        ----------
        method
            Its threads count; one that runs on a GPU has it alone.
        peak_mib
            The most memory of a run so far; before the first is known they go one by one.
        """
        if method.device == "cuda" or method.threads is None or peak_mib is None:
            return 1
        held = max(1.0, peak_mib * MARGIN) * 2**20
        return max(1, min(self.threads // method.threads, int(self.memory_bytes * USABLE / held)))


@contextmanager
def workers(client: Any, *, memory_bytes: int | None) -> Iterator[list[Worker]]:  # noqa: ANN401 - distributed is not typed
    """Yield where runs may go on: each worker of a cluster, or this computer.

    Parameters
    ----------
    client
        A Dask client; None for this computer.
    memory_bytes
        The most memory that a worker's runs may take together; by default what it has.
    """
    if client is not None:
        found = []
        for address, told in client.scheduler_info(n_workers=-1)["workers"].items():
            executor = client.get_executor(workers=[address], allow_other_workers=True, retries=1)
            limit = memory_bytes or int(told.get("memory_limit") or psutil.virtual_memory().available)
            found.append(Worker(executor, int(told["nthreads"]), limit))
        yield found
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    _INTERRUPTED.clear()
    pool = ThreadPoolExecutor(cores, thread_name_prefix="tune")
    try:
        yield [Worker(pool, cores, memory_bytes or psutil.virtual_memory().available)]
    except BaseException:
        # What runs is ended, or this process would wait for it; no row is written of it.
        _INTERRUPTED.set()
        pool.shutdown(wait=False, cancel_futures=True)
        _end_runs()
        raise
    finally:
        pool.shutdown(wait=True)


def run_all(
    jobs: Iterable[Job],
    found: list[Worker],
    *,
    peak_mib: int | None = None,
    done: Callable[[Job, Row], None],
) -> None:
    """Run jobs until none is left; each row is on disk before ``done`` is told of it.

    Parameters
    ----------
    jobs
        What to run, in order.
    found
        Where.
    peak_mib
        The most memory that a run of the method was seen to take.
    """
    pending = deque(jobs)
    running: dict[Future[Row], tuple[Job, int]] = {}
    busy: Counter[int] = Counter()
    while pending or running:
        for number, worker in enumerate(found):
            room = worker.room(pending[0].order.method, peak_mib) if pending else 0
            while pending and busy[number] < room:
                job = replace(pending.popleft(), at_once=room)
                running[worker.executor.submit(run_job, job)] = (job, number)
                busy[number] += 1
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            job, number = running.pop(future)
            busy[number] -= 1
            row = future.result()
            peak_mib = max(peak_mib or 1, row.peak_ram_mib or 1)
            done(job, row)


def run_job(job: Job) -> Row:
    """Run a method on a case, score what it wrote, and keep the row; called on a worker."""
    dataset = job.place.case.dataset
    machine = job.place.folder.parent
    line = Line(machine.parent, machine.name, job.place.method, dataset.name)
    scorer = scorer_of(dataset, job.roots, say=_nothing)
    session = Session(job.order, dataset, line, job.place.files, scorer, _nothing, keeps=False)
    row = run_and_score(session, job.place.case)
    if _INTERRUPTED.is_set():
        raise KeyboardInterrupt
    job.place.write(row, host=resources.hostname(), at_once=job.at_once)
    return row


def _end_runs() -> None:
    """End the runs that this process has going: their supervisors, which take with them all that they started."""
    program = str(Path(supervisor.__file__))
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if program in child.cmdline():
                child.terminate()


def _nothing(_message: str) -> None:
    """Take what nobody is told: what went wrong stands in the row."""
