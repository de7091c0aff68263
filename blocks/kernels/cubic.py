"""Cubic B-spline interpolation of a block: spline coefficients from voxels, then a value from coefficients.

The prefilter's impulse response, sqrt(3) (sqrt(3) - 2)^|k|, is cut at a fixed radius: a coefficient is a sum over 33
voxels an axis that depends on nothing else, so that blocks agree to the bit. What is cut is 7e-10 of the whole. The
image is mirrored about its outer centres, as ITK does (Unser, IEEE Signal Processing Magazine 16(6), 1999).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled
from blocks.kernels.lanes import fma
from blocks.kernels.rounding import as_voxel
from blocks.region import Region

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

#: Voxels on either side of a coefficient that it is computed from.
RADIUS = 16


def _response() -> Floats:
    """Return the impulse response (RADIUS + 1,) from the middle outwards; both sides together sum to one."""
    half = np.power(np.sqrt(3.0) - 2.0, np.arange(RADIUS + 1))
    return np.asarray(half / (half[0] + 2 * half[1:].sum()))


_RESPONSE = _response()


def coefficients(block: Array, read: Region, *, shape: tuple[int, ...]) -> Floats:
    """Return the spline coefficients of a block of the image, one channel.

    Parameters
    ----------
    block
        Voxels ([z,] y, x) of the region ``read``.
    read
        Where the block is in the image.
    shape
        The whole image's, array order.

    Returns
    -------
    numpy.ndarray
        float64, the block's shape; right where the block holds the voxels within 16 on every axis, or the image ends.

    Notes
    -----
    Per voxel and axis: 17 fused multiply-adds.
    """
    out = np.array(block, dtype=np.float64, order="C")
    solid = out.reshape((-1, *out.shape[-2:]))
    # Lines of the axis in the middle of (outer, lines, inner), filtered a group of neighbouring lines at a time.
    views = [solid.reshape(-1, solid.shape[2], 1), solid, solid.reshape(1, solid.shape[0], -1)]
    for axis, view in enumerate(views[: out.ndim]):
        k = out.ndim - 1 - axis
        source = mirrored(np.arange(read.start[k] - RADIUS, read.stop[k] + RADIUS), shape[k]) - read.start[k]
        _filter(view, np.clip(source, 0, view.shape[1] - 1), _RESPONSE)
    return out


def mirrored(index: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """Return indices (n,) of an axis of an image folded into it, mirrored about the centres of the outer voxels."""
    period = max(2 * (size - 1), 1)
    folded = np.abs(index) % period
    return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(index)


@compiled
def _filter(lines: Array, source: Array, response: Array) -> None:
    """Filter ``lines`` (outer, n, inner) along the middle axis in place.

    ``source`` (n + 2 * RADIUS,) says for every tap of the padded line which element it is.
    """
    outer, n, inner = lines.shape
    width = min(inner, 64)
    padded = np.empty((n + 2 * RADIUS, width))
    total = np.empty(width)
    for block in range(outer):
        for left in range(0, inner, width):
            right = min(left + width, inner)
            for tap in range(source.shape[0]):
                for i in range(right - left):
                    padded[tap, i] = lines[block, source[tap], left + i]
            for place in range(n):
                for i in range(right - left):
                    total[i] = 0.0
                # From the smallest weight to the largest: the order is the same for every coefficient.
                for k in range(RADIUS, 0, -1):
                    before, after = padded[place + RADIUS - k], padded[place + RADIUS + k]
                    for i in range(right - left):
                        total[i] = fma(response[k], before[i] + after[i], total[i])
                middle = padded[place + RADIUS]
                for i in range(right - left):
                    lines[block, place, left + i] = fma(response[0], middle[i], total[i])


@compiled
def cubic_rows(source: Array, frame: Array, points: Array, out: Array, first: int, background: Any) -> int:  # noqa: ANN401
    """Interpolate with cubic B-splines, one voxel a position.

    Parameters
    ----------
    source
        (1, voxels of the block) float64 coefficients.
    frame
        (4, 3) int64, columns x, y, z: first index of the block, its voxels, the whole image's voxels.
    points
        (ndim, n) float64 continuous indices, components x, y, z.
    out
        (1, voxels of the output), filled from voxel ``first`` on.
    background
        Value of a position outside the image.

    Returns
    -------
    int
        Positions inside the image whose coefficients are not in the block; there must be none.

    Notes
    -----
    Per voxel in 3D: 64 coefficients read, 80 multiply-adds.
    """
    values, target = source[0], out[0]
    ndim = points.shape[0]
    weights, places = np.zeros((3, 4)), np.zeros((3, 4), np.int64)
    weights[2, 0] = 1.0
    depth = 4 if ndim == 3 else 1
    missed = 0
    for i in range(points.shape[1]):
        inside, held, stride = True, True, 1
        for axis in range(ndim):
            p = points[axis, i]
            inside &= p >= -0.5 and p < frame[2, axis] - 0.5
            if inside:
                held &= _taps(p, frame[:, axis], stride, weights[axis], places[axis])
            stride *= frame[1, axis]
        if not inside or not held:
            missed += inside and not held
            target[first + i] = background
            continue
        total = 0.0
        for kz in range(depth):
            for ky in range(4):
                k = places[2, kz] + places[1, ky]
                low = fma(weights[0, 1], values[k + places[0, 1]], weights[0, 0] * values[k + places[0, 0]])
                high = fma(weights[0, 3], values[k + places[0, 3]], weights[0, 2] * values[k + places[0, 2]])
                total = fma(weights[2, kz] * weights[1, ky], low + high, total)
        target[first + i] = as_voxel(total, out)
    return missed


@compiled
def _taps(position: float, frame: Array, stride: int, weights: Array, places: Array) -> bool:
    """Put weights and places of four coefficients along one axis; return whether the block holds them."""
    floor = np.floor(position)
    t = position - floor
    rest, square, cube = 1.0 - t, t * t, t * t * t
    weights[0] = rest * rest * rest / 6.0
    weights[1] = (4.0 - 6.0 * square + 3.0 * cube) / 6.0
    weights[2] = (1.0 + 3.0 * (t + square - cube)) / 6.0
    weights[3] = cube / 6.0
    held = True
    for tap in range(4):
        index = int(floor) - 1 + tap
        size = frame[2]
        if size == 1:
            index = 0
        elif index < 0 or index >= size:
            period = 2 * (size - 1)
            index = abs(index) % period
            index = min(index, period - index)
        index -= frame[0]
        held &= index >= 0 and index < frame[1]
        places[tap] = index * stride
    return held
