"""Cubic B-spline transforms, as ITK evaluates them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.transforms.affine import as_points
from blocks.transforms.box import AffineBox
from blocks.transforms.extremes import extremes
from blocks.transforms.lattice import cubic_weights, lattice_index, window_of
from blocks.transforms.window import Window

Floats = npt.NDArray[np.float64]

#: ITK's tolerance at the upper end of the valid region, in units in the last place.
_ULPS = 4


@dataclass(frozen=True, eq=False)
class BSpline:
    """``y = x + sum of coefficients times cubic B-splines`` inside the valid region, ``y = x`` outside.

    The valid region of ``n`` control points along an axis is the continuous index from 1 to ``n - 2``, where all four
    control points around exist.

    Parameters
    ----------
    grid
        The lattice of control points.
    coefficients
        Displacements of the control points, float64 (ndim, *grid.shape), components x, y, z in the world.
    """

    grid: Grid
    coefficients: Floats = field(repr=False)

    def __post_init__(self) -> None:
        coefficients = np.ascontiguousarray(self.coefficients, dtype=np.float64)
        n = self.grid.ndim
        if coefficients.shape != (n, *self.grid.shape):
            msg = f"a B-spline on a lattice of shape {self.grid.shape} needs coefficients of shape"
            raise ValueError(f"{msg} {(n, *self.grid.shape)}, got {coefficients.shape}")
        if min(self.grid.shape) < 4:
            msg = f"a cubic B-spline needs four control points an axis, got a lattice of shape {self.grid.shape}"
            raise ValueError(msg)
        if not np.isfinite(coefficients).all():
            msg = "a B-spline needs finite coefficients; some are NaN or infinite"
            raise ValueError(msg)
        object.__setattr__(self, "coefficients", coefficients)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.grid.ndim

    @property
    def held(self) -> Window:
        """All the coefficients, as a window that is the whole lattice."""
        return Window(self.coefficients, (0,) * self.ndim, self.grid.shape)

    def points(self, points: npt.ArrayLike) -> Floats:
        """Return where fixed world points (n, ndim; x, y, z) are in the moving image's world (n, ndim)."""
        moved = as_points(points, self.ndim).copy()
        index = lattice_index(self.grid, moved)
        cells, weights = [], []
        valid = np.ones(len(moved), dtype=bool)
        for axis, size in enumerate(self.grid.shape[::-1]):
            cell, weight, inside = spline_axis(index[:, axis], size)
            cells.append(cell)
            weights.append(weight)
            valid &= inside
        total = np.zeros((self.ndim, len(moved)))
        for taps in product(range(4), repeat=self.ndim):
            weight = np.ones(len(moved))
            for axis, tap in enumerate(taps):
                weight = weight * weights[axis][tap]
            at: list[Any] = [cells[axis] + taps[axis] for axis in reversed(range(self.ndim))]
            total += weight * self.coefficients[(slice(None), *at)]
        moved[valid] += total.T[valid]
        return moved

    def bound(self, box: AffineBox) -> AffineBox:
        """Return a set around the moving points of a set of fixed points.

        The weights are positive and sum to one: a displacement lies between the least and the largest of the
        coefficients that have a part in it.
        """
        lower, upper = box.index_hull(self.grid)
        last = np.array(self.grid.shape[::-1], dtype=np.float64) - 2
        low = np.floor(np.maximum(lower, 1)) - 1
        high = np.floor(np.minimum(upper, last)) + 2
        reached = np.asarray(~((lower > last) | (upper < 1)).any(axis=-1))
        least, most = np.zeros(lower.shape), np.zeros(lower.shape)
        for at in np.ndindex(reached.shape):
            if reached[at]:
                window = window_of(low[at], high[at], self.grid.shape)
                least[at], most[at] = extremes(self.coefficients[(slice(None), *window)])
        # Some of its points may lie beyond the valid region, where nothing moves.
        beyond = ((lower < 1) | (upper > last)).any(axis=-1, keepdims=True)
        return box.displaced(np.where(beyond, np.minimum(least, 0), least), np.where(beyond, np.maximum(most, 0), most))


def spline_axis(index: Floats, size: int) -> tuple[npt.NDArray[np.intp], Floats, npt.NDArray[np.bool_]]:
    """Return, for continuous indices (n,) along one axis of a lattice, what a cubic B-spline needs there.

    Returns
    -------
    cell
        (n,) index of the first of the four control points.
    weights
        (4, n), zero outside the valid region.
    inside
        (n,) whether the index lies in the valid region.
    """
    last = float(size - 2)
    slack = _ULPS * np.spacing(last)
    with np.errstate(invalid="ignore"):
        inside = (index >= 1.0) & (index <= last + slack)
    safe = np.where(inside, np.minimum(index, last), 1.0)
    # The upper end belongs to the last cell: there is no control point beyond it.
    cell = np.minimum(np.floor(safe), last - 1).astype(np.intp)
    weights = np.where(inside, cubic_weights(safe - cell), 0.0)
    return cell - 1, weights, inside
