"""Work on a Dask cluster: a graph as it is, or a stream of shards of which a few a thread are in flight."""

from __future__ import annotations

import logging
import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any
from uuid import uuid4

import dask
from dask.array.optimization import optimize

from blocks.execute.counting import ATTEMPTS, Count, Index, failure
from blocks.graphs.store import DiskFullError, ShardError
from blocks.graphs.writes import Graph, Stream

#: Tasks in flight for each thread of the cluster.
_AHEAD = 3
#: How often the cluster is asked how many threads it has.
_ASKED_S = 2.0
#: Shards that take less than this are sent several at a time, for about as long; and most of one task.
_SHORT_S, _MOST = 0.05, 64
#: How often workers are asked whether they are done with what was cancelled.
_STOPPED_S = 0.05
#: A task of more bytes is sent to the workers once, not with each shard.
_SENT_ONCE = 1 << 16
#: States of a worker's task that runs no more.
_OVER = ("memory", "error", "released", "forgotten")
#: A field in memory travels with its graph, whatever its size: who reads the warning could do nothing about it.
_UNWARNED = {"distributed.admin.large-graph-warning-threshold": "1PiB"}
_TOPIC = "blocks-workers"

_log = logging.getLogger(__name__)


def graph_on_cluster(work: Graph, count: Count, client: Any) -> None:  # noqa: ANN401 - distributed is not typed
    """Run a graph on a cluster."""
    from distributed import as_completed

    keys = list(work.shards)
    with _connected(client), _naming_deaths(client):
        with dask.config.set(_UNWARNED):
            futures = client.get(optimize(work.graph, keys), keys, sync=False, retries=ATTEMPTS - 1)
        try:
            for future in as_completed(futures, loop=client.loop):
                level, index = work.shards[future.key]
                count.add(level, index, _result(future, [index]))
        finally:
            _stop([future for future in futures if not future.done()], client)


def stream_on_cluster(work: Stream, count: Count, client: Any) -> None:  # noqa: ANN401 - distributed is not typed
    """Write a stream of shards on a cluster, a few tasks a thread at a time, so that nothing grows with the image."""
    with _connected(client):
        _stream(work, count, client)


def _stream(work: Stream, count: Count, client: Any) -> None:  # noqa: ANN401
    from distributed import as_completed

    task, indices, size = _sent(work.task, client), iter(work.indices), 1
    running: dict[Any, Sequence[Index]] = {}
    finished = as_completed(loop=client.loop)

    def send() -> bool:
        batch = list(islice(indices, size))
        if not batch:
            return False
        # The name says in a dashboard what is done; the rest makes it this call's own.
        future = client.submit(
            write_batch,
            work.task if task is None else task,
            batch,
            key=f"{work.name}-{uuid4().hex}",
            pure=False,
            retries=ATTEMPTS - 1,
        )
        running[future] = batch
        finished.add(future)
        return True

    room = _Room(client)

    def fill() -> None:
        while len(running) < room() and send():
            pass

    with _naming_deaths(client):
        try:
            fill()
            for future in finished:
                batch = running.pop(future)
                lengths, seconds = _result(future, batch)
                for index, length in zip(batch, lengths, strict=True):
                    count.add(work.level, index, length)
                each = seconds / len(batch)
                size = 1 if each > _SHORT_S else min(_MOST, max(1, int(4 * _SHORT_S / max(each, 1e-6))))
                fill()
        finally:
            _stop(list(running), client)


def _stop(futures: Sequence[Any], client: Any) -> None:  # noqa: ANN401
    """Cancel tasks, and wait for what workers have in hand of them: it would write on beside who takes the store up."""
    if not futures:
        return
    keys = frozenset(future.key for future in futures)
    client.cancel(futures)
    # Whatever error brought us here is told, not that the workers could not be asked.
    with suppress(OSError, CancelledError, RuntimeError):
        while client.status == "running":
            time.sleep(_STOPPED_S)
            if not any(client.run(_has_in_hand, keys, on_error="ignore").values()):
                return


