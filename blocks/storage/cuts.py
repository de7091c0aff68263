"""What is read of each chunk and shard for a box: arithmetic on the layout, an axis at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blocks.region import Region
from blocks.storage.layout import Layout

#: How often a chunk is read again where nobody knows.
OFTEN = 2**31


@dataclass(frozen=True, slots=True)
class Cut:
    """What is read of one chunk.

    Parameters
    ----------
    corner
        The chunk's place in its shard.
    start, stop
        First voxel in the array, and one past the last.
    inside, out
        The same voxels in the chunk, and in the box.
    again
        How many further tasks are expected to read the chunk.
    """

    corner: tuple[int, ...]
    start: tuple[int, ...]
    stop: tuple[int, ...]
    inside: tuple[slice, ...]
    out: tuple[slice, ...]
    again: int = OFTEN

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis."""
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))


class _Span(NamedTuple):
    """What is read of one chunk along one axis; ``row`` counts the chunks from the box's first."""

    row: int
    corner: int
    start: int
    stop: int
    inside: slice
    out: slice


def cuts(
    layout: Layout, box: Region, *, touched: Sequence[Region] | None = None, others: Sequence[Region] | None = None
) -> Iterator[tuple[tuple[int, ...], list[Cut]]]:
    """Yield the index of each shard that a box cuts, with what is read of its chunks, in index order.

    Parameters
    ----------
    layout
        The array's.
    box
        All axes, inside the array.
    touched
        The parts of the box that are wanted, by default all of it; other chunks are left out.
    others
        What further tasks read, where that is known: says how often each chunk is read again.
    """
    wanted = None if touched is None else chunks_of(layout, box, touched)
    again = None if others is None else chunks_of(layout, box, others)
    sides = zip(box.start, box.stop, layout.chunks, layout.blocks, strict=True)
    along = [
        [(index, list(group)) for index, group in groupby(_spans(*side), key=lambda one: one.shard)] for side in sides
    ]
    for shard in product(*along):
        found = []
        for spans in product(*(group for _, group in shard)):
            row, corner, start, stop, inside, out = zip(*(one.span for one in spans), strict=True)
            if wanted is None or wanted[row]:
                often = OFTEN if again is None else int(again[row])
                found.append(Cut(corner, start, stop, inside, out, often))
        yield tuple(index for index, _ in shard), found


def chunks_of(layout: Layout, box: Region, parts: Sequence[Region]) -> npt.NDArray[np.intp]:
    """Return how many of the parts hold a voxel of each chunk around a box: an entry a chunk an axis."""
    chunks = layout.chunks
    around = box.align(chunks)
    counts = np.zeros([n // c for n, c in zip(around.shape, chunks, strict=True)], dtype=np.intp)
    for part in parts:
        inside = part.intersect(box)
        if not inside.empty:
            at = inside.align(chunks).relative_to(around.start)
            counts[tuple(slice(s.start // n, s.stop // n) for s, n in zip(at.slices, chunks, strict=True))] += 1
    return counts


class _Numbered(NamedTuple):
    """A span and the shard it lies in, along one axis."""

    shard: int
    span: _Span


def _spans(start: int, stop: int, chunk: int, block: int) -> Iterator[_Numbered]:
    """Yield what is read along one axis, a chunk at a time."""
    for row, first in enumerate(range(start // chunk * chunk, stop, chunk)):
        a, b = max(start, first), min(stop, first + chunk)
        span = _Span(row, first % block // chunk, a, b, slice(a - first, b - first), slice(a - start, b - start))
        yield _Numbered(first // block, span)
