"""The lazy tasks that write an image's store: one task a shard, never less.

A block smaller than a shard would make two tasks read and write the same file, and leave it corrupt in silence; here
the unit of work is the shard itself. A task carries the paths of the arrays and the shard's index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import xarray as xr
from dask.highlevelgraph import HighLevelGraph

from blocks.graphs.pyramid import as_shards
from blocks.image.source import Source, stored_source
from blocks.image.view import Kind
from blocks.kernels.downsample import downsample_into
from blocks.region import Region
from blocks.storage import StoredArray, StoreError, Voxels, write_shard

#: Most shards of one graph; a larger image is written wave by wave, so that no graph grows with the image.
WAVE = 10_000

Index = tuple[int, ...]
#: A Dask key: the layer's name and the shard's index.
Key = tuple[str | int, ...]


class ShardError(StoreError):
    """A shard that could not be written; the message names it."""


@dataclass(frozen=True)
class Writes:
    """Lazy tasks that write shards; each gives the number of bytes its shard takes on disk.

    Parameters
    ----------
    graph
        The tasks, and what they need.
    keys
        One a shard.
    local
        Whether the tasks hold voxels of this process's memory, which are better written from here than sent away.
    """

    graph: Any
    keys: tuple[Key, ...]
    local: bool = False


def writes(image: xr.DataArray, arrays: Sequence[StoredArray], *, kind: Kind, wave: int = WAVE) -> Iterator[Writes]:
    """Yield the graphs that write an image and its levels into empty arrays; run each before asking for the next.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x.
    arrays
        The store's arrays, the finest level first.
    kind
        How a coarser level comes from the one before it.
    wave
        Most shards of one graph. A lazy image of fewer, all levels together, is one graph, in which a coarser shard
        waits only for the finer ones it is made of.
    """
    in_memory = isinstance(image.data, np.ndarray)
    if not in_memory and sum(len(array.layout.indices()) for array in arrays) <= wave:
        layers = [_image_layer(image, arrays[0], arrays[0].layout.indices())]
        for finer, array in pairwise(arrays):
            layers.append(_coarse_layer(finer, array, array.layout.indices(), kind=kind, after=layers[-1].name))
        yield _together(layers)
        return
    for indices in _batches(arrays[0].layout.indices(), wave):
        yield replace(_together([_image_layer(image, arrays[0], indices)]), local=in_memory)
    yield from level_writes(arrays, kind=kind, wave=wave)


def level_writes(arrays: Sequence[StoredArray], *, kind: Kind, wave: int = WAVE) -> Iterator[Writes]:
    """Yield the graphs that write the coarser levels of a store whose finest level is there, level by level."""
    for finer, array in pairwise(arrays):
        for indices in _batches(array.layout.indices(), wave):
            yield _together([_coarse_layer(finer, array, indices, kind=kind, after=None)])


def store_shard(array: StoredArray, index: Index, voxels: Voxels) -> int:
    """Write a shard's voxels and return the bytes they take on disk."""
    with _named(array, index):
        return write_shard(array, index, np.ascontiguousarray(voxels, dtype=array.dtype))


def copy_shard(source: Source, array: StoredArray, index: Index) -> int:
    """Write a shard from the same region of another store and return the bytes it takes on disk."""
    with _named(array, index):
        region = array.layout.region(index)
        spatial = len(source.shape)
        return write_shard(array, index, source.read(Region(region.start[-spatial:], region.stop[-spatial:])))


