"""A set of points that is surely around the image of a box of voxels: an affine form with an interval remainder.

Many boxes that share their affine part are one object: what bounds them is then a few operations on arrays, and not
as many calls for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.region import Region

Floats = npt.NDArray[np.float64]

#: Beyond the largest float64 an end is infinite, which bounds what lies there all the same.
_boundless = np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True, eq=False)
class AffineBox:
    """The points ``A i + b + d`` for every ``i`` in an index box and every ``d`` in an interval box.

    An affine transform keeps the first part exact on the corners of the index box, which is what keeps the bound of a
    rotated block tight; what a deformation adds is an interval a component.

    Parameters
    ----------
    low, high
        (..., ndim) first and last index of the box, inclusive; order x, y, z.
    matrix, offset
        ``A`` (ndim, ndim) and ``b`` (ndim,): index x, y, z to world x, y, z.
    least, most
        (..., ndim) ends of the interval of ``d`` in the world, x, y, z.
    """

    low: Floats
    high: Floats
    matrix: Floats
    offset: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, grid: Grid, region: Region) -> AffineBox:
        """Return the points of a grid's voxel centres in a region, which must not be empty."""
        every = cls.each(grid, [region])
        return cls(every.low[0], every.high[0], every.matrix, every.offset, every.least[0], every.most[0])

    @classmethod
    def each(cls, grid: Grid, regions: Sequence[Region]) -> AffineBox:
        """Return the points of a grid's voxel centres in each of some regions, none empty: (regions, ndim) corners."""
        for region in regions:
            if region.empty:
                msg = f"an empty region has no points to bound: {region}"
                raise ValueError(msg)
        low = np.array([region.start[::-1] for region in regions], dtype=np.float64)
        high = np.array([region.stop[::-1] for region in regions], dtype=np.float64) - 1
        zero = np.zeros(low.shape)
        return cls(low, high, grid.matrix, np.array(grid.origin), zero, zero)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.offset)

    @_boundless
    def hull(self) -> tuple[Floats, Floats]:
        """Return the lower and the upper corner (..., ndim; x, y, z) of the smallest world box around the set."""
        lower, upper = turned(self.matrix, self.low, self.high)
        return lower + self.offset + self.least, upper + self.offset + self.most

    @_boundless
    def through(self, matrix: Floats, offset: Floats) -> AffineBox:
        """Return the set under ``y = M x + c``: exact for the affine part, interval arithmetic for the remainder."""
        least, most = turned(matrix, self.least, self.most)
        return AffineBox(self.low, self.high, matrix @ self.matrix, matrix @ self.offset + offset, least, most)

    @_boundless
    def displaced(self, least: Floats, most: Floats) -> AffineBox:
        """Return the set with any displacement from ``least`` to ``most`` (..., ndim; x, y, z) added to each point."""
        return AffineBox(self.low, self.high, self.matrix, self.offset, self.least + least, self.most + most)

    @_boundless
    def index_hull(self, grid: Grid) -> tuple[Floats, Floats]:
        """Return the lower and the upper continuous index (..., ndim; x, y, z) of the set on a grid.

        Both ends are moved outwards by a little more than the rounding of the arithmetic: the kernels associate the
        same sums in another way.
        """
        inverse = grid.inverse_matrix
        lower, upper = self.through(inverse, -inverse @ np.array(grid.origin)).hull()
        reach = np.abs(inverse) @ (np.abs(self.offset) + np.abs(np.array(grid.origin)))
        slack = 1e-9 + 1e-13 * (reach + np.abs(lower) + np.abs(upper))
        lower, upper = lower - slack, upper + slack
        # What is no number says nothing of where the set ends.
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)


def turned(matrix: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Return the interval box (..., ndim) of ``M d`` for ``d`` between ``least`` and ``most`` (..., ndim)."""
    at_least, at_most = matrix * least[..., None, :], matrix * most[..., None, :]
    return np.minimum(at_least, at_most).sum(axis=-1), np.maximum(at_least, at_most).sum(axis=-1)
