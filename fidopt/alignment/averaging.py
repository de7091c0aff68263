"""Images averaged down, one value a voxel: what bodies, starts and elastix look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import channels_of, grid_of, image_of, open_image, unit_of
from fidopt.errors import InputError
from fidopt.images.preview import coarse_level


def averaged(image: xr.DataArray, *, side: int) -> xr.DataArray:
    """Return an image of one value a voxel whose axes have at most so many voxels.

    Each voxel is the mean of a box of voxels, as many along an axis as that axis needs to get down to ``side``, and
    lies in their middle. What is left over at the end of an axis, less than a box, is left out. A lazy image is gone
    through block by block.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x, any real type; channels are averaged. Values that are not finite count as the least
        finite one.
    side
        The most voxels an axis.

    Returns
    -------
    DataArray
        float32 in memory, dims (z,) y, x.

    Raises
    ------
    InputError
        When the image holds no finite value.
    """
    grid = grid_of(image)
    factors = tuple(-(-size // side) for size in grid.shape)
    values = _means(image, factors)
    finite = np.isfinite(values)
    if not finite.any():
        msg = f"an image of shape {grid.shape} holds no finite value; an alignment needs two images"
        raise InputError(msg)
    if not finite.all():
        values = np.where(finite, values, values[finite].min())
    return image_of(values, boxes(grid, factors), unit=unit_of(image), name=image.name)


def coarse(path: Path, *, side: int) -> xr.DataArray:
    """Return a store's image, lazy, at its finest level of at most ``side`` voxels an axis, or at its coarsest."""
    return open_image(path, level=coarse_level(path, side=side))


def boxes(grid: Grid, factors: tuple[int, ...]) -> Grid:
    """Return the grid whose voxels stand for boxes of so many voxels an axis, array order."""
    shape = tuple(size // factor for size, factor in zip(grid.shape, factors, strict=True))
    middle = grid.world([(factor - 1) / 2 for factor in factors])
    spacing = [step * factor for step, factor in zip(grid.spacing, factors[::-1], strict=True)]
    return Grid.of(shape, spacing=spacing, origin=[float(v) for v in middle], direction=grid.direction)


def _means(image: xr.DataArray, factors: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return the means of boxes as float32, added up in float64."""
    data: Any = image.data if not isinstance(image.data, np.ndarray) else da.from_array(image.data, chunks=-1)
    data = data.astype(np.float64)
    if channels_of(image) is not None:
        data = data.mean(axis=0)
    coarse = da.coarsen(np.mean, data, dict(enumerate(factors)), trim_excess=True)
    return np.asarray(compute(coarse.astype(np.float32)))