def _has_in_hand(keys: frozenset[Any], dask_worker: Any) -> bool:  # noqa: ANN401
    """Return whether a worker has yet to finish, or to let go of, one of these tasks."""
    tasks = (dask_worker.state.tasks.get(key) for key in keys)
    return any(task is not None and task.state not in _OVER for task in tasks)


class _Room:
    """How many tasks are wanted in flight; workers come and go, so that it is asked for again now and then."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401
        self._client, self._wanted, self._asked = client, 1, -math.inf

    def __call__(self) -> int:
        """Return the number of tasks."""
        if time.monotonic() - self._asked > _ASKED_S:
            self._wanted = _AHEAD * max(1, sum(self._client.nthreads().values()))
            self._asked = time.monotonic()
        return self._wanted


def write_batch(task: Callable[[Index], int], batch: Sequence[Index]) -> tuple[list[int], float]:
    """Write shards one after the other; return the bytes of each, and how long it took."""
    start = time.perf_counter()
    return [task(index) for index in batch], time.perf_counter() - start


def _sent(task: Callable[[Index], int], client: Any) -> Any:  # noqa: ANN401
    """Return a task that goes to each worker once; None where it is small enough to travel with each shard.

    It is the result of a task, and not scattered: that would be lost, and all the work with it, with the last worker
    that has it.
    """
    if len(pickle.dumps(task, protocol=5)) <= _SENT_ONCE:
        return None
    with dask.config.set(_UNWARNED):
        return client.submit(_itself, task, key=f"what-shards-share-{uuid4().hex}", pure=False)


def _itself(task: Callable[[Index], int]) -> Callable[[Index], int]:
    return task


def _result(future: Any, batch: Sequence[Index]) -> Any:  # noqa: ANN401
    """Return what a task gave, or an error that names its shards."""
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        names = " or ".join("/".join(map(str, index)) for index in batch)
        msg = f"shard {names}: the workers that ran it died one after the other, {error.last_worker.address} the last"
        msg = f"{msg}, most likely for want of memory; give workers more of it or fewer threads, and run this again"
        gone = ShardError(msg)
        gone.tried = True
        raise gone from error
    except (DiskFullError, CancelledError):
        raise
    except Exception as error:
        raise failure(batch, error, tried=True) from error


@contextmanager
def _connected(client: Any) -> Iterator[None]:  # noqa: ANN401 - distributed is not typed
    """Say of a scheduler that went away that it is gone, which is no fault of the shards that were in work."""
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    try:
        yield
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        if client.status == "running":
            msg = f"the work was cancelled on the cluster ({error}); run the same command again"
        else:
            msg = "the Dask scheduler is gone, or cannot be reached any more; start it again and run the same command"
        gone = ShardError(f"{msg}: what is written is taken up")
        gone.tried = True
        raise gone from error


@contextmanager
def _naming_deaths(client: Any) -> Iterator[None]:  # noqa: ANN401
    """Say which worker died meanwhile; the scheduler gives what it had in work to the others."""

    def died(event: Any) -> None:  # noqa: ANN401 - a time and what the plugin says
        what = event[1]
        then = "is computed again" if what["left"] else "waits for a worker, of which none is left"
        _log.warning("worker %s died; what it had in work %s", what["worker"], then)

    try:
        client.register_plugin(_deaths())
        client.subscribe_topic(_TOPIC, died)
    except (AttributeError, NotImplementedError, ValueError):
        # A client of another kind of scheduler, which tells of no deaths.
        yield
        return
    try:
        yield
    finally:
        client.unsubscribe_topic(_TOPIC)


def _deaths() -> Any:  # noqa: ANN401 - distributed is not typed
    from distributed import SchedulerPlugin

    class Deaths(SchedulerPlugin):  # type: ignore[misc]
        """Tells of every worker that leaves."""

        name, idempotent = _TOPIC, True

        def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:  # noqa: ANN401
            scheduler.log_event(_TOPIC, {"worker": worker, "left": len(scheduler.workers)})

    return Deaths()
