"""When a lattice runs along the axes of a fixed grid, and where the grid's indices then lie on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.transforms import Affine

Floats = npt.NDArray[np.float64]
Long = npt.NDArray[Any]

#: Most lattice cells that the other axes may move a point along one, over the whole fixed grid.
_ASIDE = 1e-9


@dataclass(frozen=True)
class Alignment:
    """A lattice whose axes are those of a fixed grid, possibly permuted or reversed.

    Parameters
    ----------
    order
        For each fixed axis (x, y, z), the lattice axis that runs along it.
    steps
        For each fixed axis, the steps ``(v + a) * s + b`` from its index to the continuous index on that lattice axis.
    """

    order: tuple[int, ...]
    steps: tuple[tuple[tuple[float, float, float], ...], ...]

    def coordinates(self, axis: int, start: int, stop: int) -> Floats:
        """Return the continuous lattice indices (stop - start,) of fixed indices along one fixed axis (0 is x)."""
        value = np.arange(start, stop, dtype=np.float64)
        for before, scale, after in self.steps[axis]:
            value = (value + before) * scale + after
        return value

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
    inverse = exact_inverse(lattice.matrix)
    matrix, offset = mapped(before, long(fixed.matrix), long(fixed.origin))
    scale = inverse @ matrix
    shift = inverse @ (offset - long(lattice.origin))
    extent = np.abs(scale) * np.array(fixed.shape[::-1])
    order = [int(np.argmax(extent[:, axis])) for axis in range(fixed.ndim)]
    if sorted(order) != list(range(fixed.ndim)):
        return None
    for axis, along in enumerate(order):
        if np.delete(extent[along], axis).max(initial=0.0) > _ASIDE:
            return None
    maps = (fixed.matrix, before.rows, lattice.inverse_matrix)
    if all((np.count_nonzero(m, axis=1) == 1).all() for m in maps):
        return Alignment(tuple(order), _itk_steps(lattice, before, fixed, order))
    merged = [((0.0, float(scale[along, axis]), float(shift[along])),) for axis, along in enumerate(order)]
    return Alignment(tuple(order), tuple(merged))


def _itk_steps(
    lattice: Grid, before: Affine, fixed: Grid, order: list[int]
) -> tuple[tuple[tuple[float, float, float], ...], ...]:
    """Return the steps as ITK takes them, where every matrix has one number a row.

    Index to point, point to point, point to index, each rounded as there: a voxel on the very edge of a lattice then
    falls on the same side.
    """
    result = []
    for axis, along in enumerate(order):
        mid = int(np.flatnonzero(lattice.inverse_matrix[along])[0])
        world = int(np.flatnonzero(before.rows[mid])[0])
        result.append(
            (
                (0.0, float(fixed.matrix[world, axis]), fixed.origin[world]),
                (0.0, float(before.rows[mid, world]), before.offset[mid]),
                (-lattice.origin[mid], float(lattice.inverse_matrix[along, mid]), 0.0),
            )
        )
    return tuple(result)


def mapped(transform: Affine, matrix: Long, offset: Long) -> tuple[Long, Long]:
    """Return an affine map followed by a transform, in extended precision."""
    rows = long(transform.rows)
    return rows @ matrix, rows @ offset + long(transform.shift)


def long(values: npt.ArrayLike) -> Long:
    """Return values in the machine's extended precision, so that products round once when they come back."""
    return np.asarray(values, dtype=np.longdouble)


def exact_inverse(matrix: Floats) -> Long:
    """Return the inverse of a 2x2 or 3x3 matrix in extended precision, from its cofactors."""
    m = long(matrix)
    if len(m) == 2:
        adjugate = np.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]])
        return np.asarray(adjugate / (m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]))
    cofactors = np.stack([np.cross(m[1], m[2]), np.cross(m[2], m[0]), np.cross(m[0], m[1])])
    return np.asarray(cofactors.T / (m[0] @ cofactors[0]))
