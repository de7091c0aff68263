"""Read a block of the moving image at given positions: nearest voxel or linear interpolation.

The positions are continuous indices of the whole image. Chunk by chunk, with row buffers that stay in the nearest
cache: first the voxel and the fractions of every position, axis by axis; then its neighbours side by side; then the
blend. Each step is a plain loop that vectorises. Positions beyond the outer centres are rare: they are put right one
by one before the blend, which is the same for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled
from blocks.kernels.faces import CHUNK, fill, flag_inside, set_aside, settle
from blocks.kernels.lanes import move_pair, prefetch, widest
from blocks.kernels.rounding import as_voxel, weighted

Array = npt.NDArray[Any]

#: Positions that mostly read the same cache lines: along a row of the image, and across its rows.
_NEAR, _ACROSS = 8, 2


@compiled
def linear_rows(source: Array, frame: Array, points: Array, out: Array, first: int, background: Any) -> int:  # noqa: ANN401
    """Interpolate linearly, one voxel of all channels a position.

    Parameters
    ----------
    source
        (channels, voxels of the block), any type but bool and float16; the block has at least two voxels an axis, one
        twice where the image has one.
    frame
        (4, 3) int64, columns x, y, z: first index of the block, its voxels, the whole image's voxels, and pairs of
        neighbours in the block, none where the image has one voxel.
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
    Per voxel: 24 bytes of positions and 8 voxels read; 3 floors, 17 additions, 7 multiplications, 9 conversions.
    """
    widest()
    places, special, which = np.zeros(CHUNK, np.uint32), np.zeros(CHUNK, np.uint32), np.zeros(CHUNK, np.uint32)
    fractions, lanes = np.zeros((3, CHUNK)), np.zeros((4, 2 * CHUNK), source.dtype)
    sy = np.uint64(frame[1, 0])
    sz = np.uint64(frame[1, 0] * frame[1, 1] if points.shape[0] == 3 else 0)
    missed = 0
    for begin in range(0, points.shape[1], CHUNK):
        n = min(CHUNK, points.shape[1] - begin)
        px, py, pz = points[0, begin : begin + n], points[1, begin : begin + n], points[-1, begin : begin + n]
        if points.shape[0] == 3:
            _locate(px, py, pz, frame, fractions, places, special)
        else:
            _locate_flat(px, py, frame, fractions, places, special)
        count = set_aside(special, n, places, which)
        _touch(source[0], sy, sz, places, n)
        outside = 0
        if count > 0:
            flag_inside(points, begin, n, frame, special)
            outside, missing = settle(points, begin, frame, special, which, count, places, fractions)
            missed += missing
        for channel in range(source.shape[0]):
            voxels = source[channel]
            target = out[channel, first + begin : first + begin + n]
            if outside < n:
                _gather(voxels, sy, sz, places, n, lanes)
                _blend(lanes, fractions, target)
            fill(target, which, outside, background)
    return missed


@compiled
def nearest_rows(source: Array, frame: Array, points: Array, out: Array, first: int, background: Any) -> int:  # noqa: ANN401
    """Take the nearest voxel, unchanged, of all channels for each position.

    Parameters and result are those of :func:`linear_rows`. A position on the middle between two voxels takes the
    upper one; half a voxel outside is the voxel at the lower face and background at the upper one.

    Notes
    -----
    Per voxel: 24 bytes of positions and one voxel read; 3 floors, 3 additions, 5 integer multiply-adds.
    """
    widest()
    places, special, which = np.zeros(CHUNK, np.uint32), np.zeros(CHUNK, np.uint32), np.zeros(CHUNK, np.uint32)
    missed = 0
    for begin in range(0, points.shape[1], CHUNK):
        n = min(CHUNK, points.shape[1] - begin)
        px, py, pz = points[0, begin : begin + n], points[1, begin : begin + n], points[-1, begin : begin + n]
        if points.shape[0] == 3:
            _nearest(px, py, pz, frame, places, special)
        else:
            _nearest_flat(px, py, frame, places, special)
        count = set_aside(special, n, places, which)
        for channel in range(source.shape[0]):
            voxels = source[channel]
            target = out[channel, first + begin : first + begin + n]
            for i in range(0, n, _NEAR):
                prefetch(voxels, np.uint64(places[i]))
            for i in range(n):
                target[i] = voxels[places[i]]
            fill(target, which, count, background)
        if count > 0:
            flag_inside(points, begin, n, frame, special)
            for k in range(count):
                missed += special[which[k]]
    return missed


@compiled
def _locate(px: Array, py: Array, pz: Array, frame: Array, fractions: Array, places: Array, special: Array) -> None:
    """Find the place of the lower neighbours and the fractions; flag what has not all its pairs in the block."""
    widest()
    fx, fy, fz = fractions[0], fractions[1], fractions[2]
    x0, y0, z0 = np.int32(frame[0, 0]), np.int32(frame[0, 1]), np.int32(frame[0, 2])
    mx, my, mz = np.uint32(frame[3, 0]), np.uint32(frame[3, 1]), np.uint32(frame[3, 2])
    sy, sz = np.uint32(frame[1, 0]), np.uint32(frame[1, 0] * frame[1, 1])
    for i in range(px.shape[0]):
        x, y, z = np.floor(px[i]), np.floor(py[i]), np.floor(pz[i])
        fx[i] = px[i] - x
        fy[i] = py[i] - y
        fz[i] = pz[i] - z
        # A position that no int32 holds (NaN too) becomes the least one, which as unsigned is beyond every block.
        ix, iy, iz = np.uint32(np.int32(x) - x0), np.uint32(np.int32(y) - y0), np.uint32(np.int32(z) - z0)
        special[i] = np.uint32((ix >= mx) | (iy >= my) | (iz >= mz))
        places[i] = np.uint32(np.uint32(iz * sz) + np.uint32(iy * sy) + ix)


@compiled
def _locate_flat(px: Array, py: Array, frame: Array, fractions: Array, places: Array, special: Array) -> None:
    """Do what :func:`_locate` does in 2D."""
    widest()
    fx, fy = fractions[0], fractions[1]
    x0, y0 = np.int32(frame[0, 0]), np.int32(frame[0, 1])
    mx, my, sy = np.uint32(frame[3, 0]), np.uint32(frame[3, 1]), np.uint32(frame[1, 0])
    for i in range(px.shape[0]):
        x, y = np.floor(px[i]), np.floor(py[i])
        fx[i] = px[i] - x
        fy[i] = py[i] - y
        ix, iy = np.uint32(np.int32(x) - x0), np.uint32(np.int32(y) - y0)
        special[i] = np.uint32((ix >= mx) | (iy >= my))
        places[i] = np.uint32(np.uint32(iy * sy) + ix)


@compiled
def _nearest(px: Array, py: Array, pz: Array, frame: Array, places: Array, special: Array) -> None:
    """Find the place of the nearest voxel; flag what is not in the block."""
    widest()
    x0, y0, z0 = np.int32(frame[0, 0]), np.int32(frame[0, 1]), np.int32(frame[0, 2])
    nx, ny, nz = np.uint32(frame[1, 0]), np.uint32(frame[1, 1]), np.uint32(frame[1, 2])
    sz = np.uint32(frame[1, 0] * frame[1, 1])
    for i in range(px.shape[0]):
        ix = np.uint32(np.int32(np.floor(px[i] + 0.5)) - x0)
        iy = np.uint32(np.int32(np.floor(py[i] + 0.5)) - y0)
        iz = np.uint32(np.int32(np.floor(pz[i] + 0.5)) - z0)
        special[i] = np.uint32((ix >= nx) | (iy >= ny) | (iz >= nz))
        places[i] = np.uint32(np.uint32(iz * sz) + np.uint32(iy * nx) + ix)


@compiled
def _nearest_flat(px: Array, py: Array, frame: Array, places: Array, special: Array) -> None:
    """Do what :func:`_nearest` does in 2D."""
    widest()
    x0, y0 = np.int32(frame[0, 0]), np.int32(frame[0, 1])
    nx, ny = np.uint32(frame[1, 0]), np.uint32(frame[1, 1])
    for i in range(px.shape[0]):
        ix = np.uint32(np.int32(np.floor(px[i] + 0.5)) - x0)
        iy = np.uint32(np.int32(np.floor(py[i] + 0.5)) - y0)
        special[i] = np.uint32((ix >= nx) | (iy >= ny))
        places[i] = np.uint32(np.uint32(iy * nx) + ix)


@compiled
def _touch(voxels: Array, sy: Any, sz: Any, places: Array, n: int) -> None:  # noqa: ANN401
    """Ask for the cache lines that the next plane will read, in 2D the row after next: what this one reads is there."""
    step = _NEAR if np.int64(places[n - 1]) - np.int64(places[0]) < np.int64(sy) else _ACROSS
    ahead = sz + sz if sz > 0 else sy + sy
    for i in range(0, n, step):
        prefetch(voxels, np.uint64(places[i]) + ahead)


@compiled
def _gather(voxels: Array, sy: Any, sz: Any, places: Array, n: int, lanes: Array) -> None:  # noqa: ANN401
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    for i in range(n):
        at, k = np.uint64(2 * i), np.uint64(places[i])
        move_pair(a, at, voxels, k)
        move_pair(b, at, voxels, k + sy)
        move_pair(c, at, voxels, k + sz)
        move_pair(d, at, voxels, k + sy + sz)


@compiled
def _between(low: Any, high: Any, fraction: float, like: Array) -> float:  # noqa: ANN401
    """Return ``low + (high - low) * fraction``, rounded where ITK rounds: a tie stays a tie."""
    a, b = np.float64(low), np.float64(high)
    return weighted(a, b, a + (b - a) * fraction, fraction, like)


@compiled
def _blend(lanes: Array, fractions: Array, out: Array) -> None:
    widest()
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
