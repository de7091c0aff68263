"""The levels of an image as lazy images: what a store holds, without writing one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import xarray as xr
from dask.base import tokenize

from blocks.image.levels import level_grid, level_translation, planned_levels
from blocks.image.view import Kind, dims_of, grid_of, image_of, kind_of, spatial_dims, unit_of
from blocks.kernels.downsample import downsample, halved_shape
from blocks.storage import Layout


def pyramid(image: xr.DataArray, *, kind: Kind | None = None) -> list[xr.DataArray]:
    """Return an image and its coarser levels down to one chunk, lazily.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x.
    kind
        ``"image"``: a level's voxel is the mean of its box of two voxels an axis, rounded half to even for integers;
        ``"labels"``: its most frequent label, the smallest of several. By default what the image says it is.

    Returns
    -------
    list of xarray.DataArray
        Level 0, the image itself, first; each level comes from the one before it. The voxels and the geometry are
        those of the levels that ``write_image`` stores, whatever the blocks.
    """
    kind = kind_of(image) if kind is None else kind
    grid, unit = grid_of(image), unit_of(image)
    start = [float(image.coords[d][0]) for d in spatial_dims(image)]
    levels = [image if kind == kind_of(image) else image.assign_attrs(kind=kind)]
    data = _in_memory(image, _slabs(image)) if isinstance(image.data, np.ndarray) else as_shards(image)
    for halvings in planned_levels(grid.shape)[1:]:
        data = _halved(data, kind=kind, spatial=grid.ndim)
        shift = level_translation(start, grid.spacing[::-1], halvings)
        place = level_grid(grid, halvings)
        levels.append(image_of(data, place, unit=unit, kind=kind, name=image.name, translation=shift))
    return levels


def as_shards(image: xr.DataArray) -> Any:  # noqa: ANN401 - Dask is not typed
    """Return the image's voxels as a Dask array whose blocks are the shards of its store."""
    shards = shard_layout(image).blocks
    return _in_memory(image, shards) if isinstance(image.data, np.ndarray) else image.data.rechunk(shards)


def _in_memory(image: xr.DataArray, blocks: tuple[int, ...]) -> Any:  # noqa: ANN401 - Dask is not typed
    """Return an image in memory cut into blocks; Dask would hash it to name it, and copy it where it is one block."""
    meta = np.empty((0,) * image.ndim, dtype=image.dtype)
    return da.from_array(_InMemory(image.data), chunks=blocks, name=False, meta=meta, asarray=False, fancy=False)


def _slabs(image: xr.DataArray) -> tuple[int, ...]:
    """Return blocks of whole planes (rows in 2D), each about a shard: what lies together in memory stays together."""
    first = image.ndim - len(spatial_dims(image))
    voxels = math.prod(shard_layout(image).blocks[first:])
    plane = math.prod(image.shape[first + 1 :])
    return (*image.shape[:first], max(2, voxels // plane // 2 * 2), *image.shape[first + 1 :])


@dataclass(frozen=True)
class _InMemory:
    """An array that is sliced as it is."""

    array: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __getitem__(self, index: tuple[slice, ...]) -> npt.NDArray[Any]:
        return self.array[index]


def shard_layout(image: xr.DataArray) -> Layout:
    """Return how the image is laid out in a store."""
    return Layout.of(tuple(image.shape), image.dtype, tuple(str(d) for d in image.dims))


def _halved(data: Any, *, kind: Kind, spatial: int) -> Any:  # noqa: ANN401 - Dask is not typed
    """Return the next level of an array whose blocks start at even indices, its blocks shards again."""
    split = data.ndim - spatial
    chunks = data.chunks[:split] + tuple(halved_shape(sizes) for sizes in data.chunks[split:])
    name = f"downsample-block-{tokenize(data.name, kind)}"
    meta = np.empty((0,) * data.ndim, dtype=data.dtype)
    halve = partial(downsample, kind=kind, spatial=spatial)
    coarse = data.map_blocks(halve, name=name, chunks=chunks, dtype=data.dtype, meta=meta)
    return coarse.rechunk(Layout.of(coarse.shape, coarse.dtype, dims_of(spatial, channels=split > 0)).blocks)
