"""Read a block of the moving image at given positions: nearest voxel or linear interpolation.

The positions are continuous indices of the whole image. Chunk by chunk, with row buffers that stay in the nearest
cache: first the voxel and the fractions of every position, axis by axis; then its neighbours side by side; then the
blend. Each step is a plain loop that vectorises. Positions with a neighbour outside the block are rare: their
neighbours are put in place one by one before the blend, which is the same for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from blocks.kernels.lanes import fma, move_pair
from blocks.kernels.rounding import as_voxel, inert

Array = npt.NDArray[Any]

#: Positions taken at a time.
_CHUNK = 256
#: What a position needs: nothing special, its neighbours one by one, or the background.
_PLAIN, _EDGE, _OUTSIDE = np.uint32(0), np.uint32(1), np.uint32(2)


@njit(nogil=True, cache=True)
def linear_rows(source: Array, frame: Array, points: Array, out: Array, first: int, background: Any) -> int:  # noqa: ANN401
    """Interpolate linearly, one voxel of all channels a position.

    Parameters
    ----------
    source
        (channels, voxels of the block), any type but bool and float16.
    frame
        (3, 3) int64, columns x, y, z: first index of the block, voxels of the block, voxels of the whole image.
    points
        (ndim, n) float64 continuous indices, components x, y, z.
    out
        (channels, voxels of the output), the type of ``source``; filled from voxel ``first`` on.
    background
        Value of a position more than half a voxel outside the image (ITK: exactly half outside belongs to the image
        at the lower face alone). Within half a voxel of the outer centres, the edge value holds.

    Returns
    -------
    int
        Positions inside the image whose voxels are not in the block; there must be none.

    Notes
    -----
    Per voxel: 24 bytes of positions and 8 voxels read; 3 floors, 14 additions, 7 fused multiply-adds, 9 conversions.
    """
    places, needs = np.zeros(_CHUNK, np.uint32), np.zeros(_CHUNK, np.uint32)
    fractions, steps = np.zeros((3, _CHUNK)), np.zeros((3, _CHUNK), np.uint32)
    lanes = np.zeros((4, 2 * _CHUNK), source.dtype)
    sy = np.uint64(frame[1, 0])
    sz = np.uint64(frame[1, 0] * frame[1, 1] if points.shape[0] == 3 else 0)
    missed = 0
    for begin in range(0, points.shape[1], _CHUNK):
        n = min(_CHUNK, points.shape[1] - begin)
        places[:], needs[:] = 0, 0
        stride = 1
        for axis in range(points.shape[0]):
            line = points[axis, begin : begin + n]
            _locate(line, frame[0, axis], frame[1, axis] - 1, stride, places, needs, fractions[axis])
            stride *= frame[1, axis]
        special = _drop_special(places, needs, n)
        if special > 0:
            missed += _settle(points, begin, n, frame, places, needs, fractions, steps)
        for channel in range(source.shape[0]):
            voxels = source[channel]
            if special < n:
                _gather(voxels, sy, sz, places, n, lanes)
            if special > 0:
                _gather_edges(voxels, places, needs, steps, n, lanes)
            target = out[channel, first + begin : first + begin + n]
            _blend(lanes, fractions, target)
            if special > 0:
                _fill_outside(needs, n, target, background)
    return missed


@njit(nogil=True, cache=True)
def nearest_rows(source: Array, frame: Array, points: Array, out: Array, first: int, background: Any) -> int:  # noqa: ANN401
    """Take the nearest voxel, unchanged, of all channels for each position.

    Parameters and result are those of :func:`linear_rows`. A position on the middle between two voxels takes the
    upper one; half a voxel outside is the voxel at the lower face and background at the upper one.

    Notes
    -----
    Per voxel: 24 bytes of positions and one voxel read; 3 floors, 3 additions, 5 integer multiply-adds.
    """
    places, needs = np.zeros(_CHUNK, np.uint32), np.zeros(_CHUNK, np.uint32)
    missed = 0
    for begin in range(0, points.shape[1], _CHUNK):
        n = min(_CHUNK, points.shape[1] - begin)
        places[:], needs[:] = 0, 0
        stride = 1
        for axis in range(points.shape[0]):
            _locate_nearest(points[axis, begin : begin + n], frame[0, axis], frame[1, axis], stride, places, needs)
            stride *= frame[1, axis]
        special = _drop_special(places, needs, n)
        if special > 0:
            for i in range(n):
                missed += needs[i] != _PLAIN and _in_image(points, begin + i, frame)
                needs[i] *= _OUTSIDE
        for channel in range(source.shape[0]):
            voxels = source[channel]
            target = out[channel, first + begin : first + begin + n]
            for i in range(n):
                target[i] = voxels[places[i]]
            if special > 0:
                _fill_outside(needs, n, target, background)
    return missed


@njit(nogil=True, cache=True)
def _locate(line: Array, first: int, pairs: int, stride: int, places: Array, needs: Array, fractions: Array) -> None:
    """Add one axis to the place of the lower neighbour and find the fraction; flag what has no pair in the block."""
    low, end, step = np.int32(first), np.uint32(pairs), np.uint32(stride)
    for i in range(line.shape[0]):
        floor = np.floor(line[i])
        fractions[i] = line[i] - floor
        # A position that no int32 holds (NaN too) becomes the least one, which as unsigned is beyond every block.
        index = np.uint32(np.int32(floor) - low)
        needs[i] |= np.uint32(index >= end)
        places[i] = np.uint32(places[i] + np.uint32(index * step))


@njit(nogil=True, cache=True)
def _locate_nearest(line: Array, first: int, size: int, stride: int, places: Array, needs: Array) -> None:
    """Add one axis to the place of the nearest voxel; flag what is not in the block."""
    low, end, step = np.int32(first), np.uint32(size), np.uint32(stride)
    for i in range(line.shape[0]):
        index = np.uint32(np.int32(np.floor(line[i] + 0.5)) - low)
        needs[i] |= np.uint32(index >= end)
        places[i] = np.uint32(places[i] + np.uint32(index * step))


@njit(nogil=True, cache=True)
def _drop_special(places: Array, needs: Array, n: int) -> int:
    """Point the flagged positions at voxel zero of the block, and count them."""
    count = np.uint32(0)
    for i in range(n):
        count = np.uint32(count + needs[i])
        places[i] = np.uint32(places[i] * np.uint32(np.uint32(1) - needs[i]))
    return int(count)


@njit(nogil=True, cache=True)
def _in_image(points: Array, i: int, frame: Array) -> bool:
    """Whether a position is inside the image: from half a voxel before the first centre to less than half after."""
    inside = True
    for axis in range(points.shape[0]):
        inside &= points[axis, i] >= -0.5 and points[axis, i] < frame[2, axis] - 0.5
    return inside


@njit(nogil=True, cache=True)
def _settle(
    points: Array, begin: int, n: int, frame: Array, places: Array, needs: Array, fractions: Array, steps: Array
) -> int:
    """Find lower neighbour, fractions and steps to the upper one of flagged positions, or that they are outside.

    Beyond the outer centres, both neighbours are the outer voxel. Returns how many have neighbours missing.
    """
    missed = 0
    for i in range(n):
        if needs[i] == _PLAIN:
            continue
        if not _in_image(points, begin + i, frame):
            needs[i] = _OUTSIDE
            continue
        place, stride, held = 0, 1, True
        for axis in range(points.shape[0]):
            floor = np.floor(points[axis, begin + i])
            index = np.int64(floor)
            fraction = points[axis, begin + i] - floor if index >= 0 else 0.0
            low = max(index, 0) - frame[0, axis]
            # Nothing is read from a neighbour of no weight, so the block need not hold it.
            paired = fraction > 0.0 and index + 1 < frame[2, axis]
            held &= low >= 0 and low + paired < frame[1, axis]
            fractions[axis, i] = fraction
            steps[axis, i] = np.uint32(stride if paired else 0)
            place += low * stride
            stride *= frame[1, axis]
        places[i] = np.uint32(place if held else 0)
        if not held:
            missed += 1
            needs[i] = _OUTSIDE
    return missed


@njit(nogil=True, cache=True)
def _gather(voxels: Array, sy: Any, sz: Any, places: Array, n: int, lanes: Array) -> None:  # noqa: ANN401
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    for i in range(n):
        at, k = np.uint64(2 * i), np.uint64(places[i])
        move_pair(a, at, voxels, k)
        move_pair(b, at, voxels, k + sy)
        move_pair(c, at, voxels, k + sz)
        move_pair(d, at, voxels, k + sy + sz)


@njit(nogil=True, cache=True)
def _gather_edges(voxels: Array, places: Array, needs: Array, steps: Array, n: int, lanes: Array) -> None:
    for i in range(n):
        if needs[i] == _EDGE:
            for corner in range(4):
                k = places[i] + np.uint64(steps[1, i] * (corner & 1)) + np.uint64(steps[2, i] * (corner >> 1))
                lanes[corner, 2 * i] = voxels[k]
                lanes[corner, 2 * i + 1] = voxels[k + np.uint64(steps[0, i])]


@njit(nogil=True, cache=True)
def _between(low: Any, high: Any, fraction: float, like: Array) -> float:  # noqa: ANN401
    """Return ``low + (high - low) * fraction``, rounded once after the difference."""
    a, b = np.float64(low), np.float64(high)
    return a if inert(fraction, like) else fma(b - a, fraction, a)


@njit(nogil=True, cache=True)
def _blend(lanes: Array, fractions: Array, out: Array) -> None:
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    fx, fy, fz = fractions[0], fractions[1], fractions[2]
    for i in range(out.shape[0]):
        x, y = fx[i], fy[i]
        front = _between(a[2 * i], a[2 * i + 1], x, lanes)
        below = _between(b[2 * i], b[2 * i + 1], x, lanes)
        front = _between(front, below, y, lanes)
        back = _between(c[2 * i], c[2 * i + 1], x, lanes)
        below = _between(d[2 * i], d[2 * i + 1], x, lanes)
        back = _between(back, below, y, lanes)
        out[i] = as_voxel(_between(front, back, fz[i], lanes), out)


@njit(nogil=True, cache=True)
def _fill_outside(needs: Array, n: int, out: Array, background: Any) -> None:  # noqa: ANN401
    for i in range(n):
        if needs[i] == _OUTSIDE:
            out[i] = background
