"""Where the rows of a fixed region lie: float64 positions from global indices, the same bits for any blocking.

Every kernel fills or moves ``points`` (ndim, rows * columns), components x, y, z, row after row of one plane of the
fixed region. ``base`` (ndim, 4) maps a fixed index to a point: its columns are for x, y, z and the constant. Sums are
associated in one fixed way, and no kernel looks at anything but the voxel's own index and point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from blocks.kernels.lanes import fma

Array = npt.NDArray[Any]

_EPSILON = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True)
def affine_rows(base: Array, plane: int, first: int, left: int, columns: int, points: Array) -> None:
    """Fill ``points`` with the affine image of rows ``first``, ... of a plane, from column ``left`` on.

    Per voxel: 8 * ndim bytes written, ndim fused multiply-adds.
    """
    for row in range(points.shape[1] // columns):
        for c in range(points.shape[0]):
            start = fma(base[c, 1], np.float64(first + row), fma(base[c, 2], np.float64(plane), base[c, 3]))
            step = base[c, 0]
            out = points[c, row * columns : (row + 1) * columns]
            for i in range(columns):
                out[i] = fma(step, np.float64(left + i), start)


@njit(nogil=True, cache=True)
def direct_rows(
    base: Array,
    turn: Array,
    vectors: Array,
    plane: int,
    first: int,
    left: int,
    columns: int,
    origin: Array,
    points: Array,
) -> None:
    """Fill ``points`` with the affine image of rows plus the vectors that lie on the very same voxels.

    Parameters
    ----------
    turn
        (ndim, ndim), from a vector to a displacement of the point.
    vectors
        (ndim, nz, ny, nx), float32 or float64.
    origin
        (3,; x, y, z) fixed index of vector zero.

    Notes
    -----
    Per voxel in 3D: 12 or 24 bytes read, 24 written, 12 fused multiply-adds.
    """
    z = plane - origin[2]
    x = left - origin[0]
    ndim = points.shape[0]
    for row in range(points.shape[1] // columns):
        y = first + row - origin[1]
        ux = vectors[0, z, y, x : x + columns]
        uy = vectors[1, z, y, x : x + columns]
        uz = vectors[ndim - 1, z, y, x : x + columns]
        for c in range(ndim):
            start = fma(base[c, 1], np.float64(first + row), fma(base[c, 2], np.float64(plane), base[c, 3]))
            step, a, b = base[c, 0], turn[c, 0], turn[c, 1]
            # In 2D the last component is the second one again, with no weight.
            d = turn[c, 2] if ndim == 3 else 0.0
            out = points[c, row * columns : (row + 1) * columns]
            if ndim == 3:
                for i in range(columns):
                    moved = fma(d, np.float64(uz[i]), fma(b, np.float64(uy[i]), a * np.float64(ux[i])))
                    out[i] = moved + fma(step, np.float64(left + i), start)
            else:
                for i in range(columns):
                    moved = fma(b, np.float64(uy[i]), a * np.float64(ux[i]))
                    out[i] = moved + fma(step, np.float64(left + i), start)


@njit(nogil=True, cache=True)
def expand_plane(
    vectors: Array,
    cell: int,
    weights: Array,
    rows: Array,
    cells: Array,
    taps: Array,
    inside: Array,
    turn: Array,
    plane: Array,
) -> None:
    """Contract a lattice along z and expand it along x to the columns of the fixed region, once for a whole plane.

    Parameters
    ----------
    vectors
        (ndim, nz, ny, nx), float32 or float64: control points of a B-spline or vectors of a field.
    cell, weights
        First lattice plane, and the weight (taps,) of each.
    rows
        (2,) first lattice row that is needed, and one past the last.
    cells, taps, inside
        Of each column: first lattice column, weights (taps, columns), and whether it lies on the lattice.
    turn
        (ndim, ndim), from a vector to a displacement of the point.
    plane
        (ndim, ny, columns) float64, to be filled.
    """
    ndim, columns = vectors.shape[0], cells.shape[0]
    line = np.empty(vectors.shape[3])
    wide = np.empty((ndim, columns))
    for row in range(rows[0], rows[1]):
        for d in range(ndim):
            source = vectors[d, cell, row]
            for i in range(line.shape[0]):
                line[i] = weights[0] * np.float64(source[i])
            for tap in range(1, weights.shape[0]):
                source = vectors[d, cell + tap, row]
                for i in range(line.shape[0]):
                    line[i] = fma(weights[tap], np.float64(source[i]), line[i])
            _expand_line(line, cells, taps, inside, wide[d])
        for c in range(ndim):
            out = plane[c, row]
            for i in range(columns):
                out[i] = turn[c, 0] * wide[0, i]
            for d in range(1, ndim):
                for i in range(columns):
                    out[i] = fma(turn[c, d], wide[d, i], out[i])


@njit(nogil=True, cache=True)
def _expand_line(line: Array, cells: Array, taps: Array, inside: Array, out: Array) -> None:
    one = np.uint64(1)
    if taps.shape[0] == 4:
        for i in range(cells.shape[0]):
            k = np.uint64(cells[i])
            low = fma(taps[1, i], line[k + one], taps[0, i] * line[k])
            high = fma(taps[3, i], line[k + np.uint64(3)], taps[2, i] * line[k + np.uint64(2)])
            out[i] = low + high if inside[i] else 0.0
    elif taps.shape[0] == 2:
        for i in range(cells.shape[0]):
            k = np.uint64(cells[i])
            out[i] = fma(taps[1, i], line[k + one], taps[0, i] * line[k]) if inside[i] else 0.0
    else:
        for i in range(cells.shape[0]):
            out[i] = line[np.uint64(cells[i])] if inside[i] else 0.0


@njit(nogil=True, cache=True)
def lattice_rows(
    base: Array,
    lattice: Array,
    cells: Array,
    taps: Array,
    inside: Array,
    number: int,
    first: int,
    left: int,
    columns: int,
    points: Array,
) -> None:
    """Fill ``points`` with the affine image of rows plus the displacement contracted along y.

    Parameters
    ----------
    lattice
        (ndim, ny, columns) float64 from :func:`expand_plane`.
    cells, taps, inside
        Of each row of ``points``: first lattice row, weights (taps, rows), and whether it lies on the lattice.
    number
        Index z of the plane.

    Notes
    -----
    Per voxel in 3D with four taps: 24 bytes written, 15 fused multiply-adds, all reads in the nearest cache.
    """
    for row in range(points.shape[1] // columns):
        k = cells[row]
        for c in range(points.shape[0]):
            start = fma(base[c, 1], np.float64(first + row), fma(base[c, 2], np.float64(number), base[c, 3]))
            step = base[c, 0]
            out = points[c, row * columns : (row + 1) * columns]
            if not inside[row]:
                for i in range(columns):
                    out[i] = fma(step, np.float64(left + i), start)
            elif taps.shape[0] == 4:
                _four(lattice[c], k, taps[:, row], start, step, left, out)
            elif taps.shape[0] == 2:
                _two(lattice[c], k, taps[:, row], start, step, left, out)
            else:
                for i in range(columns):
                    out[i] = lattice[c, k, i] + fma(step, np.float64(left + i), start)


@njit(nogil=True, cache=True)
def _four(lattice: Array, k: int, taps: Array, start: float, step: float, left: int, out: Array) -> None:
    w0, w1, w2, w3 = taps[0], taps[1], taps[2], taps[3]
    a, b, c, d = lattice[k], lattice[k + 1], lattice[k + 2], lattice[k + 3]
    for i in range(out.shape[0]):
        place = fma(step, np.float64(left + i), start)
        out[i] = fma(w0, a[i], w1 * b[i]) + fma(w2, c[i], w3 * d[i]) + place


@njit(nogil=True, cache=True)
def _two(lattice: Array, k: int, taps: Array, start: float, step: float, left: int, out: Array) -> None:
    w0, w1 = taps[0], taps[1]
    a, b = lattice[k], lattice[k + 1]
    for i in range(out.shape[0]):
        out[i] = fma(w1, b[i], w0 * a[i]) + fma(step, np.float64(left + i), start)


@njit(nogil=True, cache=True)
def affine_points(matrix: Array, offset: Array, points: Array) -> None:
    """Map ``points`` (ndim, n) in place by ``matrix`` (ndim, ndim) and ``offset`` (ndim,)."""
    ndim = points.shape[0]
    old = np.empty(ndim)
    for i in range(points.shape[1]):
        for c in range(ndim):
            old[c] = points[c, i]
        for c in range(ndim):
            value = matrix[c, 0] * old[0]
            for d in range(1, ndim):
                value = fma(matrix[c, d], old[d], value)
            points[c, i] = value + offset[c]


@njit(nogil=True, cache=True)
def _lattice_index(inverse: Array, origin: Array, points: Array, i: int, index: Array) -> None:
    """Put the continuous index (3,; x, y, z) of point ``i`` into ``index``, associated as ITK does."""
    ndim = points.shape[0]
    for r in range(ndim):
        value = inverse[r, 0] * (points[0, i] - origin[0])
        for c in range(1, ndim):
            value += inverse[r, c] * (points[c, i] - origin[c])
        index[r] = value


@njit(nogil=True, cache=True)
def spline_points(coefficients: Array, inverse: Array, origin: Array, points: Array) -> None:
    """Add the displacement of a B-spline to each of ``points`` (ndim, n) in place, wherever they lie.

    Parameters
    ----------
    coefficients
        (ndim, nz, ny, nx) float64; nz is one in 2D.
    inverse, origin
        World point to lattice index: (ndim, ndim) and (ndim,).

    Notes
    -----
    Per point in 3D: 64 control points of 3 components, about 260 multiply-adds.
    """
    ndim = points.shape[0]
    size = np.array([coefficients.shape[3], coefficients.shape[2], coefficients.shape[1]])
    index, cell, weights = np.zeros(3), np.zeros(3, np.int64), np.zeros((3, 4))
    weights[2, 0] = 1.0
    depth = 4 if ndim == 3 else 1
    total = np.zeros(3)
    for i in range(points.shape[1]):
        _lattice_index(inverse, origin, points, i, index)
        valid = True
        for axis in range(ndim):
            valid &= _spline_axis(index[axis], size[axis], cell, weights, axis)
        if not valid:
            continue
        total[:] = 0.0
        for kz in range(depth):
            for ky in range(4):
                both = weights[2, kz] * weights[1, ky]
                for c in range(ndim):
                    row = coefficients[c, cell[2] + kz, cell[1] + ky]
                    k = cell[0]
                    low = fma(weights[0, 1], row[k + 1], weights[0, 0] * row[k])
                    high = fma(weights[0, 3], row[k + 3], weights[0, 2] * row[k + 2])
                    total[c] = fma(both, low + high, total[c])
        for c in range(ndim):
            points[c, i] += total[c]


@njit(nogil=True, cache=True)
def _spline_axis(index: float, size: int, cell: Array, weights: Array, axis: int) -> bool:
    """Put the first control point and the four weights along one axis; return whether the index is valid."""
    last = size - 2.0
    if not (index >= 1.0 and index <= last * (1.0 + 4 * _EPSILON)):
        return False
    at = min(np.floor(min(index, last)), last - 1.0)
    t = min(index, last) - at
    rest = 1.0 - t
    cell[axis] = np.int64(at) - 1
    weights[axis, 0] = rest * rest * rest / 6.0
    weights[axis, 1] = (4.0 - 6.0 * (t * t) + 3.0 * (t * t * t)) / 6.0
    weights[axis, 2] = (1.0 + 3.0 * (t + t * t - t * t * t)) / 6.0
    weights[axis, 3] = t * t * t / 6.0
    return True


@njit(nogil=True, cache=True)
def field_points(vectors: Array, start: Array, size: Array, inverse: Array, origin: Array, points: Array) -> int:
    """Add the displacement of a dense field to each of ``points`` (ndim, n) in place; count those not in the window.

    Parameters
    ----------
    vectors
        (ndim, nz, ny, nx) float32 or float64, the window of the field in memory.
    start, size
        (3,; x, y, z) first index of the window, and voxels of the whole field.
    inverse, origin
        World point to index of the field: (ndim, ndim) and (ndim,).

    Returns
    -------
    int
        Points on the field whose vectors are not in the window; there must be none.
    """
    ndim = points.shape[0]
    index, fraction = np.zeros(3), np.zeros(3)
    low, high = np.zeros(3, np.int64), np.zeros(3, np.int64)
    total = np.zeros(3)
    missed = 0
    for i in range(points.shape[1]):
        _lattice_index(inverse, origin, points, i, index)
        valid, held = True, True
        for axis in range(ndim):
            n = size[axis]
            valid &= index[axis] >= -0.5 and index[axis] < n - 0.5
            if valid:
                at = min(max(index[axis], 0.0), n - 1.0)
                first = np.int64(np.floor(at))
                fraction[axis] = at - first
                low[axis] = first - start[axis]
                high[axis] = min(first + 1, n - 1) - start[axis]
                held &= low[axis] >= 0 and high[axis] < vectors.shape[3 - axis]
        if not valid:
            continue
        if not held:
            missed += 1
            continue
        total[:] = 0.0
        for corner in range(1 << ndim):
            weight = 1.0
            for axis in range(ndim):
                weight *= fraction[axis] if corner >> axis & 1 else 1.0 - fraction[axis]
            x = high[0] if corner & 1 else low[0]
            y = high[1] if corner & 2 else low[1]
            z = high[2] if corner & 4 else low[2]
            for c in range(ndim):
                total[c] = fma(weight, np.float64(vectors[c, z, y, x]), total[c])
        for c in range(ndim):
            points[c, i] += total[c]
    return missed
