"""Open a store as a lazy image: its metadata is read, none of its voxels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr
import zarr

from blocks.grid import Grid
from blocks.image.construction import MARK, is_unfinished
from blocks.image.metadata import Multiscales, parse_root
from blocks.image.view import image_of
from blocks.storage import SHARD, Layout, Library, StoredArray, StoreError, is_url, local_path
from blocks.storage.objects import asking, fetch, zarr_store


@dataclass(frozen=True)
class Level:
    """One level of a store.

    Parameters
    ----------
    path
        Name of the level's array in the store.
    shape, chunks, shards
        Voxels an axis of the level, of the unit read, and of the unit written (None where it is not sharded);
        ((c,) (z,) y, x).
    dtype
        Type of a voxel.
    grid
        Where the voxels are.
    """

    path: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    dtype: np.dtype[Any]
    grid: Grid


@dataclass(frozen=True)
class Store:
    """A store that is open for reading: what its root says, and its arrays, the finest level first."""

    path: str
    multiscales: Multiscales
    arrays: tuple[StoredArray, ...]

    def level(self, number: int) -> Level:
        """Describe one level.

        Raises
        ------
        ValueError
            When the store has no such level.
        """
        if not 0 <= number < len(self.arrays):
            msg = f"{self.path} has the levels 0 to {len(self.arrays) - 1}, there is no level {number}"
            raise ValueError(msg)
        layout = self.arrays[number].layout
        spatial = len(self.multiscales.levels[0].scale)
        if len(layout.shape) != len(self.multiscales.dims):
            msg = f"{self.path}: level {number} has {len(layout.shape)} axes, its metadata {self.multiscales.dims}"
            raise StoreError(msg)
        grid = self.multiscales.grid(layout.shape[-spatial:], number)
        name = self.multiscales.levels[number].path
        return Level(name, layout.shape, layout.chunks, layout.shards, layout.dtype, grid)


def open_store(path: str | Path, *, library: Library = "zarr") -> Store:
    """Read a store's metadata.

    Parameters
    ----------
    path
        Folder or URL of an OME-Zarr store, 0.4 or 0.5.
    library
        What will read its voxels.

    Raises
    ------
    StoreError
        When there is no finished OME-Zarr image there.
    """
    where = local_path(path)
    multiscales = parse_root(read_root(where), where)
    leading = int("t" in multiscales.axes)
    opened = uuid4().hex if is_url(where) else ""
    arrays = tuple(StoredArray(f"{where}/{place.path}", library, leading, opened) for place in multiscales.levels)
    if leading and (points := StoredArray(arrays[0].path, library, opened=opened).shape[0]) != 1:
        msg = f"{where} is a series of {points} points in time; an image has one: cut it out first"
        raise StoreError(msg)
    return Store(where, multiscales, arrays)


def open_image(path: str | Path, level: int = 0, *, library: Library = "zarr") -> xr.DataArray:
    """Return a store's image, lazily: dims (c,) (z,) y, x, one Dask block a shard.

    Parameters
    ----------
    path
        Folder or URL of an OME-Zarr store, 0.4 or 0.5.
    level
        0 is the image, n is n times halved.
    library
        What reads the voxels: zarr-python, or tensorstore where it is installed.

    Raises
    ------
    StoreError
        When there is no finished OME-Zarr image there.
    ValueError
        When the store has no such level.

    Notes
    -----
    ``image.encoding["fidopt_source"]`` is the store's path, the level and the name of the Dask array: as long as
    ``image.data`` has that name, its voxels can be read from the store by region.
    """
    store = open_store(path, library=library)
    described = store.level(level)
    array = store.arrays[level]
    token = hashlib.sha256(repr((array.identity, library)).encode()).hexdigest()[:16]
    name = f"{layer_prefix(store.path)}{token}"
    # Inlined, so that a task holds the array's path and the slice it reads, and nothing is loaded to build the graph.
    meta = np.empty((0,) * array.ndim, dtype=array.dtype)
    data = da.from_array(
        array,
        chunks=_block_shape(array.layout, described.grid.ndim),
        name=name,
        meta=meta,
        asarray=True,
        fancy=False,
        inline_array=True,
    )
    said = store.multiscales
    place = said.levels[level]
    image = image_of(data, described.grid, unit=said.unit, kind=said.kind, translation=place.translation)
    image.encoding |= {"fidopt_source": (store.path, level, name), "fidopt_library": library}
    return image


def levels_of(path: str | Path) -> list[Level]:
    """Describe every level of a store, the finest first."""
    store = open_store(path)
    return [store.level(number) for number in range(len(store.arrays))]


def layer_prefix(path: str) -> str:
    """Return how the names of all lazy arrays that read from a store begin."""
    return f"open-image-{hashlib.sha256(local_path(path).encode()).hexdigest()[:12]}-"


def read_root(where: str) -> dict[str, Any]:
    """Return the root attributes of a store by its absolute path or URL.

    Raises
    ------
    StoreError
        When nothing is there, it is no Zarr group, or it is a store that was not finished.
    """
    if is_url(where):
        return _remote_root(where)
    folder = Path(where)
    if not folder.exists():
        msg = f"there is no store at {where}; check the path"
        raise StoreError(msg)
    if not folder.is_dir():
        msg = f"{where} is a file; an OME-Zarr store is a folder: `fidopt convert` makes one of it"
        raise StoreError(msg)
    if is_unfinished(where):
        msg = f"the store {where} was not finished; run what wrote it again"
        raise StoreError(msg)
    try:
        return dict(zarr.open_group(where, mode="r").attrs)
    except Exception as error:
        # zarr-python has errors of several libraries.
        said = " ".join(str(error).split()) or type(error).__name__
        msg = f"{where} is not an OME-Zarr store: no Zarr group can be opened there ({said}); check the path, or fetch"
        msg = f"{msg} or write the store again"
        raise StoreError(msg) from error


def _remote_root(where: str) -> dict[str, Any]:
    try:
        with asking(where):
            return dict(zarr.open_group(zarr_store(where), mode="r").attrs)
    except FileNotFoundError as error:
        if fetch(f"{where}/{MARK}") is not None:
            msg = f"the store {where} was not finished; run what wrote it again"
            raise StoreError(msg) from error
        msg = f"there is no OME-Zarr store at {where}: neither zarr.json nor .zgroup is there; check the address"
        raise StoreError(msg) from error


def _block_shape(layout: Layout, spatial: int) -> tuple[int, ...]:
    """Return the unit read lazily: a shard; without shards, whole chunks up to a shard's size, with all channels."""
    if layout.shards is not None:
        return layout.shards
    chunks = layout.chunks[-spatial:]
    return (*layout.shape[:-spatial], *(c * max(1, SHARD[spatial] // c) for c in chunks))
