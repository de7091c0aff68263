r"""Whether a B-spline deformation folds: a bound from its coefficients, and its determinants measured.

In the lattice's index units let v be the coefficients and s the largest sum, over a row, of the absolute values of the
displacement's gradient. Two bounds of s follow from the coefficients, and the smaller one holds, cell by cell:

* The derivative of a cubic B-spline along one axis is a quadratic one of the differences of neighbouring coefficients
  (de Boor, "A Practical Guide to Splines", 1978, chapter X). Its weights are positive and add up to one, so that no
  derivative exceeds the largest difference that has a part in the cell.
* No row's sum exceeds the largest coefficient times :data:`STEEPEST` (Choi and Lee, "Injectivity conditions of 2D and
  3D uniform cubic B-spline functions", Graphical Models 62, 2000).

Where s < 1 and the displacement ends at zero inside the lattice, max|u(x) - u(y)| <= s max|x - y|: two points never
meet, and y = x + u(x) is solved by repeated substitution (Banach). The eigenvalues of the Jacobian lie within s of one,
in whichever axes it is taken, so that its determinant is at least (1 - s)^ndim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.errors import InputError

Floats = npt.NDArray[np.float64]

#: Largest sum over a row of the gradient that coefficients of at most one control distance give, by dimension.
STEEPEST = {2: 2.046392675, 3: 2.479472335}
#: Layers of still control points around the others, so that the displacement ends smoothly inside the lattice.
STILL_LAYERS = 3
#: Points a control distance at which the determinant is measured, where the image has more voxels than that.
_POINTS = 16
#: Most points measured at once.
_AT_ONCE = 1 << 20


def steepness(transform: BSpline) -> float:
    """Return a bound of the gradient of a B-spline's displacement, from its coefficients alone.

    Parameters
    ----------
    transform
        Its lattice may be oblique and its control points further apart along some axes than others.

    Returns
    -------
    float
        Bound of the largest row sum of the gradient in index units, see the module; infinite where a control point of
        the outer three layers moves, so that the displacement does not end inside the lattice.
    """
    steps = _index_steps(transform)
    inner = tuple(slice(STILL_LAYERS, -STILL_LAYERS) for _ in range(transform.ndim))
    still = steps.copy()
    still[(slice(None), *inner)] = 0
    if still.any():
        return math.inf
    most = 0.0
    for component in steps:
        sums = sum(
            _windowed(np.abs(np.diff(component, axis=axis)), [3 if a == axis else 4 for a in range(transform.ndim)])
            for axis in range(transform.ndim)
        )
        largest = STEEPEST[transform.ndim] * _windowed(np.abs(component), [4] * transform.ndim)
        most = max(most, float(np.minimum(sums, largest).max()))
    return most


def least_determinant(transform: BSpline) -> float:
    """Return what no Jacobian determinant of a B-spline goes below: (1 - s)^ndim, or 0 where nothing is known."""
    return float(max(0.0, 1.0 - steepness(transform)) ** transform.ndim)


def smallest_determinant(transform: BSpline, grid: Grid, *, every_voxel: bool = False) -> float:
    """Measure the smallest Jacobian determinant of a B-spline over a grid's voxels.

    Parameters
    ----------
    transform
        The deformation.
    grid
        Of the image, its axes those of the lattice.
    every_voxel
        Measure at each, also where they lie much closer together than the control points.
    """
    return min(float(part.min()) for part in determinants(transform, grid, every_voxel=every_voxel))


def determinants(transform: BSpline, grid: Grid, *, every_voxel: bool = True) -> Iterator[Floats]:
    """Yield the Jacobian determinants at a grid's voxels, (z,) y, x, some planes of the first axis at a time.

    They are exact: derivatives of the spline, taken along the lattice's axes, in which the determinant is the world's.

    Raises
    ------
    ValueError
        When the grid's axes are not the lattice's.
    """
    lattice = transform.grid
    if not np.allclose(grid.direction, lattice.direction, rtol=0, atol=1e-9):
        msg = f"determinants are measured along the lattice's axes; got {grid.direction} and {lattice.direction}"
        raise ValueError(msg)
    tables = [_table(lattice, grid, axis, every_voxel=every_voxel) for axis in range(grid.ndim)]
    steps = _index_steps(transform)
    plane = math.prod(len(values) for values, _ in tables[1:])
    planes = max(1, _AT_ONCE // plane)
    for start in range(0, len(tables[0][0]), planes):
        part = [(values[start : start + planes], slopes[start : start + planes]) for values, slopes in tables[:1]]
        yield np.linalg.det(_jacobians(steps, [*part, *tables[1:]]))


def refuse_folding(transform: BSpline, grid: Grid) -> float:
    """Measure the smallest Jacobian determinant over an image's grid, and refuse a deformation that is no truth.

    Returns
    -------
    float
        The smallest determinant measured.

    Raises
    ------
    InputError
        When the coefficients do not bound it away from zero, or it is below the bound that they give.
    """
    bound, smallest = least_determinant(transform), smallest_determinant(transform, grid)
    if not bound > 0:
        msg = (
            "the deformation's coefficients do not keep its Jacobian determinant away from zero "
            f"(the smallest one measured is {smallest:g}): it may not be one-to-one, and cannot be a truth"
        )
        raise InputError(msg)
    if not smallest >= bound - 1e-9:
        msg = (
            f"the deformation's Jacobian determinant goes down to {smallest:g}, below the {bound:g} that its "
            "coefficients bound it by; it cannot be a truth"
        )
        raise InputError(msg)
    return smallest


def _index_steps(transform: BSpline) -> Floats:
    """Return the coefficients as steps of control distances along the lattice's axes: (ndim, (z,) y, x), z first."""
    steps = np.einsum("ij,j...->i...", transform.grid.inverse_matrix, transform.coefficients)
    return np.ascontiguousarray(steps[::-1])


