"""How an image's store is written: as one lazy graph where it is small, else shard after shard without any graph.

A graph shows what is computed, and lets a coarser shard start as soon as the finer ones it is made of are there; but it
grows with the image. What has more shards than a graph should hold is written level by level: as a stream of shard
indices where one function makes any shard of them, which is so for a warp, a field, a stored image and every coarser
level, and wave by wave where an image is the result of other Dask tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np
import xarray as xr
from dask._task_spec import DataNode, Task, TaskRef
from dask.highlevelgraph import HighLevelGraph

from blocks.graphs.pyramid import as_shards
from blocks.graphs.shard_layer import job_of
from blocks.graphs.store import copy_shard, downsample_shard, finer_shards, store_shard, warp_shard
from blocks.image.source import stored_source
from blocks.image.view import Kind
from blocks.journal import Journal, Written
from blocks.plan import in_morton_order
from blocks.storage import StoredArray

#: Most shards of one graph.
WAVE = 4096

Index = tuple[int, ...]
#: A Dask key: the layer's name and the shard's index.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Graph:
    """Lazy tasks that write shards; each gives the number of bytes its shard takes on disk.

    Parameters
    ----------
    graph
        The tasks, and what they need.
    shards
        Key of a task -> the level and the index of the shard it writes.
    local
        Whether the tasks hold voxels of this process's memory, which are better written from here than sent away.
    """

    graph: Any
    shards: dict[Key, tuple[int, Index]]
    local: bool = False


@dataclass(frozen=True)
class Stream:
    """Shards of one level that one function writes, in an order in which neighbours follow one another.

    Parameters
    ----------
    name
        What a task does, as it is seen in a dashboard.
    level
        The level.
    task
        Writes a shard from its index alone; can be pickled.
    indices
        The shards.
    """

    name: str
    level: int
    task: Callable[[Index], int]
    indices: Iterable[Index]


@dataclass(frozen=True)
class Target:
    """The arrays that are written.

    Parameters
    ----------
    arrays
        The store's, the finest level first.
    kind
        How a coarser level comes from the one before it.
    written
        The shards that are there already.
    journal
        Where tasks note what they wrote; None where nobody takes the store up.
    """

    arrays: Sequence[StoredArray]
    kind: Kind
    written: Written
    journal: Journal | None = None

    def left(self, level: int) -> Iterator[Index]:
        """Yield the shards of a level that are not written, in Morton order."""
        return (i for i in in_morton_order(self.arrays[level].layout.blocks_along) if (level, i) not in self.written)


def writes(image: xr.DataArray, target: Target, *, wave: int = WAVE) -> Iterator[Graph | Stream]:
    """Yield the work that writes an image and its levels; do each before asking for the next.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x.
    target
        Where it is written.
    wave
        Most shards of one graph. A lazy image of fewer, all levels together, is one graph, in which a coarser shard
        waits only for the finer ones it is made of.
    """
    in_memory = isinstance(image.data, np.ndarray)
    if not in_memory and target.written.total - target.written.count <= wave:
        yield _one_graph(image, target)
        return
    task = _task_of(image, target)
    if task is not None:
        yield Stream(_called(task), 0, task, target.left(0))
    else:
        for indices in _batches(target.left(0), wave):
            yield replace(_together([_image_layer(image, target, indices)]), local=in_memory)
    yield from level_writes(target, first=1, wave=wave)


def level_writes(target: Target, *, first: int = 1, wave: int = WAVE) -> Iterator[Graph | Stream]:
    """Yield the work that writes the levels from ``first`` on, of which the one before is there, level by level."""
    for level in range(first, len(target.arrays)):
        if target.written.left(level) <= wave:
            indices = list(target.left(level))
            if indices:
                yield _together([_coarse_layer(target, level, indices, after=None)])
        else:
            yield Stream("downsample-shard", level, _coarse_task(target, level), target.left(level))


def _one_graph(image: xr.DataArray, target: Target) -> Graph:
    layers = [_image_layer(image, target, list(target.left(0)))]
    for level in range(1, len(target.arrays)):
        layers.append(_coarse_layer(target, level, list(target.left(level)), after=layers[-1]))
    return _together(layers)


@dataclass(frozen=True)
class _Layer:
    """The tasks of one level, the shards they write, and the graph and the layers they need."""

    name: str
    tasks: dict[Key, Any]
    shards: dict[Key, tuple[int, Index]]
    needed: tuple[str, ...]
    graph: Any = None


def _task_of(image: xr.DataArray, target: Target) -> partial[int] | None:
    """Return what writes any shard of an image from its index alone; None where there is no such function."""
    array = target.arrays[0]
    if isinstance(image.data, np.ndarray):
        return None
    source = stored_source(image)
    if source is not None and source.dtype == array.dtype:
        return partial(copy_shard, source, array, target.journal)
    job = job_of(image)
    if job is not None and job.dtype == array.dtype:
        return partial(warp_shard, job, array, target.journal)
    return None


def _called(task: partial[int]) -> str:
    """Return what a task does, as a dashboard shows it."""
    return task.func.__name__.replace("_", "-")


def _call(task: Callable[[Index], int], index: Index) -> int:
    """Write a shard: what a task of a graph calls."""
    return task(index)


def _coarse_task(target: Target, level: int) -> partial[int]:
    finer, array = target.arrays[level - 1], target.arrays[level]
    return partial(downsample_shard, finer, array, target.kind, target.journal)


def _image_layer(image: xr.DataArray, target: Target, indices: Sequence[Index]) -> _Layer:
    task = _task_of(image, target)
    name, array = _unique("write-shard" if task is None else _called(task)), target.arrays[0]
    shards = {(name, *i): (0, i) for i in indices}
    if task is not None:
        # What all of them have in common, a transform's coefficients among it, is in the graph once.
        common = _unique("job")
        tasks: dict[Key, Any] = {key: Task(key, _call, TaskRef(common), i) for key, (_, i) in shards.items()}
        return _Layer(
            name, tasks, shards, (common,), HighLevelGraph({common: {common: DataNode(common, task)}}, {common: set()})
        )
    data = as_shards(image)
    store = partial(store_shard, array, target.journal)
    tasks = {key: (store, i, (data.name, *i)) for key, (_, i) in shards.items()}
    return _Layer(name, tasks, shards, tuple(data.__dask_layers__()), data.__dask_graph__())


def _coarse_layer(target: Target, level: int, indices: Sequence[Index], *, after: _Layer | None) -> _Layer:
    """Return the tasks of a coarser level; each waits for those of ``after`` that write what it reads."""
    name, task = _unique("downsample-shard"), _coarse_task(target, level)
    shards = {(name, *i): (level, i) for i in indices}
    if after is None:
        return _Layer(name, {key: (task, i) for key, (_, i) in shards.items()}, shards, ())
    tasks: dict[Key, Any] = {}
    for key, (_, i) in shards.items():
        finer = [(after.name, *j) for j in finer_shards(target.arrays[level - 1], target.arrays[level], i)]
        tasks[key] = (task, i, [k for k in finer if k in after.shards])
    return _Layer(name, tasks, shards, (after.name,))


def _together(layers: Sequence[_Layer]) -> Graph:
    """Return the layers as one graph."""
    graphs: dict[str, Any] = {layer.name: layer.tasks for layer in layers}
    dependencies = {layer.name: set(layer.needed) for layer in layers}
    shards: dict[Key, tuple[int, Index]] = {}
    for layer in layers:
        shards |= layer.shards
        if layer.graph is not None:
            graphs |= layer.graph.layers
            dependencies |= layer.graph.dependencies
    return Graph(HighLevelGraph(graphs, dependencies), shards)


def _unique(what: str) -> str:
    """Return a layer's name no other has: a task that writes must run again when it is asked for again."""
    return f"{what}-{uuid4().hex}"


def _batches(indices: Iterator[Index], most: int) -> Iterator[Sequence[Index]]:
    while batch := list(islice(indices, most)):
        yield batch
