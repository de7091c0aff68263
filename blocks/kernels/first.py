"""The first positions of a route, row by row: affine alone, or with a deformation along the fixed grid's axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from blocks.kernels.positions import affine_rows, direct_rows, expand_rows, lattice_rows
from blocks.region import Region
from blocks.transforms import BSpline, DisplacementField, Window
from blocks.transforms.axes import Alignment, Tables
from blocks.transforms.bspline import spline_axis
from blocks.transforms.field import linear_axis

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

#: Rows of a single plane whose lattice is expanded at once.
_AHEAD = 64


class FirstRows(Protocol):
    """Fills rows of positions from the indices of their voxels."""

    def fill(self, plane: int, row: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * columns) from a row of the region on."""


@dataclass(frozen=True, eq=False)
class AffineRows:
    """Positions that are an affine image of the index.

    Parameters
    ----------
    places
        What each axis of the region adds.
    """

    places: Tables

    def fill(self, plane: int, row: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * columns) from a row of the region on."""
        affine_rows(self.places.along, self.places.down, self.places.through[:, plane].copy(), row, points)


@dataclass(frozen=True, eq=False)
class DirectRows:
    """An affine image of the index plus the vector on the same voxel.

    Parameters
    ----------
    places
        What each axis of the region adds.
    turn
        (ndim, ndim) from vector to displacement.
    vectors
        (ndim, nz, ny, nx) float32 or float64.
    start
        (3,; x, y, z) index of the vector on the region's first voxel.
    """

    places: Tables
    turn: Floats
    vectors: Array
    start: Array

    @classmethod
    def of(cls, places: Tables, turn: Floats, held: Window, *, region: Region, offset: tuple[int, ...]) -> DirectRows:
        """Return the rows of a field whose voxel ``offset`` (x, y, z) is fixed voxel zero."""
        ends = zip(region.start[::-1], held.start[::-1], offset, strict=True)
        start = [a + o - h for a, h, o in ends]
        return cls(places, turn, solid(held.array), np.array([*start, 0][:3]))

    def fill(self, plane: int, row: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * columns) from a row of the region on."""
        p = self.places
        direct_rows(
            p.along, p.down, p.through[:, plane].copy(), self.turn, self.vectors, self.start, plane, row, points
        )


@dataclass(frozen=True, eq=False)
class Line:
    """What the voxels of a region need of a lattice along one fixed axis.

    Parameters
    ----------
    cells
        (n,) index, in the array at hand, of the first of the lattice points around each voxel.
    taps
        (points, n) weights of those points.
    inside
        (n,) whether the voxel lies on the lattice along this axis.
    """

    cells: Array
    taps: Floats
    inside: npt.NDArray[np.bool_]

    @classmethod
    def none(cls) -> Line:
        """Return the line of the axis z in 2D: one plane, with weight one."""
        return cls(np.zeros(1, dtype=np.intp), np.ones((1, 1)), np.ones(1, dtype=bool))


@dataclass(eq=False)
class LatticeRows:
    """An affine image of the index plus a deformation on a lattice along the same axes.

    The lattice is expanded along x a plane of it at a time, for a strip of rows; the planes around a plane of the
    region are contracted along z, and the rows of the strip along y.

    Parameters
    ----------
    places
        What each axis of the region adds.
    turn
        (ndim, ndim) from vector to displacement.
    vectors
        (ndim, nz, ny, nx), the lattice's axes in the fixed grid's order.
    lines
        Along x, y and z.
    """

    places: Tables
    turn: Floats
    vectors: Array
    lines: tuple[Line, Line, Line]
    _strip: _Strip | None = field(default=None, init=False)

    def fill(self, plane: int, row: int, points: Floats) -> None:
        """Fill ``points`` (ndim, rows * columns) from a row of the region on."""
        across, down, through = self.lines
        offset = self.places.through[:, plane].copy()
        if not through.inside[plane]:
            affine_rows(self.places.along, self.places.down, offset, row, points)
            return
        stop = row + points.shape[1] // len(across.cells)
        if self._strip is None or not (self._strip.row <= row and stop <= self._strip.stop):
            # Rows of a single plane come one after the other, and their lattice rows are the same for a while.
            ahead = min(row + _AHEAD, len(down.cells)) if len(through.cells) == 1 else stop
            self._strip = _Strip.of(self.lines, row, max(stop, ahead), ndim=len(self.vectors))
        strip = self._strip
        self._expand(strip, int(through.cells[plane]))
        lattice_rows(
            self.places.along,
            self.places.down,
            offset,
            strip.planes,
            through.taps[:, plane].copy(),
            strip.cells,
            down.taps,
            down.inside,
            row,
            points,
        )

    def _expand(self, strip: _Strip, cell: int) -> None:
        """Have a strip's lattice planes from ``cell`` on in order, expanding those that it does not hold."""
        if strip.cell == cell:
            return
        across = self.lines[0]
        held = strip.planes.copy() if strip.cell is not None else strip.planes
        for k in range(len(strip.planes)):
            old = -1 if strip.cell is None else cell + k - strip.cell
            if 0 <= old < len(strip.planes):
                strip.planes[k] = held[old]
            else:
                expand_rows(
                    self.vectors,
                    cell + k,
                    strip.first,
                    across.cells,
                    across.taps,
                    across.inside,
                    self.turn,
                    strip.planes[k],
                )
        strip.cell = cell


@dataclass(eq=False)
class _Strip:
    """The lattice around some rows of the region, expanded along x.

    Parameters
    ----------
    row, stop
        The rows of the region.
    first
        The first lattice row.
    cells
        (rows of the region,) first lattice row of each row, counted from ``first``.
    planes
        (planes around, ndim, lattice rows, columns).
    cell
        The first of the lattice planes; None where none is expanded yet.
    """

    row: int
    stop: int
    first: int
    cells: Array
    planes: Floats
    cell: int | None = None

    @classmethod
    def of(cls, lines: tuple[Line, Line, Line], row: int, stop: int, *, ndim: int) -> _Strip:
        across, down, through = lines
        first, last = int(down.cells[row:stop].min()), int(down.cells[row:stop].max())
        rows = last - first + len(down.taps)
        planes = np.empty((len(through.taps), ndim, rows, len(across.cells)))
        return cls(row, stop, first, down.cells - first, planes)


def lattice_rows_of(
    deformation: BSpline | DisplacementField,
    aligned: Alignment,
    places: Tables,
    *,
    turn: Floats,
    region: Region,
) -> LatticeRows:
    """Return the rows of a region under a deformation whose lattice runs along the fixed grid's axes."""
    ndim = deformation.ndim
    held = deformation.held
    read = spline_axis if isinstance(deformation, BSpline) else linear_axis
    lines = []
    for axis, along in enumerate(aligned.order):
        k = ndim - 1 - along
        first, end = region.start[ndim - 1 - axis], region.stop[ndim - 1 - axis]
        cells, taps, inside = read(aligned.coordinates(axis, first, end), held.whole[k])
        # Voxels off the lattice are given a cell of the window all the same; nothing of it is used.
        cells = np.clip(cells - held.start[k], 0, held.array.shape[k + 1] - len(taps))
        lines.append(Line(cells, np.ascontiguousarray(taps), inside))
    axes = [0, *(ndim - along for along in reversed(aligned.order))]
    across, down, *through = lines
    return LatticeRows(
        places, turn, solid(held.array.transpose(axes)), (across, down, through[0] if through else Line.none())
    )


def solid(array: Array) -> Array:
    """Return components on a lattice as (ndim, nz, ny, nx), contiguous."""
    return np.ascontiguousarray(array[:, None] if array.ndim == 3 else array)