def _windowed(values: Floats, sizes: Sequence[int]) -> Floats:
    """Return the largest value in every window of so many control points along each axis."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, sizes).max(axis=tuple(range(-len(sizes), 0))))


def _table(lattice: Grid, grid: Grid, axis: int, *, every_voxel: bool) -> tuple[Floats, Floats]:
    """Return the weights of an axis's control points at its voxels, and the weights' slopes: (voxels, points) each."""
    distance, spacing = lattice.spacing[::-1][axis], grid.spacing[::-1][axis]
    stride = 1 if every_voxel else max(1, math.floor(distance / spacing / _POINTS))
    offset = (np.array(grid.origin) - np.array(lattice.origin)) @ grid.direction_matrix
    numbers = np.arange(0, grid.shape[axis], stride)
    index = (offset[::-1][axis] + numbers * spacing) / distance
    size = lattice.shape[axis]
    inside = (index >= 1) & (index <= size - 2)
    cell = np.clip(np.floor(index), 1, size - 3).astype(int)
    values, slopes = np.zeros((2, len(index), size))
    for tap, (weight, slope) in enumerate(zip(*_cubic(index - cell), strict=True)):
        values[np.arange(len(index)), cell - 1 + tap] = np.where(inside, weight, 0)
        slopes[np.arange(len(index)), cell - 1 + tap] = np.where(inside, slope, 0)
    return values, slopes


def _cubic(t: Floats) -> tuple[list[Floats], list[Floats]]:
    """Return the four cubic B-splines around a fraction of a cell, and their derivatives."""
    r = 1 - t
    weights = [r**3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (4 - 6 * r**2 + 3 * r**3) / 6, t**3 / 6]
    slopes = [-(r**2) / 2, (3 * t**2 - 4 * t) / 2, (4 * r - 3 * r**2) / 2, t**2 / 2]
    return weights, slopes


def _jacobians(steps: Floats, tables: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return the Jacobians ((z,) y, x, ndim, ndim) at the points of tables of weights."""
    ndim = len(steps)
    shape = tuple(len(values) for values, _ in tables)
    jacobians = np.zeros((*shape, ndim, ndim))
    for row in range(ndim):
        for column in range(ndim):
            part = steps[row]
            for axis, table in enumerate(tables):
                part = np.moveaxis(np.tensordot(table[int(axis == column)], part, axes=(1, axis)), 0, axis)
            jacobians[..., row, column] = part + (row == column)
    return jacobians
