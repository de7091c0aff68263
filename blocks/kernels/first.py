"""The first positions of a route, row by row: affine alone, or with a deformation along the fixed grid's axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from blocks.kernels.axes import Alignment
from blocks.kernels.positions import affine_rows, direct_rows, expand_plane, lattice_rows
from blocks.region import Region
from blocks.transforms import BSpline, DisplacementField, Window
from blocks.transforms.bspline import spline_axis
from blocks.transforms.field import linear_axis

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class FirstRows(Protocol):
    """Fills rows of positions from the indices of their voxels."""

    def fill(self, plane: int, row: int, column: int, width: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * width) from fixed index (plane, row, column) on."""


@dataclass(frozen=True, eq=False)
class AffineRows:
    """Positions that are an affine image of the index.

    Parameters
    ----------
    base
        (ndim, 4), from fixed index (x, y, z, 1).
    """

    base: Floats

    def fill(self, plane: int, row: int, column: int, width: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * width) from fixed index (plane, row, column) on."""
        affine_rows(self.base, plane, row, column, width, points)


@dataclass(frozen=True, eq=False)
class DirectRows:
    """An affine image of the index plus the vector on the same voxel.

    Parameters
    ----------
    base, turn
        (ndim, 4) from fixed index; (ndim, ndim) from vector to displacement.
    vectors
        (ndim, nz, ny, nx) float32 or float64.
    origin
        (3,; x, y, z) fixed index of vector zero.
    """

    base: Floats
    turn: Floats
    vectors: Array
    origin: Array

    @classmethod
    def of(cls, base: Floats, turn: Floats, held: Window, offset: tuple[int, ...]) -> DirectRows:
        """Return the rows of a field whose voxel ``offset`` (x, y, z) is fixed voxel zero."""
        start = [a - o for a, o in zip(held.start[::-1], offset, strict=True)]
        return cls(base, turn, solid(held.array), np.array([*start, 0][:3]))

    def fill(self, plane: int, row: int, column: int, width: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * width) from fixed index (plane, row, column) on."""
        direct_rows(self.base, self.turn, self.vectors, plane, row, column, width, self.origin, points)


@dataclass(frozen=True, eq=False)
class Line:
    """What the voxels of a region need of a lattice along one fixed axis.

    Parameters
    ----------
    start
        Fixed index of the first voxel.
    cells
        (n,) index, in the array at hand, of the first of the lattice points around each voxel.
    taps
        (points, n) weights of those points.
    inside
        (n,) whether the voxel lies on the lattice along this axis.
    """

    start: int
    cells: Array
    taps: Floats
    inside: npt.NDArray[np.bool_]

    @classmethod
    def none(cls) -> Line:
        """Return the line of the axis z in 2D: one plane, with weight one."""
        return cls(0, np.zeros(1, dtype=np.intp), np.ones((1, 1)), np.ones(1, dtype=bool))


@dataclass(eq=False)
class LatticeRows:
    """An affine image of the index plus a deformation on a lattice along the same axes.

    The lattice is contracted along z and expanded along x once a plane, and contracted along y once a row.

    Parameters
    ----------
    base, turn
        (ndim, 4) from fixed index; (ndim, ndim) from vector to displacement.
    vectors
        (ndim, nz, ny, nx), the lattice's axes in the fixed grid's order.
    lines
        Along x, y and z.
    """

    base: Floats
    turn: Floats
    vectors: Array
    lines: tuple[Line, Line, Line]
    _plane: int | None = field(default=None, init=False)
    _expanded: Floats = field(init=False)

    def __post_init__(self) -> None:
        ndim, _, rows, _ = self.vectors.shape
        self._expanded = np.empty((ndim, rows, len(self.lines[0].cells)))

    def fill(self, plane: int, row: int, column: int, width: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * width) from fixed index (plane, row, column) on: all columns of the region."""
        across, down, through = self.lines
        at = plane - through.start
        if not through.inside[at]:
            affine_rows(self.base, plane, row, column, width, points)
            return
        if plane != self._plane:
            rows = np.array([down.cells.min(), down.cells.max() + len(down.taps)])
            expand_plane(
                self.vectors,
                int(through.cells[at]),
                np.ascontiguousarray(through.taps[:, at]),
                rows,
                across.cells,
                across.taps,
                across.inside,
                self.turn,
                self._expanded,
            )
            self._plane = plane
        part = slice(row - down.start, row - down.start + points.shape[1] // width)
        taps = np.ascontiguousarray(down.taps[:, part])
        cells, inside = down.cells[part], down.inside[part]
        lattice_rows(self.base, self._expanded, cells, taps, inside, plane, row, column, width, points)


def lattice_rows_of(
    deformation: BSpline | DisplacementField,
    aligned: Alignment,
    base: Floats,
    *,
    turn: Floats,
    region: Region,
) -> LatticeRows:
    """Return the rows of a region under a deformation whose lattice runs along the fixed grid's axes."""
    ndim = deformation.ndim
    if isinstance(deformation, BSpline):
        array, start, whole = deformation.coefficients, (0,) * ndim, deformation.grid.shape
    else:
        held = deformation.held
        array, start, whole = held.array, held.start, held.whole
    read = spline_axis if isinstance(deformation, BSpline) else linear_axis
    lines = []
    for axis, along in enumerate(aligned.order):
        first, end = region.start[ndim - 1 - axis], region.stop[ndim - 1 - axis]
        size = whole[ndim - 1 - along]
        cells, taps, inside = read(aligned.coordinates(axis, first, end), size)
        here = array.shape[ndim - along]
        # Voxels off the lattice are given a cell of the window all the same; nothing of it is used.
        cells = np.clip(cells - start[ndim - 1 - along], 0, here - len(taps))
        lines.append(Line(first, cells, np.ascontiguousarray(taps), inside))
    axes = [0, *(ndim - along for along in reversed(aligned.order))]
    vectors = solid(array.transpose(axes))
    across, down, *through = lines
    return LatticeRows(base, turn, vectors, (across, down, through[0] if through else Line.none()))


def solid(array: Array) -> Array:
    """Return components on a lattice as (ndim, nz, ny, nx), contiguous."""
    return np.ascontiguousarray(array[:, None] if array.ndim == 3 else array)
