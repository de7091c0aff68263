"""Halve a block of voxels: the mean of every box of two voxels an axis, or its most frequent label.

One definition of each, whatever the blocks: boxes start at even indices, and one that sticks out of the image holds
the voxels that are inside. Doubling the last voxel of an odd axis says the same, since sums and counts double with it:
every box has eight voxels, and a sum is taken in pairs, x then y then z, so that doubling is exact in floats too.

What a fine voxel costs, of s bytes: s bytes read and s/8 written, whatever the kernel. The mean of integers takes 5
operations (8 shifts, 8 masks, 14 sums and 8 to round, a box), of floats 2 (8 conversions, 7 sums, one product), the
most frequent label 20 (64 comparisons, 56 sums, 40 to choose), all in vector registers: the mean of 16 bits is bound by
memory, the label of 8 bits by arithmetic.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled

Voxels = npt.NDArray[Any]
Kind = Literal["image", "labels"]


def halved_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the next coarser level, rounded up; an axis of one voxel stays one."""
    return tuple(-(-n // 2) for n in shape)


def downsample(block: Voxels, *, kind: Kind, spatial: int) -> Voxels:
    """Return a block at half its resolution.

    Parameters
    ----------
    block
        Voxels (..., (z,) y, x) of booleans, integers or floats; its first voxel has an even index in the image, and
        only the image's end may cut a box.
    kind
        ``"image"``: the mean, rounded half to even for integers (64-bit ones are summed without rounding) and taken
        in float64 for floats. ``"labels"``: the most frequent value, the smallest of several.
    spatial
        Number of spatial axes, the last ones: 2 or 3.

    Returns
    -------
    ndarray
        The halved block, of the block's type.
    """
    split = block.ndim - spatial
    out = np.empty(block.shape[:split] + halved_shape(block.shape[split:]), dtype=block.dtype)
    downsample_into(out, (0,) * spatial, block, kind=kind)
    return out


def downsample_into(out: Voxels, start: tuple[int, ...], block: Voxels, *, kind: Kind) -> None:
    """Write a block at half its resolution into a part of a larger one.

    Parameters
    ----------
    out
        Where to write, C-contiguous, (..., (z,) y, x).
    start
        Index in ``out`` of the first coarse voxel, an entry a spatial axis.
    block, kind
        As for :func:`downsample`.
    """
    split = block.ndim - len(start)
    fine, coarse = _four_axes(block, split), _four_axes(out, split)
    oz, oy, ox = (0, *start)[-3:]
    if block.dtype.kind == "b":
        # Of zeros and ones, the mean rounded half to even is the most frequent, zero of both.
        fine, coarse, kind = fine.view(np.uint8), coarse.view(np.uint8), "image"
    if block.dtype == np.float16:
        # Numba has no half floats. Every one is a float64, so a mean is rounded once, and a label not at all.
        wide = downsample(fine.astype(np.float64), kind=kind, spatial=3)
        _, depth, height, width = wide.shape
        coarse[:, oz : oz + depth, oy : oy + height, ox : ox + width] = wide.astype(np.float16)
        return
    mean = _mean_of_floats if block.dtype.kind == "f" else _mean_of_integers
    kernel = _most_frequent if kind == "labels" else mean
    if fine.flags.c_contiguous and fine.shape[-1] % 2 == 0:
        kernel(fine, coarse, oz, oy, ox)
        return
    # The kernels read whole rows of an even length. Two planes at a time, the copies stay in the cache.
    for z in range(0, fine.shape[1], 2):
        planes = fine[:, z : z + 2]
        if planes.shape[-1] % 2:
            planes = np.concatenate([planes, planes[..., -1:]], axis=-1)
        kernel(np.ascontiguousarray(planes), coarse, oz + z // 2, oy, ox)


def _four_axes(array: Voxels, split: int) -> Voxels:
    """Return (c, z, y, x): everything before the spatial axes as one, z of one voxel where there is none."""
    spatial = array.shape[split:]
    return array.reshape(math.prod(array.shape[:split]), *(1,) * (3 - len(spatial)), *spatial)


@compiled
def _mean_of_integers(fine: Voxels, coarse: Voxels, oz: int, oy: int, ox: int) -> None:
    # Eighths and remainders are summed apart, in the voxels' own type: nothing overflows at any width, and narrow
    # types stay narrow in vector registers. Unsigned indices: signed ones keep a test for negative values.
    as_type = fine.dtype.type
    one, three, seven = as_type(1), as_type(3), as_type(7)
    channels, depth, height, width = fine.shape
    half = np.uint64(width // 2)
    for c in range(channels):
        for z in range((depth + 1) // 2):
            for y in range((height + 1) // 2):
                z0, z1 = 2 * z, min(2 * z + 1, depth - 1)
                y0, y1 = 2 * y, min(2 * y + 1, height - 1)
                a, b, d, e = fine[c, z0, y0], fine[c, z0, y1], fine[c, z1, y0], fine[c, z1, y1]
                row = coarse[c, oz + z, oy + y, ox:]
                for x in range(half):
                    i = np.uint64(2) * x
                    j = i + np.uint64(1)
                    eighths = (a[i] >> three) + (a[j] >> three) + (b[i] >> three) + (b[j] >> three)
                    eighths += (d[i] >> three) + (d[j] >> three) + (e[i] >> three) + (e[j] >> three)
                    rest = (a[i] & seven) + (a[j] & seven) + (b[i] & seven) + (b[j] & seven)
                    rest += (d[i] & seven) + (d[j] & seven) + (e[i] & seven) + (e[j] & seven)
                    low = as_type(as_type(eighths) + (as_type(rest) >> three))
                    up = as_type((as_type(rest) & seven) + three + (low & one)) >> three
                    row[x] = as_type(low + up)


@compiled
def _mean_of_floats(fine: Voxels, coarse: Voxels, oz: int, oy: int, ox: int) -> None:
    channels, depth, height, width = fine.shape
    half = np.uint64(width // 2)
    for c in range(channels):
        for z in range((depth + 1) // 2):
            for y in range((height + 1) // 2):
                z0, z1 = 2 * z, min(2 * z + 1, depth - 1)
                y0, y1 = 2 * y, min(2 * y + 1, height - 1)
                a, b, d, e = fine[c, z0, y0], fine[c, z0, y1], fine[c, z1, y0], fine[c, z1, y1]
                row = coarse[c, oz + z, oy + y, ox:]
                for x in range(half):
                    i = np.uint64(2) * x
                    j = i + np.uint64(1)
                    upper = (np.float64(a[i]) + np.float64(a[j])) + (np.float64(b[i]) + np.float64(b[j]))
                    lower = (np.float64(d[i]) + np.float64(d[j])) + (np.float64(e[i]) + np.float64(e[j]))
                    row[x] = (upper + lower) * 0.125


@compiled
def _most_frequent(fine: Voxels, coarse: Voxels, oz: int, oy: int, ox: int) -> None:
    # No branch on a voxel: the eight counts and the choice among them vectorise, and cost the same on any labels.
    channels, depth, height, width = fine.shape
    half = np.uint64(width // 2)
    for c in range(channels):
        for z in range((depth + 1) // 2):
            for y in range((height + 1) // 2):
                z0, z1 = 2 * z, min(2 * z + 1, depth - 1)
                y0, y1 = 2 * y, min(2 * y + 1, height - 1)
                a, b, d, e = fine[c, z0, y0], fine[c, z0, y1], fine[c, z1, y0], fine[c, z1, y1]
                row = coarse[c, oz + z, oy + y, ox:]
                for x in range(half):
                    i = np.uint64(2) * x
                    j = i + np.uint64(1)
                    box = (a[i], a[j], b[i], b[j], d[i], d[j], e[i], e[j])
                    label = box[0]
                    most = np.int32(0)
                    for v in box:
                        n = (
                            np.int32(v == box[0])
                            + np.int32(v == box[1])
                            + np.int32(v == box[2])
                            + np.int32(v == box[3])
                        )
                        n += (
                            np.int32(v == box[4])
                            + np.int32(v == box[5])
                            + np.int32(v == box[6])
                            + np.int32(v == box[7])
                        )
                        better = (n > most) | ((n == most) & (v < label))
                        label = v if better else label
                        most = n if better else most
                    row[x] = label
