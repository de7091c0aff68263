"""The foreground of an image of any size, lazily: above Otsu's threshold, brought onto a grid that is asked about."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from dask import delayed
from dask.base import tokenize

from blocks.graphs.pyramid import as_shards
from blocks.graphs.warp import warp
from blocks.grid import Grid
from blocks.image import channels_of, grid_of, image_of, kind_of, unit_of
from blocks.kernels import histogram
from blocks.storage import SHARD
from blocks.transforms import Affine


class Threshold(NamedTuple):
    """What parts an image's foreground from its background.

    Parameters
    ----------
    value
        The foreground is above it.
    least
        The least value of any channel, which is never foreground.
    """

    value: float
    least: float


def otsu(image: xr.DataArray) -> Any:  # noqa: ANN401 - Dask is not typed
    """Return Otsu's threshold of an image, its channels averaged, as a lazy value.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x, any real type; values that are not finite are left out.

    Returns
    -------
    Delayed
        Computes to a :class:`Threshold`; the same bits for any blocks, since ranges and counts add up exactly.
    """
    shards = as_shards(image)
    blocks, token = shards.to_delayed().ravel(), tokenize(shards.name)
    coloured = channels_of(image) is not None
    ranges = [
        delayed(_ranges)(block, coloured=coloured, dask_key_name=(f"otsu-range-{token}", k))
        for k, block in enumerate(blocks)
    ]
    together = delayed(_together)(ranges, dask_key_name=f"otsu-ranges-{token}")
    counts = [
        delayed(_counts)(block, together, coloured=coloured, dask_key_name=(f"otsu-histogram-{token}", k))
        for k, block in enumerate(blocks)
    ]
    return delayed(_threshold)(counts, together, dask_key_name=f"otsu-threshold-{token}")


def foreground(image: xr.DataArray, threshold: Threshold, grid: Grid) -> xr.DataArray:
    """Return where an image, its channels averaged, is above a threshold, at the nearest voxel of a grid; lazy.

    Parameters
    ----------
    image
        In memory, or as :func:`blocks.open_image` returns it.
    threshold
        As :func:`otsu` computes it.
    grid
        Where it is asked; outside the image there is no foreground.

    Returns
    -------
    xarray.DataArray
        bool, dims (z,) y, x.
    """
    data = as_shards(onto(image, grid, background=threshold.least))
    coloured = channels_of(image) is not None
    above = partial(_above, value=threshold.value, coloured=coloured)
    meta = np.empty((0,) * grid.ndim, dtype=bool)
    mask = data.map_blocks(above, dtype=bool, drop_axis=0 if coloured else None, meta=meta, name=None)
    return image_of(mask, grid, unit=unit_of(image), kind="labels")


def onto(image: xr.DataArray, grid: Grid, *, background: float = 0) -> xr.DataArray:
    """Return an image at the nearest voxel of a grid: itself where it lies on that grid, else lazily."""
    if grid_of(image).matches(grid):
        return image
    where = Affine.identity(grid.ndim)
    shard = (SHARD[grid.ndim],) * grid.ndim
    there = warp(image, where, grid, interpolation="nearest", background=background, shard=shard)
    return there.assign_attrs(kind=kind_of(image))


def _ranges(block: npt.NDArray[Any], *, coloured: bool) -> tuple[tuple[float, float], float]:
    """Return the range of a block's grey values, and its least value in any channel."""
    return histogram.partial_range(histogram.grey(block, coloured=coloured)), histogram.partial_range(block)[0]


def _together(parts: list[tuple[tuple[float, float], float]]) -> tuple[tuple[float, float], float]:
    return histogram.combine_ranges(part for part, _ in parts), min(least for _, least in parts)


def _counts(
    block: npt.NDArray[Any], ranges: tuple[tuple[float, float], float], *, coloured: bool
) -> npt.NDArray[np.int64]:
    low, high = ranges[0]
    return histogram.partial(histogram.grey(block, coloured=coloured), low=low, high=high)


def _threshold(parts: list[npt.NDArray[np.int64]], ranges: tuple[tuple[float, float], float]) -> Threshold:
    (low, high), least = ranges
    return Threshold(histogram.otsu(sum(parts[1:], parts[0]), low=low, high=high), least)


def _above(block: npt.NDArray[Any], *, value: float, coloured: bool) -> npt.NDArray[np.bool_]:
    return np.asarray(histogram.grey(block, coloured=coloured) > value)
