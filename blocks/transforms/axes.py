"""Chains of affine maps, and what they do along the axes of a grid.

Where every matrix of a chain has one number a row (axes kept, permuted or reversed), a chain is followed number by
number, each step rounded as ITK rounds it: index to point, point to point, point to index. A voxel that falls exactly
between two others, or on the very edge of a lattice, then falls on the same side. Any other chain is multiplied out in
extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.region import Region
from blocks.transforms.affine import Affine

Floats = npt.NDArray[np.float64]
Long = npt.NDArray[Any]

#: Most lattice cells that the other axes may move a point along one, over the whole fixed grid.
_ASIDE = 1e-9


@dataclass(frozen=True, eq=False)
class Link:
    """``y = matrix (x + before) + after``.

    Parameters
    ----------
    before, after
        (ndim,) float64.
    matrix
        (ndim, ndim) float64.
    exact
        The matrix in extended precision.
    """

    before: Floats
    matrix: Floats
    after: Floats
    exact: Long

    @classmethod
    def from_grid(cls, grid: Grid) -> Link:
        """Return the map from a grid's indices (x, y, z) to world points."""
        return cls(np.zeros(grid.ndim), grid.matrix, np.array(grid.origin), _long(grid.matrix))

    @classmethod
    def to_grid(cls, grid: Grid) -> Link:
        """Return the map from world points to a grid's continuous indices (x, y, z)."""
        return cls(-np.array(grid.origin), grid.inverse_matrix, np.zeros(grid.ndim), _inverse(grid.matrix))

    @classmethod
    def of(cls, affine: Affine) -> Link:
        """Return an affine transform."""
        return cls(np.zeros(affine.ndim), affine.rows, affine.shift, _long(affine.rows))


@dataclass(frozen=True, eq=False)
class Chain:
    """Affine maps one after the other, the first from fixed indices (x, y, z).

    Parameters
    ----------
    links
        At least one.
    """

    links: tuple[Link, ...]

    @cached_property
    def along_axes(self) -> bool:
        """Whether every matrix has one number a row: each result then depends on one index alone."""
        return all(bool((np.count_nonzero(link.matrix, axis=1) == 1).all()) for link in self.links)

    @cached_property
    def product(self) -> tuple[Long, Long]:
        """Matrix (ndim, ndim) and offset (ndim,) of the whole chain, in extended precision."""
        n = len(self.links[0].before)
        matrix, offset = _long(np.eye(n)), _long(np.zeros(n))
        for link in self.links:
            matrix, offset = link.exact @ matrix, link.exact @ (offset + link.before) + link.after
        return matrix, offset

    def follow(self, axis: int, index: Floats) -> tuple[int, Floats]:
        """Return which result (0 is x) depends on a fixed axis, and its values (n,) at indices (n,) along it."""
        value = index
        for link in self.links:
            row = int(np.flatnonzero(link.matrix[:, axis])[0])
            value = (value + link.before[axis]) * link.matrix[row, axis] + link.after[row]
            axis = row
        return axis, value


@dataclass(frozen=True, eq=False)
class Tables:
    """An affine map of a region's voxels, as the sum of one table an axis.

    Parameters
    ----------
    along, down, through
        (ndim, columns), (ndim, rows) and (ndim, planes): what x, y and z add to each result; one plane in 2D.
    """

    along: Floats
    down: Floats
    through: Floats


def tables(chain: Chain, region: Region, *, columns: int | None = None) -> Tables:
    """Return the results of a chain on the voxels of a region.

    Parameters
    ----------
    chain
        From fixed indices.
    region
        Part of the fixed grid, array order.
    columns
        Voxels a row of the whole fixed grid, for the result of ITK's own path for linear transforms: it goes from
        the first column to one past the last in equal steps.
    """
    indices = [np.arange(a, b, dtype=np.float64) for a, b in zip(region.start[::-1], region.stop[::-1], strict=True)]
    if not chain.along_axes:
        return _sums(*chain.product, indices)
    result = [np.zeros((region.ndim, len(index))) for index in indices]
    for axis, index in enumerate(indices):
        if axis == 0 and columns is not None:
            row, ends = chain.follow(0, np.array([0.0, float(columns)]))
            values = ends[0] + index / columns * (ends[1] - ends[0])
        else:
            row, values = chain.follow(axis, index)
        result[axis][row] = values
    return _padded(result)


