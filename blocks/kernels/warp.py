"""Warp one block: NumPy in, NumPy out, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.route import Route
from blocks.kernels.sample import linear_rows, nearest_rows
from blocks.region import Region

Voxels = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

#: Positions computed before they are sampled: their buffer stays in the second cache.
SLAB = 1 << 14
#: Most voxels of one channel of a block, so that 32 bits hold every place in it.
MOST_VOXELS = (1 << 31) - 1


def warp_block(
    source: Voxels,
    read: Region,
    *,
    shape: tuple[int, ...],
    route: Route,
    region: Region,
    interpolation: str,
    background: float,
) -> Voxels:
    """Return the voxels of a fixed region, sampled from a block of the moving image.

    Parameters
    ----------
    source
        Voxels (channels, [z,] y, x) of the region ``read`` of the moving image: booleans, integers or floats.
    read
        What the plan says the region is computed from.
    shape
        The whole moving image's, array order.
    route
        From fixed voxels to moving indices.
    region
        Part of the fixed grid to be computed.
    interpolation
        ``"linear"`` or ``"nearest"``.
    background
        Value of a voxel whose position is outside the moving image.

    Returns
    -------
    numpy.ndarray
        (channels, *region.shape), the type of ``source``.
    """
    out = np.empty((len(source), *region.shape), dtype=source.dtype)
    if read.empty:
        out[:] = background
        return out
    working = _working(source)
    target = out if working.dtype == source.dtype else np.empty(out.shape, dtype=working.dtype)
    if source.dtype == bool:
        target = out.view(np.uint8)
    frame = _frame(read, shape)
    kernel = nearest_rows if interpolation == "nearest" else linear_rows
    value = working.dtype.type(background)
    flat = working.reshape(len(working), -1)
    lines = target.reshape(len(target), -1)
    missed = 0
    for first, points in _slabs(route, region):
        missed += kernel(flat, frame, points, lines, first, value)
    if missed:
        msg = f"{missed} positions of region {region} need voxels of the moving image outside {read}"
        raise RuntimeError(f"{msg}; this is an error of the plan, please report it")
    if target.dtype != out.dtype and source.dtype != bool:
        out[:] = target
    return out


def displacement_block(route: Route, region: Region, *, dtype: npt.DTypeLike) -> Voxels:
    """Return the displacements (ndim, *region.shape), components x, y, z, of a fixed region.

    Parameters
    ----------
    route
        From fixed voxels to displacements in the world.
    region
        Part of the fixed grid to be computed.
    dtype
        float32 or float64; the vectors are computed in float64.
    """
    out = np.empty((region.ndim, *region.shape), dtype=dtype)
    lines = out.reshape(len(out), -1)
    for first, points in _slabs(route, region):
        lines[:, first : first + points.shape[1]] = points
    return out


def _slabs(route: Route, region: Region) -> Iterator[tuple[int, Floats]]:
    """Yield positions of a region a few rows at a time: the place of the first voxel in it, and (ndim, n)."""
    planes = range(region.start[0], region.stop[0]) if region.ndim == 3 else range(1)
    (top, left), (bottom, right) = region.start[-2:], region.stop[-2:]
    width = right - left
    rows = max(1, min(SLAB // width, bottom - top))
    buffer = np.empty((region.ndim, rows * width))
    first = 0
    for plane in planes:
        for row in range(top, bottom, rows):
            n = min(rows, bottom - row) * width
            points = buffer if n == buffer.shape[1] else np.empty((region.ndim, n))
            route.fill(plane, row, left, width, points)
            yield first, points
            first += n


def _working(source: Voxels) -> Voxels:
    """Return the voxels as the kernels take them: contiguous, native, booleans as bytes, float16 as float32."""
    if source.dtype == bool:
        return np.ascontiguousarray(source).view(np.uint8)
    wider = np.float32 if source.dtype == np.float16 else source.dtype.newbyteorder("=")
    return np.ascontiguousarray(source, dtype=wider)


def _frame(read: Region, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return first index of the block, its voxels, and the whole image's, (3, 3), columns x, y, z."""
    rows = (read.start, read.shape, shape)
    fill = (0, 1, 1)
    return np.array([[*row[::-1], last][:3] for row, last in zip(rows, fill, strict=True)], dtype=np.int64)
