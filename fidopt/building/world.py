"""A large image's array axes are the world's: how it is brought there, and where its voxels then lie."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.grid import Grid
from blocks.image import image_of, kind_of, unit_of
from fidopt.errors import InputError

Floats = npt.NDArray[np.float64]

#: How far a direction cosine may be from 0 or 1 for an axis to lie along the world's.
TOLERANCE = 1e-6
#: Length in millimetres of the units that are turned into one another.
_MILLIMETRES = {"nm": 1e-6, "um": 1e-3, "mm": 1.0, "cm": 10.0, "m": 1e3}


def regridded(image: xr.DataArray, grid: Grid, *, unit: str) -> xr.DataArray:
    """Return the same voxels with another geometry; a store's voxels can still be read by region."""
    moved = image_of(image.data, grid, unit=unit, kind=kind_of(image), name=image.name)
    moved.encoding |= image.encoding
    return moved


def in_unit(image: xr.DataArray, grid: Grid, unit: str) -> Grid:
    """Return an image's grid in another unit.

    Raises
    ------
    InputError
        When one of the two is no length.
    """
    own = unit_of(image)
    if own == unit:
        return grid
    if own not in _MILLIMETRES or unit not in _MILLIMETRES:
        msg = f"its unit is {own} and the dataset's is {unit}; state spacing and unit in the reference"
        raise InputError(msg)
    power = round(math.log10(_MILLIMETRES[own] / _MILLIMETRES[unit]))
    spacing, origin = (tuple(_shifted(v, power) for v in values) for values in (grid.spacing, grid.origin))
    return Grid(grid.shape, spacing, origin, grid.direction)


def _shifted(value: float, power: int) -> float:
    """Return a number with its decimal point moved: 40 um are 0.04 mm, and not that with some rounding."""
    digits = repr(value)
    return value * 10.0**power if "e" in digits else float(f"{digits}e{power}")


def permutation(grid: Grid) -> Sequence[tuple[int, float]] | None:
    """Return for each index axis (x, y, z) the world axis it runs along and its sign; None for an oblique grid."""
    matrix = grid.direction_matrix
    axes = [int(np.argmax(np.abs(column))) for column in matrix.T]
    straight = np.zeros_like(matrix)
    for column, row in enumerate(axes):
        straight[row, column] = np.sign(matrix[row, column])
    if len(set(axes)) != grid.ndim or np.abs(matrix - straight).max() > TOLERANCE:
        return None
    return [(row, float(straight[row, column])) for column, row in enumerate(axes)]


def is_world(grid: Grid) -> bool:
    """Tell whether a grid's axes are the world's, in its order and direction."""
    return permutation(grid) == [(axis, 1.0) for axis in range(grid.ndim)]


def world_grid(grid: Grid) -> Grid:
    """Return the grid along the world's axes that covers the voxel centres of a grid.

    Of a grid whose axes are the world's but for their order and signs it has exactly the voxels. Of an oblique one
    (an image that an alignment turned) it has the spacing of the axis nearest to each world axis, and begins at the
    least coordinates of any voxel: nothing of the image is cut.
    """
    n = grid.ndim
    straight = permutation(grid)
    ends = np.array(np.meshgrid(*[(0, size - 1) for size in grid.shape], indexing="ij")).reshape(n, -1).T
    corners = grid.world(ends.astype(np.float64))
    origin = np.round(corners.min(axis=0), 9 - math.floor(math.log10(min(grid.spacing)))) + 0.0
    axes = [axis for axis, _ in straight] if straight else _nearest(grid.direction_matrix)
    spacing = [0.0] * n
    counts = [0] * n
    for column, axis in enumerate(axes):
        spacing[axis] = grid.spacing[column]
        extent = float(corners[:, axis].max() - corners[:, axis].min())
        counts[axis] = grid.shape[n - 1 - column] if straight else math.ceil(extent / spacing[axis] - 1e-6) + 1
    return Grid.of(counts[::-1], spacing=spacing, origin=[float(v) for v in origin])


def _nearest(matrix: Floats) -> list[int]:
    """Return a world axis for each index axis, each once: the most parallel pair first."""
    left, found = np.abs(matrix).copy(), [0] * len(matrix)
    for _ in range(len(matrix)):
        row, column = np.unravel_index(int(np.argmax(left)), left.shape)
        found[int(column)] = int(row)
        left[row, :] = left[:, column] = -1
    return found
