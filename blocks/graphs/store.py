"""The tasks that write a store's shards: one task a shard, never less.

A block smaller than a shard would make two tasks read and write the same file, and leave it corrupt in silence; here
the unit of work is the shard itself. A task carries the paths of the arrays and the shard's index; what it wrote, it
notes in the journal.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from blocks.graphs.warp_job import FieldJob, WarpJob
from blocks.image.source import Source
from blocks.image.view import Kind
from blocks.journal import Journal
from blocks.kernels.downsample import downsample_into
from blocks.region import Region
from blocks.storage import StoredArray, StoreError, Voxels, write_shard
from blocks.storage.scratch import SHARDS

Index = tuple[int, ...]

#: What the system says where there is no room left.
_FULL = (errno.ENOSPC, errno.EDQUOT)


class ShardError(StoreError):
    """A shard that could not be written; the message names it."""

    #: Whether it was tried as often as a shard is.
    tried = False
    #: The array's path and the shard's index, where one shard failed.
    shard: tuple[str, Index] | None = None


class DiskFullError(ShardError):
    """A shard for which there is no room: nothing is gained by trying it again."""


def store_shard(array: StoredArray, journal: Journal | None, index: Index, voxels: Voxels) -> int:
    """Write a shard's voxels and return the bytes they take on disk."""
    with _named(array, index):
        # As they lie, colours last or not: whatever writes them copies them together a chunk at a time.
        return _write(array, journal, index, np.asarray(voxels, dtype=array.dtype))


def copy_shard(source: Source, array: StoredArray, journal: Journal | None, index: Index) -> int:
    """Write a shard from the same region of another store and return the bytes it takes on disk."""
    with _named(array, index), _memory(array, index) as into:
        return _write(array, journal, index, source.read(_spatial(array, index, len(source.shape)), into=into))


def warp_shard(job: WarpJob | FieldJob, array: StoredArray, journal: Journal | None, index: Index) -> int:
    """Compute a shard of a warp or a field, write it, and return the bytes it takes on disk."""
    with _named(array, index), _memory(array, index) as into:
        return _write(array, journal, index, job.shard(_spatial(array, index, job.fixed.ndim), into=into))


def downsample_shard(
    finer: StoredArray, array: StoredArray, kind: Kind, journal: Journal | None, index: Index, _after: object = None
) -> int:
    """Write a shard of a level from the finer level, of which a chunk at a time is in memory.

    Parameters
    ----------
    finer, array
        The finer level, which is written, and the one to write.
    kind
        Mean or most frequent label.
    journal
        Where it is noted; None where nobody takes the store up.
    index
        Index of the shard, an axis each.

    Returns
    -------
    int
        Bytes the shard takes on disk.
    """
    with _named(array, index), _memory(array, index) as out:
        region = array.layout.region(index)
        spatial = region.ndim - array.layout.names.count("c")
        factors = _factors(finer, array)
        for box, voxels in _even_pieces(finer, array, index):
            start = tuple(a // f - b for a, f, b in zip(box.start, factors, region.start, strict=True))
            downsample_into(out, start[-spatial:], voxels, kind=kind)
        return _write(array, journal, index, out)


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


def _write(array: StoredArray, journal: Journal | None, index: Index, voxels: Voxels) -> int:
    length = write_shard(array, index, voxels)
    if journal is not None:
        journal.record(array, index)
    return length


@contextmanager
def _memory(array: StoredArray, index: Index) -> Iterator[Voxels]:
    """Lend the memory of a shard's voxels; they hold anything."""
    shape = array.layout.region(index).shape
    size = math.prod(shape) * array.dtype.itemsize
    with SHARDS.lent(size, most=size) as memory:
        yield memory.view(array.dtype).reshape(shape)


def _spatial(array: StoredArray, index: Index, ndim: int) -> Region:
    """Return the voxels of a shard without the axis of channels, which it has whole."""
    region = array.layout.region(index)
    return Region(region.start[-ndim:], region.stop[-ndim:])


@contextmanager
def _named(array: StoredArray, index: Index) -> Iterator[None]:
    """Say which shard failed, whatever the failure."""
    try:
        yield
    except Exception as error:
        where = f"shard {'/'.join(str(i) for i in index)} of {array.path}"
        if isinstance(error, OSError) and error.errno in _FULL:
            msg = f"{where}: the disk is full; make room and run this again, which takes up where it stopped"
            raise DiskFullError(msg) from error
        failed = ShardError(f"{where} could not be written: {error}")
        failed.shard = (array.path, index)
        raise failed from error
