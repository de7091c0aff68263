"""Warp one block: NumPy in, NumPy out, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.cubic import coefficients, cubic_rows
from blocks.kernels.planes import linear_planes, nearest_planes, position_planes
from blocks.kernels.route import Route
from blocks.kernels.sample import linear_rows, nearest_rows
from blocks.region import Region

Voxels = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

#: Positions computed before they are sampled: their buffer stays in the second cache.
SLAB = 1 << 14
#: Rows of a single plane whose lattice is expanded at once.
_AHEAD = 64
#: Most voxels of one channel of a block, so that 32 bits hold every place in it.
MOST_VOXELS = (1 << 31) - 1


def warp_block(
    source: Voxels,
    read: Region,
    *,
    shape: tuple[int, ...],
    route: Route,
    interpolation: str,
    background: float,
    out: Voxels | None = None,
) -> Voxels:
    """Return the voxels of a route's region, sampled from a block of the moving image.

    Parameters
    ----------
    source
        Voxels (channels, [z,] y, x) of the region ``read`` of the moving image: booleans, integers or floats.
    read
        What the plan says the region is computed from.
    shape
        The whole moving image's, array order.
    route
        From the voxels of a fixed region to moving indices.
    interpolation
        ``"linear"``, ``"nearest"`` or ``"cubic"``.
    background
        Value of a voxel whose position is outside the moving image.
    out
        Memory that they are made in where its type is one that the kernels fill.

    Returns
    -------
    numpy.ndarray
        (channels, *route.region.shape), the type of ``source``.
    """
    shape_out = (len(source), *route.region.shape)
    if read.empty:
        return np.full(shape_out, background, dtype=source.dtype)
    # The kernels know neither booleans nor float16: they fill bytes and float32.
    working = _working(source)
    target = np.empty(shape_out, dtype=working.dtype) if out is None or out.dtype != working.dtype else out
    if interpolation == "linear":
        working, read = _paired(working, read, shape)
    missed = _sample(working, target, route, read=read, shape=shape, interpolation=interpolation, background=background)
    if missed:
        msg = f"{missed} positions of region {route.region} need voxels of the moving image outside {read}"
        raise RuntimeError(f"{msg}; this is an error of the plan, please report it")
    if source.dtype == bool:
        # A cubic spline overshoots, and a boolean of two is none.
        return np.minimum(target, 1, out=target).view(bool)
    return target.astype(source.dtype, copy=False)


def displacement_block(route: Route, *, dtype: npt.DTypeLike, out: Voxels | None = None) -> Voxels:
    """Return the displacements (ndim, *route.region.shape), components x, y, z, of a route's region.

    Parameters
    ----------
    route
        From the voxels of a fixed region to displacements in the world.
    dtype
        float32 or float64; the vectors are computed in float64.
    out
        Memory that they are made in, of their shape and type; by default a new array.
    """
    out = np.empty((route.region.ndim, *route.region.shape), dtype=dtype) if out is None else out
    lines = out.reshape(len(out), -1)
    if not route.rest and route.minus is None:
        for start, stop, rows in _strips(route.region):
            position_planes(route.first.rows(start, stop), start, stop, rows, lines)
        return out
    for first, points in _slabs(route):
        lines[:, first : first + points.shape[1]] = points
    return out


def _sample(
    block: Voxels,
    out: Voxels,
    route: Route,
    *,
    read: Region,
    shape: tuple[int, ...],
    interpolation: str,
    background: float,
) -> int:
    """Fill ``out`` with the route's region and return how many positions need voxels that the block lacks."""
    frame, value = _frame(read, shape), block.dtype.type(background)
    lines = out.reshape(len(out), -1)
    missed = 0
    if interpolation == "cubic":
        for channel, voxels in enumerate(block):
            spline = coefficients(voxels, read, shape=shape).reshape(1, -1)
            for first, points in _slabs(route):
                missed += cubic_rows(spline, frame, points, lines[channel : channel + 1], first, value)
        return missed
    voxels = block.reshape(len(block), -1)
    if route.rest:
        kernel = nearest_rows if interpolation == "nearest" else linear_rows
        for first, points in _slabs(route):
            missed += kernel(voxels, frame, points, lines, first, value)
        return missed
    # Strip by strip without a word of Python between the planes: threads that share an interpreter wait for it.
    along = nearest_planes if interpolation == "nearest" else linear_planes
    for start, stop, rows in _strips(route.region):
        missed += along(route.first.rows(start, stop), start, stop, rows, voxels, frame, lines, value)
    return missed


def _slabs(route: Route) -> Iterator[tuple[int, Floats]]:
    """Yield positions of a route's region a few rows at a time: the place of the first voxel in it, and (ndim, n)."""
    shape = route.region.shape
    planes, height, width = (1, *shape) if len(shape) == 2 else shape
    for start, stop, rows in _strips(route.region):
        fill = route.fill(start, stop)
        for plane in range(planes):
            for row in range(start, stop, rows):
                points = np.empty((len(shape), min(rows, stop - row) * width))
                fill(plane, row, points)
                yield (plane * height + row) * width, points


def _strips(region: Region) -> Iterator[tuple[int, int, int]]:
    """Yield first row, last row and rows at a time of strips of a region, each to be gone through in all its planes.

    What a plane reads of the moving image is then still in the second cache for the plane after it.
    """
    height, width = region.shape[-2:]
    rows = max(1, min(SLAB // width, height))
    # In the rows of a single plane, what is expanded of a lattice serves for a while.
    strip = rows if region.ndim == 3 and region.shape[0] > 1 else max(rows, _AHEAD)
    for start in range(0, height, strip):
        yield start, min(start + strip, height), rows


def _working(source: Voxels) -> Voxels:
    """Return the voxels as the kernels take them: contiguous, native, booleans as bytes, float16 as float32."""
    if source.dtype == bool:
        return np.ascontiguousarray(source).view(np.uint8)
    wider = np.float32 if source.dtype == np.float16 else source.dtype.newbyteorder("=")
    return np.ascontiguousarray(source, dtype=wider)


def _paired(block: Voxels, read: Region, shape: tuple[int, ...]) -> tuple[Voxels, Region]:
    """Return a block with two equal voxels on the axes where the image has one, and its region."""
    stop = list(read.stop)
    for axis, size in enumerate(shape):
        if size == 1:
            block, stop[axis] = np.repeat(block, 2, axis=axis + 1), 2
    return block, Region(read.start, tuple(stop))


def _frame(read: Region, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return first index, voxels, the whole image's voxels and pairs of a block, (4, 3), columns x, y, z."""
    pairs = [0 if size == 1 else n - 1 for n, size in zip(read.shape, shape, strict=True)]
    rows = ((read.start, 0), (read.shape, 1), (shape, 1), (pairs, 0))
    return np.array([[*row[::-1], fill][:3] for row, fill in rows], dtype=np.int64)
