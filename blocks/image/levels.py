"""The coarser levels of an image: how many, how large, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence

from blocks.grid import Grid
from blocks.storage import CHUNK

#: How often each axis of a level was halved, array order.
Halvings = tuple[int, ...]


def planned_levels(shape: Sequence[int]) -> list[Halvings]:
    """Return the levels of an image of this spatial shape, from the image itself down to one chunk.

    An axis is rounded up, so that every level covers the image; once it is one voxel it is not halved any more.
    """
    chunk = CHUNK[len(shape)]
    levels = [(0,) * len(shape)]
    sizes = [int(n) for n in shape]
    while max(sizes) > chunk:
        levels.append(tuple(k + (n > 1) for k, n in zip(levels[-1], sizes, strict=True)))
        sizes = [-(-n // 2) for n in sizes]
    return levels


def level_shape(shape: Sequence[int], halvings: Halvings) -> tuple[int, ...]:
    """Return the spatial shape of a level; halving and rounding up k times is dividing by 2**k and rounding up."""
    return tuple(-(-int(n) // 2**k) for n, k in zip(shape, halvings, strict=True))


def level_grid(grid: Grid, halvings: Halvings) -> Grid:
    """Return where a level's voxels are: the first in the middle of the 2**k image voxels an axis it stands for."""
    factors = [2**k for k in halvings]
    middle = tuple(float(v) for v in grid.world([(f - 1) / 2 for f in factors])) if any(halvings) else grid.origin
    spacing = tuple(s * f for s, f in zip(grid.spacing, factors[::-1], strict=True))
    return Grid(level_shape(grid.shape, halvings), spacing, middle, grid.direction)


def level_translation(start: Sequence[float], spacing: Sequence[float], halvings: Halvings) -> tuple[float, ...]:
    """Return a level's first coordinate an axis, from the image's; everything in array order."""
    lines = zip(start, spacing, halvings, strict=True)
    return tuple(t + s * ((2**k - 1) / 2) for t, s, k in lines)