def difference_tables(chain: Chain, fixed: Grid, region: Region) -> Tables:
    """Return the results of a chain less the world points of the voxels themselves."""
    matrix, offset = chain.product
    own = Chain((Link.from_grid(fixed),)).product
    indices = [np.arange(a, b, dtype=np.float64) for a, b in zip(region.start[::-1], region.stop[::-1], strict=True)]
    return _sums(matrix - own[0], offset - own[1], indices)


def _sums(matrix: Long, offset: Long, indices: list[Floats]) -> Tables:
    rows, shift = np.asarray(matrix, dtype=np.float64), np.asarray(offset, dtype=np.float64)
    result = [rows[:, axis, None] * index for axis, index in enumerate(indices)]
    result[-1] = result[-1] + shift[:, None]
    return _padded(result)


def _padded(result: list[Floats]) -> Tables:
    if len(result) == 2:
        result = [*result, np.zeros((2, 1))]
    return Tables(*result)


@dataclass(frozen=True, eq=False)
class Alignment:
    """A lattice whose axes are those of a fixed grid, possibly permuted or reversed.

    Parameters
    ----------
    chain
        From fixed indices to continuous lattice indices.
    order
        For each fixed axis (x, y, z), the lattice axis that runs along it.
    """

    chain: Chain
    order: tuple[int, ...]

    def coordinates(self, axis: int, start: int, stop: int) -> Floats:
        """Return the continuous lattice indices (stop - start,) of fixed indices along one fixed axis (0 is x)."""
        index = np.arange(start, stop, dtype=np.float64)
        if self.chain.along_axes:
            return self.chain.follow(axis, index)[1]
        matrix, offset = self.chain.product
        along = self.order[axis]
        return np.asarray(index * float(matrix[along, axis]) + float(offset[along]))

    def whole_offset(self, fixed: Grid, lattice: Grid) -> tuple[int, ...] | None:
        """Return the lattice index (x, y, z) of fixed voxel zero where every fixed voxel is one of the lattice's."""
        if self.order != tuple(range(fixed.ndim)):
            return None
        offset = []
        for axis, (n, size) in enumerate(zip(fixed.shape[::-1], lattice.shape[::-1], strict=True)):
            ends = self.coordinates(axis, 0, n)[[0, -1]]
            first = round(float(ends[0]))
            if np.abs(ends - [first, first + n - 1]).max() > _ASIDE or first < 0 or first + n > size:
                return None
            offset.append(first)
        return tuple(offset)


def alignment(lattice: Grid, before: Affine, *, fixed: Grid) -> Alignment | None:
    """Return how a lattice runs along a fixed grid's axes after an affine transform; None where it does not."""
    chain = Chain((Link.from_grid(fixed), Link.of(before), Link.to_grid(lattice)))
    extent = np.abs(chain.product[0]) * np.array(fixed.shape[::-1])
    order = [int(np.argmax(extent[:, axis])) for axis in range(fixed.ndim)]
    if sorted(order) != list(range(fixed.ndim)):
        return None
    for axis, along in enumerate(order):
        if np.delete(extent[along], axis).max(initial=0.0) > _ASIDE:
            return None
    return Alignment(chain, tuple(order))


def _long(values: npt.ArrayLike) -> Long:
    """Return values in the machine's extended precision, so that products round once when they come back."""
    return np.asarray(values, dtype=np.longdouble)


def _inverse(matrix: Floats) -> Long:
    """Return the inverse of a 2x2 or 3x3 matrix in extended precision, from its cofactors."""
    m = _long(matrix)
    if len(m) == 2:
        adjugate = np.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]])
        return np.asarray(adjugate / (m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]))
    cofactors = np.stack([np.cross(m[1], m[2]), np.cross(m[2], m[0]), np.cross(m[0], m[1])])
    return np.asarray(cofactors.T / (m[0] @ cofactors[0]))
