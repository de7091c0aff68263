"""The seam to Zarr: create an array, read a region, write a shard. Nothing else in the engine touches a chunk.

Arrays are named by path and opened where they are used, so that a task carries a few bytes. zarr-python is the default
and what every store of the corpus is written with; tensorstore, where it is installed, is a choice.
"""

from __future__ import annotations

import importlib.util
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BloscCodec

from blocks.region import Region

Library = Literal["zarr", "tensorstore"]
Voxels = npt.NDArray[Any]

#: Voxels a side of a chunk (the unit read) and of a shard (the unit written), by the number of spatial axes.
CHUNK = {2: 512, 3: 64}
SHARD = {2: 4096, 3: 256}
#: Kinds of types a store holds: bool, signed and unsigned integers, floats.
_KINDS = "biuf"
#: Handles kept open; a warp needs two, a pyramid two a level.
_HANDLES = 64


class StoreError(OSError):
    """A store that is missing, unfinished, damaged, or not an OME-Zarr store."""


@dataclass(frozen=True)
class Layout:
    """How an array is laid out on disk; axes ((c,) (z,) y, x).

    Parameters
    ----------
    shape, chunks, shards
        Voxels an axis of the array, of the unit read, and of the unit written (None where there is none).
    dtype
        Type of a voxel, in the machine's byte order.
    names
        Names of the axes.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    dtype: np.dtype[Any]
    names: tuple[str, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: npt.DTypeLike, names: tuple[str, ...]) -> Layout:
        """Return the layout every store is written in: square chunks, all channels in a chunk, shards of whole chunks.

        Raises
        ------
        ValueError
            When the type is not a boolean, an integer or a float.
        """
        kind = np.dtype(dtype)
        if kind.kind not in _KINDS or kind.itemsize > 8:
            msg = f"a store holds booleans, integers and floats of at most 64 bits, got {kind}; convert the image first"
            raise ValueError(msg)
        channels = tuple(n for n, name in zip(shape, names, strict=True) if name == "c")
        spatial = shape[len(channels) :]
        chunk, most = CHUNK[len(spatial)], SHARD[len(spatial)]
        shards = tuple(min(most, -(-n // chunk) * chunk) for n in spatial)
        chunks = (*channels, *(chunk for _ in spatial))
        return cls(shape, chunks, (*channels, *shards), kind.newbyteorder("="), names)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Voxels an axis of the unit written: a shard, or a chunk where the array is not sharded."""
        return self.chunks if self.shards is None else self.shards

    @property
    def blocks_along(self) -> tuple[int, ...]:
        """Number of shards (or chunks) an axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.blocks, strict=True))

    def indices(self) -> list[tuple[int, ...]]:
        """Return the index of every shard, in index order."""
        return list(product(*(range(n) for n in self.blocks_along)))

    def region(self, index: tuple[int, ...]) -> Region:
        """Return the voxels of a shard inside the array, all axes."""
        start = tuple(i * b for i, b in zip(index, self.blocks, strict=True))
        return Region(start, tuple(a + b for a, b in zip(start, self.blocks, strict=True))).clip(self.shape)


@dataclass(frozen=True)
class StoredArray:
    """An array of a store, named by its path; pickles as that name.

    Parameters
    ----------
    path
        Absolute path or URL of the array.
    library
        What reads and writes it.
    leading
        Number of leading axes of one element that are left out of everything below (a time axis of one point).
    """

    path: str
    library: Library = "zarr"
    leading: int = 0

    @cached_property
    def layout(self) -> Layout:
        """How the array is laid out, without the leading axes."""
        array = cast("zarr.Array[Any]", _handle(self.path, "zarr"))
        skip = self.leading
        names = getattr(array.metadata, "dimension_names", None) or ("",) * array.ndim
        return Layout(
            tuple(array.shape[skip:]),
            tuple(array.chunks[skip:]),
            None if array.shards is None else tuple(array.shards[skip:]),
            np.dtype(array.dtype).newbyteorder("="),
            tuple(str(name) for name in names[skip:]),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis."""
        return self.layout.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.layout.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        return self.layout.dtype

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells this array from another one later written to the same path."""
        return (self.path, self.leading, *_stamp(self.path))

    def __getitem__(self, index: tuple[slice, ...]) -> Voxels:
        """Return the voxels of a plain box, as NumPy would: what a lazy array calls.

        Raises
        ------
        StoreError
            When a chunk cannot be read; the message names the array and the box.
        """
        array = _handle(self.path, self.library)
        try:
            box = array[(0,) * self.leading + tuple(index)]
            voxels = box.read().result() if self.library == "tensorstore" else box
        except (ValueError, RuntimeError, OSError) as error:
            box_text = ", ".join(f"{s.start}:{s.stop}" for s in index)
            msg = f"{self.path} cannot be read at [{box_text}], its file may be damaged: {error}"
            raise StoreError(msg) from error
        return np.asarray(voxels, dtype=self.dtype)

    def read(self, region: Region) -> Voxels:
        """Return the voxels of a spatial region inside the array, with all its channels."""
        channels = (slice(None),) * (self.ndim - region.ndim)
        return self[(*channels, *region.slices)]


def tensorstore_installed() -> bool:
    """Whether ``library="tensorstore"`` can be asked for."""
    return importlib.util.find_spec("tensorstore") is not None


def create_array(path: str, layout: Layout, *, library: Library = "zarr") -> StoredArray:
    """Create an empty array: zstd in blosc with byte shuffle, sharded, its metadata in its own ``zarr.json`` alone."""
    zarr.create_array(
        path,
        shape=layout.shape,
        dtype=layout.dtype,
        chunks=layout.chunks,
        shards=layout.shards,
        fill_value=0,
        compressors=BloscCodec(typesize=layout.dtype.itemsize, cname="zstd", clevel=3, shuffle="shuffle"),
        dimension_names=layout.names,
    )
    return StoredArray(path, library)


def write_shard(array: StoredArray, index: tuple[int, ...], voxels: Voxels) -> int:
    """Write one whole shard, as the only writer of it, and return the bytes it takes on disk.

    The shard that was there is deleted first: libraries read the old shard where the array ends inside it, and a torn
    one would fail every attempt. A shard that holds nothing but zeros is stored too: its existence says it was written.

    Parameters
    ----------
    array
        An array on this file system, made by :func:`create_array`.
    index
        Index of the shard, an axis each.
    voxels
        All the voxels of the shard that lie inside the array.

    Raises
    ------
    ValueError
        When ``voxels`` is less or more than the shard.
    StoreError
        When the shard is not there after writing.
    """
    region = array.layout.region(index)
    if voxels.shape != region.shape or voxels.dtype != array.dtype:
        msg = f"shard {index} of {array.path} is {region.shape} of {array.dtype}, got {voxels.shape} of {voxels.dtype}"
        raise ValueError(msg)
    file = shard_file(array, index)
    file.unlink(missing_ok=True)
    handle = _handle(array.path, array.library)
    if array.library == "tensorstore":
        handle[region.slices].write(voxels).result()
    else:
        handle[region.slices] = voxels
    if not file.is_file():
        msg = f"shard {index} of {array.path} was written but {file} is not there; check the file system"
        raise StoreError(msg)
    return file.stat().st_size


def shard_file(array: StoredArray, index: tuple[int, ...]) -> Path:
    """Return the file of a shard."""
    return Path(array.path, "c", *(str(i) for i in index))


def local_path(path: str | Path) -> str:
    """Return an absolute path as text, a URL unchanged: workers may stand in another folder."""
    text = str(path).rstrip("/") or "/"
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    return text if "://" in text else str(Path(text).absolute())


_open: OrderedDict[tuple[object, ...], Any] = OrderedDict()
_lock = threading.Lock()


def _handle(path: str, library: Library) -> Any:  # noqa: ANN401 - a zarr array or a tensorstore, which is not typed
    """Return an open array, from a small cache that a store written anew at the same path does not meet."""
    key = (path, library, *_stamp(path))
    with _lock:
        if key in _open:
            _open.move_to_end(key)
            return _open[key]
    handle = _tensorstore(path) if library == "tensorstore" else _zarr(path)
    with _lock:
        _open[key] = handle
        while len(_open) > _HANDLES:
            _open.popitem(last=False)
    return handle


def _stamp(path: str) -> tuple[int, ...]:
    """Return the inode and the time of an array's metadata, nothing for a URL."""
    if "://" in path:
        return ()
    for name in ("zarr.json", ".zarray"):
        file = Path(path, name)
        if file.is_file():
            status = file.stat()
            return (status.st_ino, status.st_mtime_ns)
    msg = f"there is no Zarr array at {path}: neither zarr.json nor .zarray is there; the store may be incomplete"
    raise StoreError(msg)


def _zarr(path: str) -> zarr.Array[Any]:
    mode: Literal["r", "r+"] = "r" if "://" in path else "r+"
    try:
        return zarr.open_array(path, mode=mode).with_config({"write_empty_chunks": True})
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        msg = f"{path} is not a Zarr array that can be read: {error}"
        raise StoreError(msg) from error


def _tensorstore(path: str) -> Any:  # noqa: ANN401 - tensorstore is not typed
    if not tensorstore_installed():
        msg = "tensorstore is not installed; use the library 'zarr', or pip install 'fidopt[fast]'"
        raise ImportError(msg)
    import tensorstore

    driver = "zarr3" if Path(path, "zarr.json").is_file() else "zarr"
    # A context of its own, without a cache: a handle of an array that was written anew must not see the old one.
    spec = {
        "driver": driver,
        "kvstore": {"driver": "file", "path": path + "/"},
        "store_data_equal_to_fill_value": True,
        "context": {"cache_pool": {"total_bytes_limit": 0}},
    }
    return tensorstore.open(spec, open=True).result()
