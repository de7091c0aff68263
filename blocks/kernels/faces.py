"""The positions of a chunk that lie near or beyond the faces of the moving image, and are put right one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled
from blocks.kernels.lanes import widest

Array = npt.NDArray[Any]

#: Positions taken at a time.
CHUNK = 256
#: Positions that are looked at together for one that is set aside; a chunk is a whole number of them.
_FEW = 32


@compiled
def set_aside(special: Array, n: int, places: Array, which: Array) -> int:
    """List the flagged positions and point them at voxel zero of the block; return how many there are."""
    widest()
    special[n:] = 0
    count = 0
    for begin in range(0, CHUNK, _FEW):
        some = np.uint32(0)
        for i in range(begin, begin + _FEW):
            some = np.uint32(some | special[i])
        if some == 0:
            continue
        for i in range(begin, begin + _FEW):
            if special[i] != 0:
                which[count] = np.uint32(i)
                places[i] = np.uint32(0)
                count += 1
    return count


@compiled
def flag_inside(points: Array, begin: int, n: int, frame: Array, inside: Array) -> None:
    """Flag what is inside the image: from half a voxel before the first centre to less than half after the last."""
    widest()
    inside[:n] = 1
    for axis in range(points.shape[0]):
        p, stop = points[axis, begin : begin + n], frame[2, axis] - 0.5
        for i in range(n):
            inside[i] &= np.uint32((p[i] >= -0.5) & (p[i] < stop))


@compiled
def fill(target: Array, which: Array, count: int, background: Any) -> None:  # noqa: ANN401
    """Set the listed voxels to the background."""
    if count == target.shape[0]:
        target[:] = background
        return
    for k in range(count):
        target[which[k]] = background


@compiled
def settle(
    points: Array,
    begin: int,
    frame: Array,
    inside: Array,
    which: Array,
    count: int,
    places: Array,
    fractions: Array,
) -> tuple[int, int]:
    """Find place and fractions of listed positions within half a voxel of the outer centres, at the outer voxel.

    Returns how many are outside the image or missing from the block, now first in the list, and how many are missing.
    """
    solid = points.shape[0] == 3
    px, py, pz = points[0, begin:], points[1, begin:], points[-1, begin:]
    sy, sz = frame[1, 0], frame[1, 0] * frame[1, 1]
    outside, missing = 0, 0
    for k in range(count):
        i = which[k]
        if inside[i] != 0:
            held_x, x, fx = _edge(px[i], frame[0, 0], frame[1, 0], frame[2, 0])
            held_y, y, fy = _edge(py[i], frame[0, 1], frame[1, 1], frame[2, 1])
            held_z, z, fz = True, 0, 0.0
            if solid:
                held_z, z, fz = _edge(pz[i], frame[0, 2], frame[1, 2], frame[2, 2])
            if held_x & held_y & held_z:
                places[i] = np.uint32(z * sz + y * sy + x)
                fractions[0, i], fractions[1, i], fractions[2, i] = fx, fy, fz
                continue
            missing += 1
        which[outside] = np.uint32(i)
        outside += 1
    return outside, missing


@compiled
def _edge(position: float, first: int, held: int, size: int) -> tuple[bool, int, float]:
    """Return of a position in the image whether its pair is in the block, the pair's place there, and the fraction."""
    at = min(max(position, 0.0), size - 1.0)
    index = min(int(at), max(size - 2, 0))
    low = index - first
    return (low >= 0) & (low + 1 < held), low, at - index
