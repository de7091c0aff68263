"""Where a task reads an image's voxels from: a store by its path, or an array in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.image.view import channels_of, spatial_dims
from blocks.region import Region


class Source(Protocol):
    """Voxels that a task can read by region; pickles, and a stored one pickles small."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis, (z, y, x) or (y, x)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""

    @property
    def channels(self) -> int | None:
        """Number of channels, None where there is no channel axis."""

    def read(self, region: Region) -> npt.NDArray[Any]:
        """Return the voxels of a region inside the image, ((c,) (z,) y, x)."""


@dataclass(frozen=True)
class ArraySource:
    """Voxels in memory.

    Parameters
    ----------
    array
        ((c,) (z,) y, x).
    channels
        Number of channels, None where the array has no channel axis.
    """

    array: npt.NDArray[Any]
    channels: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis, (z, y, x) or (y, x)."""
        return self.array.shape if self.channels is None else self.array.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        return self.array.dtype

    def read(self, region: Region) -> npt.NDArray[Any]:
        """Return the voxels of a region inside the image, a view ((c,) (z,) y, x)."""
        index = region.slices if self.channels is None else (slice(None), *region.slices)
        return self.array[index]


def source_of(image: xr.DataArray) -> Source:
    """Return where a task can read the image's voxels.

    Raises
    ------
    ValueError
        When the image is a lazy result that lies neither in memory nor in a store.
    """
    spatial_dims(image)
    data = image.data
    if isinstance(data, np.ndarray):
        return ArraySource(data, channels_of(image))
    msg = f"the image is a lazy result ({type(data).__name__}) that no task can read by region"
    raise ValueError(f"{msg}: call .compute() on a small one, or write it with write_image and open that store")