def downsample_shard(finer: StoredArray, array: StoredArray, index: Index, kind: Kind, _after: object = None) -> int:
    """Write a shard of a level from the finer level, of which a chunk at a time is in memory.

    Parameters
    ----------
    finer, array
        The finer level, which is written, and the one to write.
    index
        Index of the shard, an axis each.
    kind
        Mean or most frequent label.

    Returns
    -------
    int
        Bytes the shard takes on disk.
    """
    with _named(array, index):
        region = array.layout.region(index)
        spatial = region.ndim - array.layout.names.count("c")
        out = np.empty(region.shape, dtype=array.dtype)
        factors = _factors(finer, array)
        for box, voxels in _even_pieces(finer, array, index):
            start = tuple(a // f - b for a, f, b in zip(box.start, factors, region.start, strict=True))
            downsample_into(out, start[-spatial:], voxels, kind=kind)
        return write_shard(array, index, out)


def finer_shards(finer: StoredArray, array: StoredArray, index: Index) -> list[Index]:
    """Return the shards of the finer level that a shard is made of, in index order."""
    blocks = finer.layout.blocks
    boxes = _finer_region(finer, array, index).split(blocks)
    return [tuple(a // n for a, n in zip(box.start, blocks, strict=True)) for box in boxes]


def _even_pieces(finer: StoredArray, array: StoredArray, index: Index) -> Iterator[tuple[Region, Voxels]]:
    """Yield what a shard is made of in parts that start on a whole coarse voxel: chunks, where their sides are even."""
    box, factors = _finer_region(finer, array, index), _factors(finer, array)
    if all(n % f == 0 for n, f in zip(finer.layout.chunks, factors, strict=True)):
        yield from finer.pieces(box)
        return
    for part in box.split(array.layout.blocks):
        yield part, finer[part.slices]


def _finer_region(finer: StoredArray, array: StoredArray, index: Index) -> Region:
    region, factors = array.layout.region(index), _factors(finer, array)
    start = tuple(a * f for a, f in zip(region.start, factors, strict=True))
    return Region(start, tuple(b * f for b, f in zip(region.stop, factors, strict=True))).clip(finer.shape)


def _factors(finer: StoredArray, array: StoredArray) -> tuple[int, ...]:
    """Return 2 for the axes that were halved, 1 for channels and for an axis of one voxel."""
    return tuple(1 if n == m else 2 for n, m in zip(finer.shape, array.shape, strict=True))


@dataclass(frozen=True)
class _Layer:
    """The tasks of one level, and the graph and the layers they need."""

    name: str
    tasks: dict[Key, Any]
    needed: tuple[str, ...]
    graph: Any = None


def _image_layer(image: xr.DataArray, array: StoredArray, indices: Sequence[Index]) -> _Layer:
    name = _unique("write-shard")
    source = None if isinstance(image.data, np.ndarray) else stored_source(image)
    if source is not None and source.dtype == array.dtype:
        return _Layer(name, {(name, *i): (partial(copy_shard, source, array, i),) for i in indices}, ())
    data = as_shards(image)
    tasks: dict[Key, Any] = {(name, *i): (partial(store_shard, array, i), (data.name, *i)) for i in indices}
    return _Layer(name, tasks, tuple(data.__dask_layers__()), data.__dask_graph__())


def _coarse_layer(
    finer: StoredArray, array: StoredArray, indices: Sequence[Index], *, kind: Kind, after: str | None
) -> _Layer:
    name = _unique("downsample-shard")
    if after is None:
        return _Layer(name, {(name, *i): (partial(downsample_shard, finer, array, i, kind),) for i in indices}, ())
    tasks: dict[Key, Any] = {}
    for i in indices:
        tasks[(name, *i)] = (
            partial(downsample_shard, finer, array, i, kind),
            [(after, *j) for j in finer_shards(finer, array, i)],
        )
    return _Layer(name, tasks, (after,))


def _together(layers: Sequence[_Layer]) -> Writes:
    """Return the layers as one graph."""
    graphs: dict[str, Any] = {layer.name: layer.tasks for layer in layers}
    dependencies = {layer.name: set(layer.needed) for layer in layers}
    for layer in layers:
        if layer.graph is not None:
            graphs |= layer.graph.layers
            dependencies |= layer.graph.dependencies
    return Writes(HighLevelGraph(graphs, dependencies), tuple(key for layer in layers for key in layer.tasks))


def _unique(what: str) -> str:
    """Return a layer's name no other has: a task that writes must run again when it is asked for again."""
    return f"{what}-{uuid4().hex}"


def _batches(indices: Sequence[Index], most: int) -> Iterator[Sequence[Index]]:
    for first in range(0, len(indices), most):
        yield indices[first : first + most]


@contextmanager
def _named(array: StoredArray, index: Index) -> Iterator[None]:
    """Say which shard failed, whatever the failure."""
    try:
        yield
    except Exception as error:
        msg = f"shard {'/'.join(str(i) for i in index)} of {array.path} could not be written: {error}"
        raise ShardError(msg) from error
