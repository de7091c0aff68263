"""Where a task reads an image's voxels from: a store by its path, or an array in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.image.opening import open_image, open_store
from blocks.image.view import channels_of, spatial_dims
from blocks.region import Region
from blocks.storage import StoredArray, voxel_type


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

    def read(
        self,
        region: Region,
        *,
        touched: Sequence[Region] | None = None,
        others: Sequence[Region] | None = None,
        into: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Return the voxels of a region inside the image, ((c,) (z,) y, x); see :meth:`StoreSource.read`.

        Outside what is touched, they may be anything.
        """


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

    def read(
        self,
        region: Region,
        *,
        touched: Sequence[Region] | None = None,
        others: Sequence[Region] | None = None,
        into: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Return the voxels of a region inside the image, a view ((c,) (z,) y, x)."""
        index = region.slices if self.channels is None else (slice(None), *region.slices)
        return self.array[index]


@dataclass(frozen=True)
class StoreSource:
    """Voxels of one level of a store, or of a box of it; pickles as the path.

    Parameters
    ----------
    array
        The level's array.
    region
        The part of it that is the image, spatial axes.
    channels
        Number of channels, None where the array has no channel axis.
    """

    array: StoredArray
    region: Region
    channels: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis, (z, y, x) or (y, x)."""
        return self.region.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        return self.array.dtype

    def read(
        self,
        region: Region,
        *,
        touched: Sequence[Region] | None = None,
        others: Sequence[Region] | None = None,
        into: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Return the voxels of a region inside the image, ((c,) (z,) y, x).

        Parameters
        ----------
        region
            Spatial axes.
        touched
            The parts of it that are wanted, where not all is; a chunk outside them need not be decoded.
        others
            What further tasks read, where that is known; it says which decoded chunks are worth keeping for them.
        into
            Where it may be read to, of the shape of what is returned; by default a new array.
        """
        first = tuple(-a for a in self.region.start)
        parts = None if touched is None else [part.relative_to(first) for part in touched]
        further = None if others is None else [one.relative_to(first) for one in others]
        return self.array.read(region.relative_to(first), touched=parts, others=further, into=into)


def source_of(image: xr.DataArray) -> Source:
    """Return where a task can read the image's voxels: its store, a crop of one, or memory.

    Raises
    ------
    ValueError
        When the image is a lazy result that lies neither in memory nor in a store, or its type is none of an image.
    """
    spatial_dims(image)
    voxel_type(image.dtype)
    data = image.data
    if isinstance(data, np.ndarray):
        return ArraySource(data, channels_of(image))
    stored = stored_source(image)
    if stored is not None:
        return stored
    msg = f"the image is a lazy result ({type(data).__name__}) that no task can read by region"
    raise ValueError(f"{msg}: call .compute() on a small one, or write it with write_image and open that store")


def stored_source(image: xr.DataArray) -> StoreSource | None:
    """Return the store that a lazy image still shows unchanged, whole or cut by one slicing; else None.

    A lazy array's name says how it came about: the name that the same cut of the store's image has is proof enough.
    """
    if "fidopt_source" not in image.encoding or image.size == 0:
        return None
    path, level, name = image.encoding["fidopt_source"]
    library = image.encoding.get("fidopt_library", "zarr")
    array = open_store(path, library=library).arrays[level]
    spatial = len(spatial_dims(image))
    if image.data.name == name:
        return StoreSource(array, Region.of(image.shape[-spatial:]), channels_of(image))
    whole = open_image(path, level, library=library)
    if whole.data.name != name or whole.dims != image.dims:
        return None
    start = [
        round((float(image.coords[d][0]) - float(whole.coords[d][0])) / s)
        for d, s in zip(spatial_dims(image), whole.attrs["spacing"][::-1], strict=True)
    ]
    region = Region(tuple(start), tuple(a + n for a, n in zip(start, image.shape[-spatial:], strict=True)))
    cut = whole.isel(dict(zip(spatial_dims(image), region.slices, strict=True)))
    return StoreSource(array, region, channels_of(image)) if cut.data.name == image.data.name else None
