"""What the first positions of a route are filled from: affine alone, or a deformation along the fixed grid's axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from blocks.region import Region
from blocks.transforms import BSpline, DisplacementField, Window
from blocks.transforms.axes import Alignment, Tables
from blocks.transforms.bspline import spline_axis
from blocks.transforms.field import linear_axis

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class FirstRows(Protocol):
    """Says from what rows of positions are filled."""

    def rows(self, start: int, stop: int) -> tuple[Any, ...]:
        """Return what :func:`blocks.kernels.positions.fill_rows` takes for rows of the region, of all its planes."""


@dataclass(frozen=True, eq=False)
class AffineRows:
    """Positions that are an affine image of the index.

    Parameters
    ----------
    places
        What each axis of the region adds.
    """

    places: Tables

    def rows(self, start: int, stop: int) -> tuple[Any, ...]:
        """Return what :func:`blocks.kernels.positions.affine_rows` takes."""
        return (self.places.along, self.places.down, self.places.through)


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

    def rows(self, start: int, stop: int) -> tuple[Any, ...]:
        """Return what :func:`blocks.kernels.positions.direct_rows` takes."""
        p = self.places
        return (p.along, p.down, p.through, self.turn, self.vectors, self.start)


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


@dataclass(frozen=True, eq=False)
class LatticeRows:
    """An affine image of the index plus a deformation on a lattice along the same axes.

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

    def rows(self, start: int, stop: int) -> tuple[Any, ...]:
        """Return what :func:`blocks.kernels.positions.lattice_rows` takes, with memory for the lattice around."""
        across, down, through = self.lines
        first, last = int(down.cells[start:stop].min()), int(down.cells[start:stop].max())
        count = len(through.taps)
        planes = np.empty((count + 1, len(self.vectors), last - first + len(down.taps), len(across.cells)))
        return (
            self.places.along,
            self.places.down,
            self.places.through,
            self.turn,
            self.vectors,
            (across.cells, across.taps, across.inside),
            (down.cells - first, down.taps, down.inside),
            (through.cells, through.taps, through.inside),
            first,
            np.full(count + 1, -1),
            planes,
        )


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
