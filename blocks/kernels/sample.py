"""Read a block of the moving image at given positions: nearest voxel or linear interpolation.

The positions are continuous indices of the whole image. Chunk by chunk of a row buffer: first the voxel and the
fraction of every position, then the neighbours side by side, then the blend, so that each step vectorises. A position
with a neighbour outside the block is set right afterwards, one by one; both ways give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from blocks.kernels.lanes import fma, move_pair
from blocks.kernels.rounding import as_voxel, inert

Array = npt.NDArray[Any]

#: Positions taken at a time: the buffers of a chunk stay in the nearest cache.
_CHUNK = 256


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
    Per voxel in 3D: 24 bytes of positions and 8 voxels read, 3 floors, 15 multiply-adds and 8 conversions.
    """
    flat = points.shape[0] == 2
    places, bad = np.zeros(_CHUNK, np.uint32), np.zeros(_CHUNK, np.uint32)
    fractions = np.zeros((3, _CHUNK))
    lanes = np.zeros((4, 2 * _CHUNK), source.dtype)
    missed = 0
    for begin in range(0, points.shape[1], _CHUNK):
        stop = min(begin + _CHUNK, points.shape[1])
        part = points[:, begin:stop]
        if flat:
            wrong = _locate_flat(part, frame, fractions, places, bad)
        else:
            wrong = _locate(part, frame, fractions, places, bad)
        for channel in range(source.shape[0]):
            voxels = source[channel]
            target = out[channel, first + begin : first + stop]
            if wrong < stop - begin and flat:
                _gather_flat(voxels, np.uint64(frame[1, 0]), places, stop - begin, lanes)
                _blend_flat(lanes, fractions, target)
            elif wrong < stop - begin:
                _gather(
                    voxels, np.uint64(frame[1, 0]), np.uint64(frame[1, 0] * frame[1, 1]), places, stop - begin, lanes
                )
                _blend(lanes, fractions, target)
            if wrong > 0:
                missed += _linear_edges(voxels, frame, part, bad, target, background)
    return missed


@njit(nogil=True, cache=True)
def nearest_rows(source: Array, frame: Array, points: Array, out: Array, first: int, background: Any) -> int:  # noqa: ANN401
    """Take the nearest voxel, unchanged, of all channels for each position.

    Parameters and result are those of :func:`linear_rows`. A position on the middle between two voxels takes the
    upper one; half a voxel outside is the voxel at the lower face and background at the upper one.

    Notes
    -----
    Per voxel: 24 bytes of positions and one voxel read, 3 floors, 5 integer multiply-adds.
    """
    places, bad = np.zeros(_CHUNK, np.uint32), np.zeros(_CHUNK, np.uint32)
    missed = 0
    for begin in range(0, points.shape[1], _CHUNK):
        stop = min(begin + _CHUNK, points.shape[1])
        part = points[:, begin:stop]
        wrong = _locate_nearest(part, frame, places, bad)
        for channel in range(source.shape[0]):
            voxels = source[channel]
            target = out[channel, first + begin : first + stop]
            for i in range(stop - begin):
                target[i] = voxels[places[i]]
            if wrong > 0:
                for i in range(stop - begin):
                    if bad[i]:
                        target[i] = background
                        missed += _in_image(part, i, frame)
    return missed


@njit(nogil=True, cache=True)
def _locate(points: Array, frame: Array, fractions: Array, places: Array, bad: Array) -> int:
    """Find voxel and fractions of each position; flag those whose eight neighbours are not all in the block."""
    px, py, pz = points[0], points[1], points[2]
    fx, fy, fz = fractions[0], fractions[1], fractions[2]
    x0, y0, z0 = np.int32(frame[0, 0]), np.int32(frame[0, 1]), np.int32(frame[0, 2])
    mx, my, mz = np.uint32(frame[1, 0] - 1), np.uint32(frame[1, 1] - 1), np.uint32(frame[1, 2] - 1)
    sy, sz = np.uint32(frame[1, 0]), np.uint32(frame[1, 0] * frame[1, 1])
    wrong = np.uint32(0)
    for i in range(px.shape[0]):
        x, y, z = np.floor(px[i]), np.floor(py[i]), np.floor(pz[i])
        fx[i], fy[i], fz[i] = px[i] - x, py[i] - y, pz[i] - z
        # A position that no int32 holds (NaN too) becomes the least one, which as unsigned is beyond every block.
        ix, iy, iz = np.uint32(np.int32(x) - x0), np.uint32(np.int32(y) - y0), np.uint32(np.int32(z) - z0)
        out = np.uint32((ix >= mx) | (iy >= my) | (iz >= mz))
        bad[i] = out
        wrong = np.uint32(wrong + out)
        places[i] = np.uint32(np.uint32(iz * sz) + np.uint32(iy * sy) + ix) * np.uint32(np.uint32(1) - out)
    return np.int64(wrong)


