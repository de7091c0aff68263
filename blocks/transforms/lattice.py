"""What B-splines and displacement fields share: where a world point lies on their lattice, and the box it reads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid

Floats = npt.NDArray[np.float64]


def lattice_index(grid: Grid, points: Floats) -> Floats:
    """Return continuous indices (n, ndim; x, y, z) of world points (n, ndim) on a lattice.

    The sums are associated as ITK's, so that a point on the very edge of a lattice falls on the same side.
    """
    offset = points - np.array(grid.origin)
    inverse = np.asarray(grid.inverse_matrix)
    index: Floats = np.empty_like(offset)
    for row in range(grid.ndim):
        index[:, row] = inverse[row, 0] * offset[:, 0]
        for column in range(1, grid.ndim):
            index[:, row] += inverse[row, column] * offset[:, column]
    return index


def cubic_weights(fraction: Floats) -> Floats:
    """Return the four cubic B-spline weights (4, n) of the control points around, from the fraction in a cell (n,)."""
    rest = 1.0 - fraction
    square = fraction * fraction
    cube = square * fraction
    return np.stack(
        [
            rest * rest * rest / 6.0,
            (4.0 - 6.0 * square + 3.0 * cube) / 6.0,
            (1.0 + 3.0 * (fraction + square - cube)) / 6.0,
            cube / 6.0,
        ]
    )


def window_of(low: Floats, high: Floats, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the slices (z, y, x) of the indices between two corners (x, y, z, inclusive), clipped to a shape."""
    spans = zip(low[::-1], high[::-1], shape, strict=True)
    ends = [(min(max(a, 0), n - 1), min(max(b, 0), n - 1)) for a, b, n in spans]
    return tuple(slice(int(a), int(b) + 1) for a, b in ends)
