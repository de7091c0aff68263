"""How the positions of a fixed region are computed: chosen from the grids and the transform, never from the block.

A deformation whose lattice has the fixed grid's axes is contracted axis by axis; a field on the fixed grid itself is
read where it lies; what has other axes, or comes after one of these, goes point by point. Affine stages around the
one deformation are multiplied into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.kernels.compiled import compiled
from blocks.kernels.first import AffineRows, DirectRows, FirstRows, lattice_rows_of, solid
from blocks.kernels.points import affine_points, field_points, spline_points
from blocks.kernels.positions import fill_rows
from blocks.region import Region
from blocks.transforms import Affine, BSpline, DisplacementField, Stage
from blocks.transforms.axes import Alignment, Chain, Link, Tables, alignment, difference_tables, tables

Floats = npt.NDArray[np.float64]
Deformation: TypeAlias = BSpline | DisplacementField


@dataclass(frozen=True, eq=False)
class Route:
    """The way from the voxels of a fixed region to positions: (ndim, n) float64, components x, y, z.

    Parameters
    ----------
    region
        The part of the fixed grid.
    first
        Fills rows of positions from their indices.
    rest
        What then moves them one by one.
    minus
        Rows that are taken off in the end; None where nothing is.
    """

    region: Region
    first: FirstRows
    rest: tuple[Link | Deformation, ...] = ()
    minus: FirstRows | None = None

    def fill(self, start: int, stop: int) -> Callable[[int, int, Floats], None]:
        """Return what fills positions of rows of the region, whatever plane they are on.

        It takes the plane and the first row, counted from the region's first (in 2D the plane is 0), and ``points``
        (ndim, n), to be filled: n is a whole number of the region's rows.
        """
        first = self.first.rows(start, stop)
        taken = None if self.minus is None else self.minus.rows(start, stop)

        def fill(plane: int, row: int, points: Floats) -> None:
            plane_rows(first, plane, row, points)
            for step in self.rest:
                _move(step, points)
            if taken is not None:
                less = np.empty_like(points)
                plane_rows(taken, plane, row, less)
                points -= less

        return fill


@compiled
def plane_rows(first: Any, plane: int, row: int, points: Floats) -> None:  # noqa: ANN401 - a tuple of arrays
    """Fill ``points`` as :func:`blocks.kernels.positions.fill_rows` does."""
    fill_rows(first, plane, row, points)


def route_to_index(stages: tuple[Stage, ...], fixed: Grid, *, moving: Grid, region: Region) -> Route:
    """Return the route from fixed voxels to continuous moving indices.

    Parameters
    ----------
    stages
        Folded stages of a transform; displacement fields hold in memory what the region needs of them.
    fixed, moving
        Grids of the output and of the input.
    region
        Part of the fixed grid.
    """
    plan = _Plan.of(stages, fixed)
    last = Link.to_grid(moving)
    if plan.rest:
        return Route(region, plan.first(tables(Chain(plan.before), region), region), (*plan.rest, last))
    chain = Chain((*plan.before, *plan.after, last))
    # ITK steps along a row from end to end when the whole transform is linear, and only then.
    columns = fixed.shape[-1] if plan.deformation is None else None
    return Route(region, plan.first(tables(chain, region, columns=columns), region, last))


def route_to_displacement(stages: tuple[Stage, ...], fixed: Grid, *, region: Region) -> Route:
    """Return the route from fixed voxels to displacements in the world; parameters as :func:`route_to_index`."""
    plan = _Plan.of(stages, fixed)
    if plan.rest:
        own = AffineRows(tables(Chain((Link.from_grid(fixed),)), region))
        return Route(region, plan.first(tables(Chain(plan.before), region), region), plan.rest, own)
    return Route(region, plan.first(difference_tables(Chain((*plan.before, *plan.after)), fixed, region), region))


@dataclass(frozen=True, eq=False)
class _Plan:
    """A transform as: affine maps, one deformation along the fixed grid's axes, affine maps; or with a rest.

    Parameters
    ----------
    fixed
        The fixed grid.
    before, after
        Affine maps from fixed index to the deformation's point, and after it.
    deformation, aligned
        The deformation and how its lattice runs; None where there is none along the axes.
    rest
        What is to be done point by point, where there is such; ``after`` is empty then.
    """

    fixed: Grid
    before: tuple[Link, ...]
    after: tuple[Link, ...] = ()
    deformation: Deformation | None = None
    aligned: Alignment | None = None
    rest: tuple[Link | Deformation, ...] = ()

    @classmethod
    def of(cls, stages: tuple[Stage, ...], fixed: Grid) -> _Plan:
        first, others = Affine.identity(fixed.ndim), stages
        before: tuple[Link, ...] = (Link.from_grid(fixed),)
        if isinstance(stages[0], Affine):
            first, others = stages[0], stages[1:]
            before = (*before, Link.of(first))
        if not others or isinstance(others[0], Affine):
            return cls(fixed, before)
        aligned = alignment(others[0].grid, first, fixed=fixed)
        if aligned is None:
            return cls(fixed, before, rest=_steps(others))
        deformation, others = others[0], others[1:]
        if all(isinstance(stage, Affine) for stage in others):
            after = tuple(Link.of(stage) for stage in others if isinstance(stage, Affine))
            return cls(fixed, before, after, deformation, aligned)
        return cls(fixed, before, (), deformation, aligned, _steps(others))

    def first(self, places: Tables, region: Region, *last: Link) -> FirstRows:
        """Return what fills the first positions: affine places, and the deformation turned as ``after`` turns it."""
        if self.deformation is None or self.aligned is None:
            return AffineRows(places)
        turn = np.eye(self.fixed.ndim, dtype=np.longdouble)
        for link in () if self.rest else (*self.after, *last):
            turn = link.exact @ turn
        rows = np.asarray(turn, dtype=np.float64)
        if isinstance(self.deformation, DisplacementField):
            offset = self.aligned.whole_offset(self.fixed, self.deformation.grid)
            if offset is not None:
                return DirectRows.of(places, rows, self.deformation.held, region=region, offset=offset)
        return lattice_rows_of(self.deformation, self.aligned, places, turn=rows, region=region)


def _steps(stages: tuple[Stage, ...]) -> tuple[Link | Deformation, ...]:
    return tuple(Link.of(stage) if isinstance(stage, Affine) else stage for stage in stages)


def _move(step: Link | Deformation, points: Floats) -> None:
    """Apply one step to positions (ndim, n) in place."""
    if isinstance(step, Link):
        affine_points(step.matrix, step.before, step.after, points)
        return
    n = step.ndim
    inverse, origin = np.zeros((3, 3)), np.zeros(3)
    inverse[:n, :n], origin[:n] = step.grid.inverse_matrix, step.grid.origin
    held = step.held
    vectors = solid(held.array)
    if isinstance(step, BSpline):
        spline_points(vectors, inverse, origin, points)
        return
    start = np.array([*held.start[::-1], 0][:3])
    size = np.array([*held.whole[::-1], 1][:3])
    missed = field_points(vectors, start, size, inverse, origin, points)
    if missed:
        msg = f"{missed} points need vectors of the displacement field outside the window read for them"
        raise RuntimeError(f"{msg}; this is an error of the plan, please report it")