@njit(nogil=True, cache=True)
def _locate_flat(points: Array, frame: Array, fractions: Array, places: Array, bad: Array) -> int:
    """Find voxel and fractions of each position in 2D; flag those whose four neighbours are not all in the block."""
    px, py = points[0], points[1]
    fx, fy = fractions[0], fractions[1]
    x0, y0 = np.int32(frame[0, 0]), np.int32(frame[0, 1])
    mx, my = np.uint32(frame[1, 0] - 1), np.uint32(frame[1, 1] - 1)
    sy = np.uint32(frame[1, 0])
    wrong = np.uint32(0)
    for i in range(px.shape[0]):
        x, y = np.floor(px[i]), np.floor(py[i])
        fx[i], fy[i] = px[i] - x, py[i] - y
        ix, iy = np.uint32(np.int32(x) - x0), np.uint32(np.int32(y) - y0)
        out = np.uint32((ix >= mx) | (iy >= my))
        bad[i] = out
        wrong = np.uint32(wrong + out)
        places[i] = np.uint32(np.uint32(iy * sy) + ix) * np.uint32(np.uint32(1) - out)
    return np.int64(wrong)


@njit(nogil=True, cache=True)
def _locate_nearest(points: Array, frame: Array, places: Array, bad: Array) -> int:
    """Find the voxel nearest to each position; flag those that are not in the block."""
    wrong = np.uint32(0)
    n = points.shape[1]
    for i in range(n):
        places[i] = np.uint32(0)
        bad[i] = np.uint32(0)
    stride = 1
    for axis in range(points.shape[0]):
        line, low, size = points[axis], np.int32(frame[0, axis]), np.uint32(frame[1, axis])
        step = np.uint32(stride)
        for i in range(n):
            index = np.uint32(np.int32(np.floor(line[i] + 0.5)) - low)
            bad[i] |= np.uint32(index >= size)
            places[i] = np.uint32(places[i] + np.uint32(index * step))
        stride *= frame[1, axis]
    for i in range(n):
        wrong = np.uint32(wrong + bad[i])
        places[i] = np.uint32(places[i] * np.uint32(np.uint32(1) - bad[i]))
    return np.int64(wrong)


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
def _gather_flat(voxels: Array, sy: Any, places: Array, n: int, lanes: Array) -> None:  # noqa: ANN401
    a, b = lanes[0], lanes[1]
    for i in range(n):
        at, k = np.uint64(2 * i), np.uint64(places[i])
        move_pair(a, at, voxels, k)
        move_pair(b, at, voxels, k + sy)


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
        low = _between(
            _between(a[2 * i], a[2 * i + 1], fx[i], lanes), _between(b[2 * i], b[2 * i + 1], fx[i], lanes), fy[i], lanes
        )
        high = _between(
            _between(c[2 * i], c[2 * i + 1], fx[i], lanes), _between(d[2 * i], d[2 * i + 1], fx[i], lanes), fy[i], lanes
        )
        out[i] = as_voxel(_between(low, high, fz[i], lanes), out)


@njit(nogil=True, cache=True)
def _blend_flat(lanes: Array, fractions: Array, out: Array) -> None:
    a, b = lanes[0], lanes[1]
    fx, fy = fractions[0], fractions[1]
    for i in range(out.shape[0]):
        low = _between(a[2 * i], a[2 * i + 1], fx[i], lanes)
        high = _between(b[2 * i], b[2 * i + 1], fx[i], lanes)
        out[i] = as_voxel(_between(low, high, fy[i], lanes), out)


@njit(nogil=True, cache=True)
def _in_image(points: Array, i: int, frame: Array) -> bool:
    """Whether a position is inside the image: from half a voxel before the first centre to less than half after."""
    inside = True
    for axis in range(points.shape[0]):
        inside &= points[axis, i] >= -0.5 and points[axis, i] < frame[2, axis] - 0.5
    return inside


@njit(nogil=True, cache=True)
def _linear_edges(voxels: Array, frame: Array, points: Array, bad: Array, out: Array, background: Any) -> int:  # noqa: ANN401
    """Interpolate at the flagged positions, with the edge value beyond the outer centres; count the missed ones."""
    low, high, fraction = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3)
    sy, sz = frame[1, 0], frame[1, 0] * frame[1, 1]
    missed = 0
    for i in range(out.shape[0]):
        if not bad[i]:
            continue
        if not _in_image(points, i, frame):
            out[i] = background
            continue
        held = True
        for axis in range(points.shape[0]):
            place = np.floor(points[axis, i])
            index = np.int64(place)
            fraction[axis] = points[axis, i] - place if index >= 0 else 0.0
            low[axis] = max(index, 0) - frame[0, axis]
            high[axis] = min(index + 1, frame[2, axis] - 1) - frame[0, axis]
            # Nothing is read from a neighbour of no weight, so the block need not hold it.
            if fraction[axis] == 0.0:
                high[axis] = low[axis]
            held &= low[axis] >= 0 and high[axis] < frame[1, axis]
        if not held:
            missed += 1
            continue
        k = low[2] * sz + low[1] * sy + low[0]
        dx, dy, dz = high[0] - low[0], (high[1] - low[1]) * sy, (high[2] - low[2]) * sz
        below = _between(
            _between(voxels[k], voxels[k + dx], fraction[0], voxels),
            _between(voxels[k + dy], voxels[k + dy + dx], fraction[0], voxels),
            fraction[1],
            voxels,
        )
        above = _between(
            _between(voxels[k + dz], voxels[k + dz + dx], fraction[0], voxels),
            _between(voxels[k + dz + dy], voxels[k + dz + dy + dx], fraction[0], voxels),
            fraction[1],
            voxels,
        )
        out[i] = as_voxel(_between(below, above, fraction[2], voxels), out)
    return missed
