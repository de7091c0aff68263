"""What a task reads: the input box of a region of the output, from arithmetic on grids and transform alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.region import Region
from blocks.transforms import Affine, AffineBox, DisplacementField, Stage, Transform, Window, fold
from blocks.transforms.axes import alignment

Interpolation: TypeAlias = Literal["linear", "nearest", "cubic"]

#: Voxels that an interpolation reads before the voxel a point falls in, and after it. The cubic one's coefficients
#: reach 16 voxels further than its four taps.
REACH: dict[Interpolation, tuple[int, int]] = {"linear": (0, 1), "nearest": (0, 0), "cubic": (18, 18)}
#: Most parts an axis, and least voxels a side, of the pieces that a region is bounded by.
_PARTS, _SIDE = 4, 24
#: Voxels a side of a part that is computed whether it fits the memory or not.
_LEAST = 16

Floats = npt.NDArray[np.float64]


def checked_interpolation(interpolation: str) -> Interpolation:
    """Return the interpolation of that name.

    Raises
    ------
    ValueError
        When there is none.
    """
    if interpolation not in REACH:
        msg = f"the interpolation is 'linear', 'nearest' or 'cubic', got {interpolation!r}"
        raise ValueError(msg)
    return interpolation


def read_region(
    transform: Transform,
    fixed: Grid,
    region: Region,
    moving: Grid,
    *,
    interpolation: Interpolation,
) -> Region:
    """Return the voxels of the moving image that a region of the fixed grid is computed from; may be empty.

    Never too small.

    Parameters
    ----------
    transform, fixed, region, moving, interpolation
        As for :func:`read_boxes`.

    Returns
    -------
    Region
        Inside the moving grid; empty where every point falls outside it.
    """
    return around(read_boxes(transform, fixed, region, moving, interpolation=interpolation), moving.ndim)


def read_boxes(
    transform: Transform,
    fixed: Grid,
    region: Region,
    moving: Grid,
    *,
    interpolation: Interpolation,
) -> list[Region]:
    """Return boxes of the moving image that hold all that a region of the fixed grid is computed from.

    The region is bounded in pieces, each by the affine image of its corners and the interval of what the deformation
    adds: a deformation that differs across the region then widens it by what it does at the sides, and of what lies
    around a turned region, the corners that no piece touches need not be read.

    Parameters
    ----------
    transform
        Fixed world points to moving world points. What the region needs of a lazy displacement field is read.
    fixed, moving
        Grids of the output and of the input.
    region
        Part of the fixed grid, array order.
    interpolation
        Says how far around a point is read.

    Returns
    -------
    list of Region
        Inside the moving grid, none empty.
    """
    if region.empty:
        return []
    stages = localised(transform, fixed, region=region)
    box = AffineBox.each(fixed, pieces(region, whole=_straight(stages, fixed, moving)))
    for stage in stages:
        box = stage.bound(box)
    return touched(*box.index_hull(moving), moving.shape, interpolation)


def others_read(stages: Sequence[Stage], fixed: Grid, region: Region, moving: Grid, *, read: Region) -> list[Region]:
    """Return about what the regions around one, each of its shape, read of the moving image; not clipped to it.

    The affine stages say where a region comes to lie, and what this one reads beyond that, the others are taken to
    read too: it is a guess, by which decoded chunks are kept or not, and nothing that is computed depends on it.

    Parameters
    ----------
    stages
        Folded stages of a transform.
    fixed, moving
        Grids of the output and of the input.
    region
        Part of the fixed grid, array order.
    read
        What it reads of the moving image.
    """
    steps = product((0, -1, 1), repeat=region.ndim)
    shape = region.shape
    places = (
        region.relative_to([-k * n for k, n in zip(step, shape, strict=True)]).clip(fixed.shape) for step in steps
    )
    box = AffineBox.each(fixed, [place for place in places if not place.empty])
    for stage in stages:
        box = stage.bound(box) if isinstance(stage, Affine) else box
    size = np.array(moving.shape)
    lower, upper = (np.clip(edge[:, ::-1], -size, 2 * size) for edge in box.index_hull(moving))
    before, after = lower[0] - read.start, read.stop - upper[0]
    # At the image's own edge, what would have been read beyond it is taken from the other side.
    before, after = (
        np.where(np.array(read.start) == 0, np.maximum(before, after), before),
        np.where(np.array(read.stop) == size, np.maximum(before, after), after),
    )
    start = np.floor(lower[1:] - before).astype(np.int64).tolist()
    stop = np.ceil(upper[1:] + after).astype(np.int64).tolist()
    return [Region(tuple(a), tuple(b)) for a, b in zip(start, stop, strict=True)]


def around(boxes: Sequence[Region], ndim: int) -> Region:
    """Return the smallest region around boxes, empty where there are none."""
    if not boxes:
        return Region((0,) * ndim, (0,) * ndim)
    start = tuple(min(edges) for edges in zip(*(box.start for box in boxes), strict=True))
    return Region(start, tuple(max(edges) for edges in zip(*(box.stop for box in boxes), strict=True)))


def _straight(stages: Sequence[Stage], fixed: Grid, moving: Grid) -> bool:
    """Whether a box of the fixed grid is a box of the moving one: one bound of the whole is then as good as many."""
    matrix = fixed.matrix
    for stage in stages:
        if not isinstance(stage, Affine):
            return False
        matrix = np.reshape(stage.matrix, (fixed.ndim, fixed.ndim)) @ matrix
    matrix = moving.inverse_matrix @ matrix
    return bool(((np.abs(matrix) > 1e-9).sum(axis=1) <= 1).all())


def localised(transform: Transform, fixed: Grid, *, region: Region) -> tuple[Stage, ...]:
    """Return the folded stages of a transform with what a region needs of lazy displacement fields in memory."""
    stages = list(fold(transform))
    lazy = _lazy(stages)
    box = AffineBox.of(fixed, region)
    for k, stage in enumerate(stages[: max(lazy, default=-1) + 1]):
        if isinstance(stage, DisplacementField):
            here = _same_voxels(stages[:k], stage, fixed, region)
            stages[k] = stage.local(stage.window_region(box) if here is None else here)
        if k < lazy[-1]:
            box = stages[k].bound(box)
    return tuple(stages)


def _same_voxels(before: Sequence[Stage], stage: DisplacementField, fixed: Grid, region: Region) -> Region | None:
    """Return the field's voxels that the region's voxels are, where each is one: no margin need be read around them."""
    if len(before) > 1 or (before and not isinstance(before[0], Affine)):
        return None
    first = before[0] if before and isinstance(before[0], Affine) else Affine.identity(fixed.ndim)
    aligned = alignment(stage.grid, first, fixed=fixed)
    offset = None if aligned is None else aligned.whole_offset(fixed, stage.grid)
    return None if offset is None else region.relative_to(tuple(-v for v in offset[::-1]))


def pieces(region: Region, *, whole: bool) -> list[Region]:
    """Return the parts a region is bounded by: all of it, or up to four an axis."""
    if whole:
        return [region]
    cuts = []
    for a, b in zip(region.start, region.stop, strict=True):
        parts = min(_PARTS, max(1, (b - a) // _SIDE))
        edges = [a + (b - a) * k // parts for k in range(parts + 1)]
        cuts.append(list(pairwise(edges)))
    return [Region(tuple(a for a, _ in spans), tuple(b for _, b in spans)) for spans in product(*cuts)]


def touched(lower: Floats, upper: Floats, shape: tuple[int, ...], interpolation: Interpolation) -> list[Region]:
    """Return the voxels of an image that points between continuous indices read, clipped to it; those of none left out.

    Parameters
    ----------
    lower, upper
        (boxes, ndim; x, y, z) corners of boxes of continuous indices, both included.
    shape
        The image's, array order.
    interpolation
        Says how far around a point is read.
    """
    before, after = REACH[interpolation]
    size = np.array(shape)
    low, high = lower[:, ::-1], upper[:, ::-1]
    inside = ((high >= -0.5) & (low < size - 0.5)).all(axis=1)
    # Within half a voxel outside, it is the outer centre that is read.
    first = np.maximum(low[inside], 0.0)
    last = np.maximum(np.minimum(high[inside], size - 1.0), 0.0)
    if interpolation == "nearest":
        begin, end = np.floor(first + 0.5), np.floor(last + 0.5)
    else:
        # The outer centre is read as the second voxel of a pair.
        begin, end = np.minimum(np.floor(first), np.maximum(size - 2, 0)), np.floor(last)
    start = np.maximum(begin - before, 0).astype(np.int64).tolist()
    stop = (np.minimum(end + after, size - 1) + 1).astype(np.int64).tolist()
    return [Region(tuple(a), tuple(b)) for a, b in zip(start, stop, strict=True)]


def window_bytes(transform: Transform, fixed: Grid, *, region: Region) -> int:
    """Return the bytes of what a region will read of lazy displacement fields, before it is read.

    A field that comes after another lazy one is taken where the first leaves the points unmoved.
    """
    stages = fold(transform)
    lazy = _lazy(stages)
    box = AffineBox.of(fixed, region)
    total = 0
    for k, stage in enumerate(stages[: max(lazy, default=-1) + 1]):
        if isinstance(stage, DisplacementField) and k in lazy:
            here = _same_voxels(stages[:k], stage, fixed, region) or stage.window_region(box)
            total += here.size * stage.ndim * stage.kind.itemsize
        else:
            box = stage.bound(box)
    return total


def _lazy(stages: Sequence[Stage]) -> list[int]:
    """Return which stages are displacement fields that are not in memory."""
    return [k for k, stage in enumerate(stages) if isinstance(stage, DisplacementField) and not stage.in_memory]


def held_bytes(stages: tuple[Stage, ...]) -> int:
    """Return the bytes of the windows that localised stages hold."""
    windows = [stage.vectors for stage in stages if isinstance(stage, DisplacementField)]
    return sum(window.array.nbytes for window in windows if isinstance(window, Window))


def halves(region: Region) -> list[Region]:
    """Return the two halves of a region along its longest axis, in index order; none where it is small.

    A region of at most 16 voxels a side is not cut further: what is read around it would only be read more often.
    """
    axis = max(range(region.ndim), key=lambda k: region.shape[k])
    if region.shape[axis] <= _LEAST:
        return []
    middle = region.start[axis] + region.shape[axis] // 2
    first = Region(region.start, tuple(middle if k == axis else v for k, v in enumerate(region.stop)))
    return [first, Region(tuple(middle if k == axis else v for k, v in enumerate(region.start)), region.stop)]


def in_morton_order(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of a box in Morton order: neighbours mostly follow one another, and share what they read.

    The bits of the axes are interleaved, the last axis changing fastest. Nothing is held but the way down to an index:
    a million shards cost no memory.

    Parameters
    ----------
    counts
        Shards an axis.
    """

    def below(start: tuple[int, ...], side: int) -> Iterator[tuple[int, ...]]:
        if any(a >= n for a, n in zip(start, counts, strict=True)):
            return
        if side == 1:
            yield start
            return
        half = side // 2
        # An axis of one shard has no halves; without it the walk would go through as many empty corners again.
        steps = [(0,) if n == 1 else (0, half) for n in counts]
        for step in product(*steps):
            yield from below(tuple(a + b for a, b in zip(start, step, strict=True)), half)

    if all(counts):
        yield from below((0,) * len(counts), 1 << (max(counts) - 1).bit_length())
