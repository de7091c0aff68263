"""Move positions one by one, wherever they are: what comes after a first stage, or has axes of its own.

``points`` is (ndim, n) float64, components x, y, z, and is changed in place; what becomes of a point depends on it
alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled
from blocks.kernels.lanes import fma

Array = npt.NDArray[Any]

_EPSILON = float(np.finfo(np.float64).eps)


@compiled
def affine_points(matrix: Array, before: Array, after: Array, points: Array) -> None:
    """Map ``points`` by ``matrix (x + before) + after``: (ndim, ndim), (ndim,), (ndim,); associated as ITK does.

    Per point in 3D: 48 bytes read and written, 9 multiplications, 12 additions.
    """
    if points.shape[0] == 2:
        px, py = points[0], points[1]
        a, b, c, d = matrix[0, 0], matrix[0, 1], matrix[1, 0], matrix[1, 1]
        for i in range(px.shape[0]):
            x, y = px[i] + before[0], py[i] + before[1]
            px[i] = (a * x + b * y) + after[0]
            py[i] = (c * x + d * y) + after[1]
        return
    px, py, pz = points[0], points[1], points[2]
    a, b, c = matrix[0, 0], matrix[0, 1], matrix[0, 2]
    d, e, f = matrix[1, 0], matrix[1, 1], matrix[1, 2]
    g, h, k = matrix[2, 0], matrix[2, 1], matrix[2, 2]
    for i in range(px.shape[0]):
        x, y, z = px[i] + before[0], py[i] + before[1], pz[i] + before[2]
        px[i] = ((a * x + b * y) + c * z) + after[0]
        py[i] = ((d * x + e * y) + f * z) + after[1]
        pz[i] = ((g * x + h * y) + k * z) + after[2]


@compiled
def _index(inverse: Array, row: int, dx: float, dy: float, dz: float) -> Any:  # noqa: ANN401 - float64
    """Return one continuous index on a lattice, associated as ITK does."""
    return inverse[row, 0] * dx + inverse[row, 1] * dy + inverse[row, 2] * dz


@compiled
def _spline_axis(index: float, size: int) -> tuple[bool, Any, float]:
    """Return whether an index is in the valid region, the first of its control points, and the fraction in its cell."""
    last = size - 2.0
    valid = index >= 1.0 and index <= last * (1.0 + 4 * _EPSILON)
    at = min(index, last) if valid else 1.0
    # The upper end belongs to the last cell: there is no control point beyond it.
    cell = min(np.floor(at), last - 1.0)
    return valid, np.uint64(np.int64(cell) - 1), at - cell


@compiled
def _spline_weights(t: float, weights: Array) -> None:
    rest, square, cube = 1.0 - t, t * t, t * t * t
    weights[0] = rest * rest * rest / 6.0
    weights[1] = (4.0 - 6.0 * square + 3.0 * cube) / 6.0
    weights[2] = (1.0 + 3.0 * (t + square - cube)) / 6.0
    weights[3] = cube / 6.0


@compiled
def spline_points(coefficients: Array, inverse: Array, origin: Array, points: Array) -> None:
    """Add the displacement of a B-spline to each point in its valid region.

    Parameters
    ----------
    coefficients
        (ndim, nz, ny, nx) float64, contiguous; nz is one in 2D.
    inverse, origin
        World point to lattice index: (3, 3) and (3,), zero where they have to do with z in 2D.

    Notes
    -----
    Per point in 3D: 64 control points of 3 components read, 240 multiply-adds.
    """
    ndim, nz, ny, nx = coefficients.shape
    flat = coefficients.reshape(-1)
    px, py, pz = points[0], points[1], points[ndim - 1]
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    whole, sz, sy = np.uint64(nz * ny * nx), np.uint64(ny * nx), np.uint64(nx)
    wx, wy, wz = np.zeros(4), np.zeros(4), np.ones(4)
    depth = 4 if ndim == 3 else 1
    oz = origin[2] if ndim == 3 else 0.0
    for i in range(px.shape[0]):
        dx, dy = px[i] - origin[0], py[i] - origin[1]
        dz = pz[i] - oz if ndim == 3 else 0.0
        valid_x, cx, tx = _spline_axis(_index(inverse, 0, dx, dy, dz), nx)
        valid_y, cy, ty = _spline_axis(_index(inverse, 1, dx, dy, dz), ny)
        cz = np.uint64(0)
        if ndim == 3:
            valid_z, cz, tz = _spline_axis(_index(inverse, 2, dx, dy, dz), nz)
            valid_x = valid_x and valid_z
            _spline_weights(tz, wz)
        if not (valid_x and valid_y):
            continue
        _spline_weights(tx, wx)
        _spline_weights(ty, wy)
        x0, x1, x2, x3 = wx[0], wx[1], wx[2], wx[3]
        corner = cz * sz + cy * sy + cx
        ux, uy, uz = 0.0, 0.0, 0.0
        for kz in range(depth):
            for ky in range(4):
                k = corner + np.uint64(kz) * sz + np.uint64(ky) * sy
                weight = wz[kz] * wy[ky]
                low = fma(x0, flat[k], x1 * flat[k + one])
                ux = fma(weight, low + fma(x2, flat[k + two], x3 * flat[k + three]), ux)
                k += whole
                low = fma(x0, flat[k], x1 * flat[k + one])
                uy = fma(weight, low + fma(x2, flat[k + two], x3 * flat[k + three]), uy)
                if ndim == 3:
                    k += whole
                    low = fma(x0, flat[k], x1 * flat[k + one])
                    uz = fma(weight, low + fma(x2, flat[k + two], x3 * flat[k + three]), uz)
        px[i] += ux
        py[i] += uy
        if ndim == 3:
            pz[i] += uz


@compiled
def _field_axis(index: float, size: int, start: int) -> tuple[bool, int, int, Any]:
    """Return whether an index is on the field, its two voxels counted from ``start``, and the fraction between them."""
    valid = index >= -0.5 and index < size - 0.5
    at = min(max(index, 0.0), size - 1.0) if valid else 0.0
    low = int(np.floor(at))
    return valid, low - start, min(low + 1, size - 1) - start, at - low


@compiled
def field_points(vectors: Array, start: Array, size: Array, inverse: Array, origin: Array, points: Array) -> int:
    """Add the displacement of a dense field to each point on it; return how many need vectors that are not there.

    Parameters
    ----------
    vectors
        (ndim, nz, ny, nx) float32 or float64, contiguous: the window of the field in memory.
    start, size
        (3,; x, y, z) first index of the window, and voxels of the whole field.
    inverse, origin
        World point to index of the field: (3, 3) and (3,), zero where they have to do with z in 2D.

    Returns
    -------
    int
        Points on the field whose vectors are outside the window; there must be none.

    Notes
    -----
    Per point in 3D: 8 voxels of 3 components read, 21 multiply-adds.
    """
    ndim, nz, ny, nx = vectors.shape
    flat = vectors.reshape(-1)
    px, py, pz = points[0], points[1], points[ndim - 1]
    missed = 0
    for i in range(px.shape[0]):
        dx, dy = px[i] - origin[0], py[i] - origin[1]
        dz = pz[i] - origin[2] if ndim == 3 else 0.0
        on_x, left, right, tx = _field_axis(_index(inverse, 0, dx, dy, dz), size[0], start[0])
        on_y, top, bottom, ty = _field_axis(_index(inverse, 1, dx, dy, dz), size[1], start[1])
        on_z, front, back, tz = _field_axis(_index(inverse, 2, dx, dy, dz), size[2], start[2])
        if not (on_x and on_y and on_z):
            continue
        if left < 0 or top < 0 or front < 0 or right >= nx or bottom >= ny or back >= nz:
            missed += 1
            continue
        a, b = np.uint64((front * ny + top) * nx), np.uint64((front * ny + bottom) * nx)
        c, d = np.uint64((back * ny + top) * nx), np.uint64((back * ny + bottom) * nx)
        wa, wb, wc, wd = (1.0 - ty) * (1.0 - tz), ty * (1.0 - tz), (1.0 - ty) * tz, ty * tz
        x0, x1, rest = np.uint64(left), np.uint64(right), 1.0 - tx
        for component in range(ndim):
            va = fma(tx, np.float64(flat[a + x1]), rest * np.float64(flat[a + x0]))
            vb = fma(tx, np.float64(flat[b + x1]), rest * np.float64(flat[b + x0]))
            vc = fma(tx, np.float64(flat[c + x1]), rest * np.float64(flat[c + x0]))
            vd = fma(tx, np.float64(flat[d + x1]), rest * np.float64(flat[d + x0]))
            points[component, i] += fma(wa, va, wb * vb) + fma(wc, vc, wd * vd)
            whole = np.uint64(nz * ny * nx)
            a, b, c, d = a + whole, b + whole, c + whole, d + whole
    return missed
