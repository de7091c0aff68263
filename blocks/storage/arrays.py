"""Arrays by path: create one, read a region, write a shard."""

from __future__ import annotations

import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BloscCodec

from blocks.region import Region
from blocks.storage.cache import CHUNKS
from blocks.storage.layout import Layout, StoreError
from blocks.storage.shard_writer import write_whole
from blocks.storage.shards import ShardReader

Library = Literal["zarr", "tensorstore"]
Voxels = npt.NDArray[Any]

#: Handles kept open; a warp needs two, a pyramid two a level.
_HANDLES = 64


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
        reader = _handle(self.path, "shards")
        layout = _layout_of(_handle(self.path, "zarr")) if reader is None else reader.layout
        cut = self.leading
        shards = None if layout.shards is None else layout.shards[cut:]
        return Layout(layout.shape[cut:], layout.chunks[cut:], shards, layout.dtype, layout.names[cut:])

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
        reader = self._reader
        if reader is not None:
            edges = [s.indices(n) for s, n in zip(index, self.shape, strict=True)]
            box = Region(tuple(a for a, _, _ in edges), tuple(b for _, b, _ in edges))
            return reader.read(box)
        array = _handle(self.path, self.library)
        try:
            part = array[(0,) * self.leading + tuple(index)]
            voxels = part.read().result() if self.library == "tensorstore" else part
        except (ValueError, RuntimeError, OSError) as error:
            box_text = ", ".join(f"{s.start}:{s.stop}" for s in index)
            msg = f"{self.path} cannot be read at [{box_text}], its file may be damaged: {error}"
            raise StoreError(msg) from error
        return np.asarray(voxels, dtype=self.dtype)

    def pieces(self, box: Region) -> Iterator[tuple[Region, Voxels]]:
        """Yield the parts of a box (all axes) with their voxels, as small as it can be read: a chunk, else a shard.

        What is yielded lasts until the next part is asked for.
        """
        reader = self._reader
        if reader is not None:
            yield from reader.pieces(box)
            return
        for part in box.split(self.layout.blocks):
            yield part, self[part.slices]

    @property
    def _reader(self) -> ShardReader | None:
        return _handle(self.path, "shards") if self.library == "zarr" and not self.leading else None

    def read(self, region: Region, *, touched: Sequence[Region] | None = None, into: Voxels | None = None) -> Voxels:
        """Return the voxels of a spatial region inside the array, with all its channels.

        Parameters
        ----------
        region
            Spatial axes.
        touched
            The parts of it that are wanted, where not all is; chunks they do not touch may not be read, and are zero.
            What is decoded for them is looked for, and left, in the process's cache of chunks.
        into
            Where it may be read to, of the shape of what is returned; by default a new array.
        """
        leading = self.shape[: self.ndim - region.ndim]
        reader = self._reader
        if touched is None or reader is None:
            return self[(*(slice(None) for _ in leading), *region.slices)]

        def whole(part: Region) -> Region:
            return Region((0,) * len(leading) + part.start, leading + part.stop)

        return reader.read(whole(region), touched=[whole(part) for part in touched], cache=CHUNKS, into=into)


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
    CHUNKS.drop(str(file))
    reader = _handle(array.path, "shards") if array.library == "zarr" else None
    if reader is not None:
        write_whole(reader, file, voxels)
    elif array.library == "tensorstore":
        _handle(array.path, array.library)[region.slices].write(voxels).result()
    else:
        _handle(array.path, array.library)[region.slices] = voxels
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


def _handle(path: str, library: Library | Literal["shards"]) -> Any:  # noqa: ANN401 - three kinds, one not typed
    """Return an open array, from a small cache that a store written anew at the same path does not meet."""
    key = (path, library, *_stamp(path))
    with _lock:
        if key in _open:
            _open.move_to_end(key)
            return _open[key]
    handle = _OPENERS[library](path)
    with _lock:
        _open[key] = handle
        while len(_open) > _HANDLES:
            _open.popitem(last=False)
    return handle


def _layout_of(array: zarr.Array[Any]) -> Layout:
    names = getattr(array.metadata, "dimension_names", None) or ("",) * array.ndim
    dtype = np.dtype(array.dtype).newbyteorder("=")
    return Layout(array.shape, array.chunks, array.shards, dtype, tuple(str(name) for name in names))


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


_OPENERS: dict[str, Callable[[str], Any]] = {"zarr": _zarr, "tensorstore": _tensorstore, "shards": ShardReader.of}
