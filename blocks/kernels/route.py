"""How the positions of a fixed region are computed: chosen from the grids and the transform, never from the block.

A deformation whose lattice has the fixed grid's axes is contracted axis by axis; a field on the fixed grid itself is
read where it lies; what has other axes, or comes after one of these, goes point by point. Affine stages are multiplied
into their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.kernels.axes import Alignment, Long, alignment, exact_inverse, long, mapped
from blocks.kernels.first import AffineRows, DirectRows, FirstRows, lattice_rows_of, solid
from blocks.kernels.positions import affine_points, affine_rows, field_points, spline_points
from blocks.region import Region
from blocks.transforms import Affine, BSpline, DisplacementField, Stage

Floats = npt.NDArray[np.float64]
Deformation = BSpline | DisplacementField


@dataclass(frozen=True, eq=False)
class Route:
    """The way from the voxels of a fixed region to positions: (ndim, n) float64, components x, y, z.

    Parameters
    ----------
    first
        Fills rows of positions from their indices.
    rest
        Stages that then move them one by one.
    minus
        (ndim, 4), from fixed index (x, y, z, 1) to what is taken off in the end; None where nothing is.
    """

    first: FirstRows
    rest: tuple[Stage, ...] = ()
    minus: Floats | None = None

    def fill(self, plane: int, row: int, column: int, width: int, points: Floats) -> None:
        """Fill ``points`` with rows of a plane of the fixed grid, ``width`` voxels each.

        Parameters
        ----------
        plane, row, column
            Fixed index z, y, x of the first voxel; in 2D the plane is 0.
        width
            Voxels a row; ``points`` holds a whole number of rows.
        """
        self.first.fill(plane, row, column, width, points)
        for stage in self.rest:
            _move(stage, points)
        if self.minus is not None:
            taken = np.empty_like(points)
            affine_rows(self.minus, plane, row, column, width, taken)
            points -= taken


def route_to_index(stages: tuple[Stage, ...], fixed: Grid, *, moving: Grid, region: Region) -> Route:
    """Return the route from fixed voxels to continuous moving indices.

    Parameters
    ----------
    stages
        Folded stages of a transform; displacement fields hold in memory what the region needs of them.
    fixed, moving
        Grids of the output and of the input.
    region
        Part of the fixed grid that rows will be filled of.
    """
    inverse = exact_inverse(moving.matrix)
    return _route(stages, fixed, region, (inverse, -inverse @ long(moving.origin)), relative=False)


def route_to_displacement(stages: tuple[Stage, ...], fixed: Grid, *, region: Region) -> Route:
    """Return the route from fixed voxels to displacements in the world; parameters as :func:`route_to_index`."""
    return _route(stages, fixed, region, (long(np.eye(fixed.ndim)), long(np.zeros(fixed.ndim))), relative=True)


def _route(
    stages: tuple[Stage, ...], fixed: Grid, region: Region, result: tuple[Long, Long], *, relative: bool
) -> Route:
    """Return the route to ``matrix @ moving point + offset``, less the fixed point where ``relative``."""
    world = (long(fixed.matrix), long(fixed.origin))
    before, rest = Affine.identity(fixed.ndim), list(stages)
    if isinstance(rest[0], Affine):
        before = rest.pop(0)
    if rest and isinstance(rest[-1], Affine):
        result = _after(result, rest.pop())
    start = mapped(before, *world)
    deformation, aligned = None, None
    if rest and not isinstance(rest[0], Affine):
        aligned = alignment(rest[0].grid, before, fixed=fixed)
        deformation = rest.pop(0) if aligned is not None else None
    if rest:
        base, turn = _base(*start), np.eye(fixed.ndim)
        tail = (*rest, Affine.of(*result))
        minus = _base(*world) if relative else None
        return Route(_first(deformation, aligned, base, turn, fixed, region), tail, minus)
    matrix, offset = result[0] @ start[0], result[0] @ start[1] + result[1]
    if relative:
        matrix, offset = matrix - world[0], offset - world[1]
    turn = np.asarray(result[0], dtype=np.float64)
    return Route(_first(deformation, aligned, _base(matrix, offset), turn, fixed, region))


def _after(result: tuple[Long, Long], stage: Affine) -> tuple[Long, Long]:
    return result[0] @ long(stage.rows), result[0] @ long(stage.shift) + result[1]


def _base(matrix: Long, offset: Long) -> Floats:
    """Return an affine map of indices as (ndim, 4), with a column of zeros for z in 2D."""
    base = np.zeros((len(offset), 4))
    base[:, : len(offset)] = matrix
    base[:, 3] = offset
    return base


def _first(
    deformation: Stage | None,
    aligned: Alignment | None,
    base: Floats,
    turn: Floats,
    fixed: Grid,
    region: Region,
) -> FirstRows:
    if aligned is None or deformation is None or isinstance(deformation, Affine):
        return AffineRows(base)
    if isinstance(deformation, DisplacementField):
        offset = aligned.whole_offset(fixed, deformation.grid)
        if offset is not None:
            return DirectRows.of(base, turn, deformation.held, offset)
    return lattice_rows_of(deformation, aligned, base, turn=turn, region=region)


def _move(stage: Stage, points: Floats) -> None:
    """Apply one stage to positions (ndim, n) in place."""
    if isinstance(stage, Affine):
        affine_points(stage.rows, stage.shift, points)
        return
    inverse, origin = stage.grid.inverse_matrix, np.array(stage.grid.origin)
    if isinstance(stage, BSpline):
        spline_points(solid(stage.coefficients), inverse, origin, points)
        return
    held = stage.held
    start = np.array((*held.start[::-1], 0)[:3])
    size = np.array((*held.whole[::-1], 1)[:3])
    missed = field_points(solid(held.array), start, size, inverse, origin, points)
    if missed:
        msg = f"{missed} points need vectors of the displacement field outside the window read for them"
        raise RuntimeError(f"{msg}; this is an error of the plan, please report it")
