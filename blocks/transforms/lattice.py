"""What B-splines and displacement fields share: where a world point lies on their lattice, and hulls over a window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid

Floats = npt.NDArray[np.float64]

#: Stands for an infinite displacement, so that a zero of a matrix times it is zero.
FAR = 1e100


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


def extremes(window: npt.NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the least and the largest value (ndim,) of each component of a window (ndim, [z,] y, x), signed.

    NaN moves a point nowhere that can be read, so it does not count; a component of NaN alone is [0, 0].
    """
    least, most = np.zeros(len(window)), np.zeros(len(window))
    for component, values in enumerate(window):
        # Plane by plane, so that the second pass finds the plane in the cache.
        low = float(np.min([np.min(plane) for plane in values]))
        high = float(np.max([np.max(plane) for plane in values]))
        if not np.isfinite(low + high):
            known = values[~np.isnan(values)]
            low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        least[component], most[component] = max(low, -FAR), min(high, FAR)
    return least, most


def window_of(low: Floats, high: Floats, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the slices (z, y, x) of the indices between two corners (x, y, z, inclusive), clipped to a shape."""
    spans = zip(low[::-1], high[::-1], shape, strict=True)
    ends = [(min(max(a, 0), n - 1), min(max(b, 0), n - 1)) for a, b, n in spans]
    return tuple(slice(int(a), int(b) + 1) for a, b in ends)
