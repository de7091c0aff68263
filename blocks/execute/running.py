"""Run the work that writes shards: every shard is counted, a failed one is tried again, and then it is named."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from dask.array.optimization import optimize
from dask.callbacks import Callback
from dask.threaded import get

from blocks.execute.cluster import graph_on_cluster, stream_on_cluster
from blocks.execute.computing import thread_count
from blocks.execute.counting import ATTEMPTS, Count, Index, Progress, failure
from blocks.graphs.store import DiskFullError, ShardError
from blocks.graphs.writes import Graph, Stream
from blocks.storage import letting_go

#: Shards handed to each thread at a time: one in work, one waiting.
_AHEAD = 2


@letting_go()
def run_work(make: Callable[[], Iterator[Graph | Stream]], count: Count, client: Any) -> None:  # noqa: ANN401
    """Do all the work there is; what failed is asked for again, without what is written by then.

    Parameters
    ----------
    make
        Yields the work that is left.
    count
        Of the shards.
    client
        A Dask client, or None for this process's threads.

    Raises
    ------
    ShardError
        When a shard failed as often as it is tried, or the disk is full.
    """
    tries = Counter[object]()
    while True:
        try:
            for work in make():
                _run(work, count, client)
        except DiskFullError:
            raise
        except ShardError as error:
            tries[error.shard] += 1
            if error.tried or tries[error.shard] == ATTEMPTS:
                raise
        else:
            return


def run_shards(
    task: Callable[[Index], int],
    indices: Iterable[Index],
    *,
    total: int,
    name: str = "write-shard",
    progress: Progress | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
) -> int:
    """Call a task for each of any number of shards, of which a few are in flight at a time.

    Parameters
    ----------
    task
        Takes a shard's index and returns the bytes it wrote; pickles where a client is given.
    indices
        The shards, made as they are asked for.
    total
        How many there are.
    name
        What a task does, as a dashboard shows it.
    progress
        Called as shards are done.
    client
        A Dask client; by default threads on this machine's cores.

    Returns
    -------
    int
        How many were done.

    Raises
    ------
    ShardError
        When one failed as often as it is tried.
    """
    count = Count(total, done=0, written=None, progress=progress)
    _run(Stream(name, 0, task, indices), count, client)
    return count.done


def _run(work: Graph | Stream, count: Count, client: Any) -> None:  # noqa: ANN401
    if isinstance(work, Stream):
        if client is None:
            _stream_on_threads(work, count)
        else:
            stream_on_cluster(work, count, client)
    elif client is None or work.local:
        _graph_on_threads(work, count)
    else:
        graph_on_cluster(work, count, client)


def _graph_on_threads(work: Graph, count: Count) -> None:
    running: set[Any] = set()

    def started(key: object, *_: object) -> None:
        running.add(key)

    def finished(key: Any, value: Any, *_: object) -> None:  # noqa: ANN401 - Dask's own signature
        running.discard(key)
        if key in work.shards:
            count.add(*work.shards[key], value)

    keys = list(work.shards)
    try:
        with _threads() as pool, Callback(pretask=started, posttask=finished):
            get(optimize(work.graph, keys), keys, pool=pool)
    except Exception as error:
        raise failure([key[1:] for key in running if isinstance(key, tuple)], error) from error


def _stream_on_threads(work: Stream, count: Count) -> None:
    fresh, again = iter(work.indices), deque[Index]()
    tried: dict[Index, int] = {}
    running: dict[Future[int], Index] = {}
    wanted = _AHEAD * thread_count()
    with _threads() as pool:
        while True:
            while len(running) < wanted:
                index = again.popleft() if again else next(fresh, None)
                if index is None:
                    break
                running[pool.submit(work.task, index)] = index
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                error = future.exception()
                if error is None:
                    count.add(work.level, index, future.result())
                    continue
                tried[index] = tried.get(index, 0) + 1
                if tried[index] == ATTEMPTS or isinstance(error, DiskFullError):
                    raise failure([index], error, tried=True) from error
                again.append(index)


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Yield this process's threads; whatever happens, none of them works on when this is left."""
    pool = ThreadPoolExecutor(thread_count())
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
