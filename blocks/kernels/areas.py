"""The area that each neighbourhood of voxels adds to a surface: marching cubes, as a table by code."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Normals = tuple[tuple[float, float, float], ...]

_EIGHTH, _QUARTER, _PLANE = (0.125, 0.125, 0.125), (0.25, 0.25, 0.25), (0.5, 0.0, 0.0)
_SLOPE_0, _SLOPE_1, _SLOPE_2 = (0.0, 0.25, 0.25), (0.25, 0.0, 0.25), (0.25, 0.25, 0.0)
#: Marching cubes up to the symmetries of a cube: the corners inside, as (z, y, x), and the area vectors of the
#: triangles through the midpoints of the cut edges. Their signs play no part in an area and are left out.
_CASES: tuple[tuple[str, Normals], ...] = (
    ("000", (_EIGHTH,)),
    ("000 001", (_SLOPE_2, _SLOPE_2)),
    ("001 010", (_EIGHTH, _EIGHTH)),
    ("011 100", (_EIGHTH, _EIGHTH)),
    ("000 001 010", (_PLANE, _QUARTER, _EIGHTH)),
    ("000 011 100", (_SLOPE_0, _SLOPE_0, _EIGHTH)),
    ("001 010 100", (_EIGHTH, _EIGHTH, _EIGHTH)),
    ("000 001 010 011", (_PLANE, _PLANE)),
    ("000 001 010 100", (_QUARTER, _QUARTER, _EIGHTH, _EIGHTH)),
    ("000 001 011 100", (_EIGHTH, (0.375, 0.375, 0.375), _SLOPE_0, _SLOPE_1)),
    ("001 010 011 100", (_PLANE, _QUARTER, _EIGHTH, _EIGHTH)),
    ("010 011 100 101", (_SLOPE_2, _SLOPE_2, _SLOPE_2, _SLOPE_2)),
    ("000 011 101 110", (_EIGHTH, _EIGHTH, _EIGHTH, _EIGHTH)),
)


@lru_cache(maxsize=64)
def areas(steps: tuple[float, ...]) -> Floats:
    """Return the surface area (2D: contour length) of every neighbourhood, by its code.

    Parameters
    ----------
    steps
        Distance between neighbouring voxels along each array axis, in array order.

    Returns
    -------
    areas
        (256,) or, in 2D, (16,) float64, read only. Bit ``4 dz + 2 dy + dx`` of a code is the voxel at (dz, dy, dx).
    """
    table = _contour_lengths(steps) if len(steps) == 2 else _surface_areas(steps)
    table.flags.writeable = False
    return table


def _contour_lengths(steps: tuple[float, ...]) -> Floats:
    diagonal = 0.5 * float(np.hypot(steps[0], steps[1]))
    table = np.full(16, diagonal)
    table[[0b0000, 0b1111]] = 0.0
    table[[0b0011, 0b1100]] = steps[1]
    table[[0b0101, 0b1010]] = steps[0]
    table[[0b0110, 0b1001]] = 2.0 * diagonal
    return table


def _surface_areas(steps: tuple[float, ...]) -> Floats:
    scale = np.array([steps[1] * steps[2], steps[0] * steps[2], steps[0] * steps[1]])
    table = np.zeros(256)
    for text, normals in _CASES:
        corners = [tuple(int(digit) for digit in corner) for corner in text.split()]
        for turn in itertools.permutations(range(3)):
            area = sum(float(np.linalg.norm(np.array(normal)[list(turn)] * scale)) for normal in normals)
            for flip in itertools.product((0, 1), repeat=3):
                moved = [[corner[a] ^ flip[i] for i, a in enumerate(turn)] for corner in corners]
                code = sum(1 << (4 * z + 2 * y + x) for z, y, x in moved)
                table[[code, 255 - code]] = area
    return table
