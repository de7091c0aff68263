"""How the moving side of a large pair looks: another stain or contrast, uneven light and noise, voxel by voxel.

Everything is a function of a voxel's value and of its global index, so that a block gives what the whole would: the
noise of a voxel is a word of a counter-based generator that is keyed by the voxel's lattice block.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.image import grid_of, spatial_dims
from blocks.region import Region
from fidopt.descriptors.appearance import Appearance

Voxels = npt.NDArray[Any]

#: Voxels a side of the blocks that noise is drawn for, 2D and 3D; no layout of a store changes it.
LATTICE = {2: 512, 3: 64}


def problems(appearance: Appearance, image: xr.DataArray) -> Iterator[str]:
    """Yield why an appearance is none of an image ([c,] [z,] y, x), each a sentence that begins with its key."""
    count, ndim = int(image.sizes.get("c", 1)), len(spatial_dims(image))
    if appearance.mix and [len(row) for row in appearance.mix] != [count] * count:
        rows = [len(row) for row in appearance.mix]
        yield f"mix: must have {count} row{'s' * (count != 1)} of {count} for this image, got rows of {rows}"
    if len(appearance.offset) not in {0, count}:
        yield f"offset: must have {count} number{'s' * (count != 1)} for this image, got {len(appearance.offset)}"
    if len(appearance.slope) not in {0, ndim}:
        yield f"slope: must have {ndim} numbers for this image, got {len(appearance.slope)}"


def seen(image: xr.DataArray, appearance: Appearance, *, name: str) -> xr.DataArray:
    """Return an image as the appearance makes it look; lazy where the image is.

    Parameters
    ----------
    image
        Dims ([c,] [z,] y, x).
    appearance
        What is done.
    name
        ``DATASET:CASE``, on which the noise depends.
    """
    shape = grid_of(image).shape
    if isinstance(image.data, np.ndarray):
        return image.copy(data=painted(image.data, Region.of(shape), shape, appearance=appearance, name=name))
    spatial = len(spatial_dims(image))

    def paint(block: Voxels, block_info: Any = None) -> Voxels:  # noqa: ANN401 - Dask's own
        place = block_info[0]["array-location"][-spatial:]
        region = Region(tuple(int(a) for a, _ in place), tuple(int(b) for _, b in place))
        return painted(block, region, shape, appearance=appearance, name=name)

    meta = np.empty((0,) * image.ndim, image.dtype)
    return image.copy(data=image.data.map_blocks(paint, dtype=image.dtype, meta=meta))


def painted(voxels: Voxels, region: Region, shape: Sequence[int], *, appearance: Appearance, name: str) -> Voxels:
    """Return the values of a region of an image, the voxels of one lattice block after the other.

    Parameters
    ----------
    voxels
        ([c,] [z,] y, x) of the region, all channels.
    region, shape
        Where they lie in an image of that shape.
    appearance, name
        As for :func:`seen`.
    """
    spatial = len(shape)
    channels = voxels.ndim > spatial
    stacked = voxels if channels else voxels[None]
    out = np.empty_like(stacked)
    side = LATTICE[spatial]
    for index in product(*(range(a // side, -(-b // side)) for a, b in zip(region.start, region.stop, strict=True))):
        start = tuple(i * side for i in index)
        whole = Region(start, tuple(a + side for a in start)).clip(tuple(shape))
        part = whole.intersect(region)
        inside = (slice(None), *part.relative_to(region.start).slices)
        values = _mixed(stacked[inside], appearance) * _light(part, shape, appearance)
        if appearance.noise:
            drawn = _noise(index, whole, len(values), appearance.seed, name)
            values += appearance.noise * drawn[(slice(None), *part.relative_to(whole.start).slices)]
        out[inside] = _as(values, out.dtype)
    return out if channels else out[0]


def _mixed(voxels: Voxels, appearance: Appearance) -> npt.NDArray[np.float64]:
    """Return the channels as float64, mixed; sums in the order of the channels, the same for any block."""
    count = len(voxels)
    mix = appearance.mix or tuple(tuple(float(i == k) for k in range(count)) for i in range(count))
    offset = appearance.offset or (0.0,) * count
    out = np.empty(voxels.shape)
    for channel, (row, shift) in enumerate(zip(mix, offset, strict=True)):
        total = np.full(voxels.shape[1:], shift)
        for weight, plane in zip(row, voxels, strict=True):
            total += weight * plane.astype(np.float64)
        out[channel] = total
    return out


def _light(region: Region, shape: Sequence[int], appearance: Appearance) -> npt.NDArray[np.float64]:
    total: Any = np.ones((1,) * len(shape))
    slopes = (appearance.slope or (0.0,) * len(shape))[::-1]
    for axis, (a, b, n, slope) in enumerate(zip(region.start, region.stop, shape, slopes, strict=True)):
        along = (np.arange(a, b) - (n - 1) / 2) / max((n - 1) / 2, 1.0)
        line = slope * along - appearance.curve * along * along
        total = total + line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return np.asarray(total)


def _noise(index: Sequence[int], block: Region, channels: int, seed: int, name: str) -> npt.NDArray[np.float64]:
    """Return the noise (c, *block) of one lattice block: mean 0, variance 1, nearly normal.

    Each value is the sum of the four 16-bit numbers of one word of Philox: the raw words are the same in every version.
    """
    key = hashlib.sha256(f"{seed}:{name}:{','.join(map(str, index))}".encode()).digest()
    words = np.random.Philox(key=int.from_bytes(key[:16], "big")).random_raw(channels * block.size)
    parts = words.view(np.uint16).reshape(-1, 4).sum(axis=1, dtype=np.int64)
    scale = math.sqrt(4 * (2.0**32 - 1) / 12)
    return np.asarray((parts - 2 * 65535) / scale).reshape(channels, *block.shape)


def _as(values: npt.NDArray[np.float64], dtype: np.dtype[Any]) -> Voxels:
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)
