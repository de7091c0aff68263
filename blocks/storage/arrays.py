"""Arrays by path: create one, read a region, write a shard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BloscCodec

from blocks.region import Region
from blocks.storage.cache import CHUNKS
from blocks.storage.foreign import refuse_cut
from blocks.storage.handles import Library, handle_of, stamp
from blocks.storage.layout import Layout, StoreError
from blocks.storage.objects import asking, is_url, listing, put, remove, zarr_store
from blocks.storage.shard_writer import encoded, write_whole
from blocks.storage.shards import ShardReader

Voxels = npt.NDArray[Any]


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
    opened
        What tells an array in an object store, where nothing else does so cheaply, from one written to the same URL
        before: its metadata are read once a process for each.
    """

    path: str
    library: Library = "zarr"
    leading: int = 0
    opened: str = ""

    @cached_property
    def layout(self) -> Layout:
        """How the array is laid out, without the leading axes."""
        reader = handle_of(self.path, "shards", self.opened)
        layout = _layout_of(handle_of(self.path, "zarr", self.opened)) if reader is None else reader.layout
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
        return (self.path, self.leading, self.opened, *stamp(self.path))

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
        array = handle_of(self.path, self.library, self.opened)
        kind = array.dtype.numpy_dtype if self.library == "tensorstore" else array.dtype
        self._refuse_another(tuple(array.shape[self.leading :]), np.dtype(kind))
        try:
            with asking(self.path) if is_url(self.path) else nullcontext():
                if self.library == "zarr" and not is_url(self.path):
                    refuse_cut(self.path, array, (*[slice(0, 1)] * self.leading, *index))
                part = array[(0,) * self.leading + tuple(index)]
                voxels = part.read().result() if self.library == "tensorstore" else part
        except StoreError:
            raise
        except (ValueError, RuntimeError, OSError) as error:
            box_text = ", ".join(f"{s.start}:{s.stop}" for s in index)
            msg = f"{self.path} cannot be read at [{box_text}], its file may be damaged ({error})"
            msg = f"{msg}; fetch or write the store again"
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
        if self.library != "zarr" or self.leading:
            return None
        reader: ShardReader | None = handle_of(self.path, "shards", self.opened)
        if reader is not None:
            self._refuse_another(reader.layout.shape, reader.layout.dtype)
        return reader

    def _refuse_another(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Refuse to read from an array that was put in the place of this one and has another shape or type."""
        if shape != self.shape or dtype.newbyteorder("=") != self.dtype:
            there, was = f"{shape} of {dtype}", f"{self.shape} of {self.dtype}"
            msg = f"{self.path} was {was} when it was opened, and is {there} now: it was written anew; open it again"
            raise StoreError(msg)

    def read(
        self,
        region: Region,
        *,
        touched: Sequence[Region] | None = None,
        others: Sequence[Region] | None = None,
        into: Voxels | None = None,
    ) -> Voxels:
        """Return the voxels of a spatial region inside the array, with all its channels.

        Parameters
        ----------
        region
            Spatial axes.
        touched
            The parts of it that are wanted, where not all is; chunks they do not touch may not be read, and are zero.
            What is decoded for them is looked for, and left, in the process's cache of chunks.
        others
            What further tasks read, where that is known; a chunk that none of them reads is not left there.
        into
            Where it may be read to, of the shape of what is returned; by default a new array.
        """
        leading = self.shape[: self.ndim - region.ndim]
        reader = self._reader
        if reader is None:
            return self[(*(slice(None) for _ in leading), *region.slices)]

        def whole(part: Region) -> Region:
            return Region((0,) * len(leading) + part.start, leading + part.stop)

        if touched is None:
            return reader.read(whole(region), into=into)
        parts, further = [whole(part) for part in touched], None if others is None else [whole(one) for one in others]
        return reader.read(whole(region), touched=parts, others=further, cache=CHUNKS, into=into)


def create_array(path: str, layout: Layout, *, library: Library = "zarr") -> StoredArray:
    """Create an empty array: zstd in blosc with byte shuffle, sharded, its metadata in its own ``zarr.json`` alone."""
    zarr.create_array(
        zarr_store(path, read_only=False) if is_url(path) else path,
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
        An array on this file system or in S3, made by :func:`create_array`.
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
    if is_url(array.path):
        return _put_shard(array, index, voxels)
    file = shard_file(array, index)
    file.unlink(missing_ok=True)
    CHUNKS.drop(str(file))
    reader = handle_of(array.path, "shards", array.opened) if array.library == "zarr" else None
    if reader is not None:
        write_whole(reader, file, voxels)
    elif array.library == "tensorstore":
        handle_of(array.path, array.library, array.opened)[region.slices].write(voxels).result()
    else:
        handle_of(array.path, array.library, array.opened)[region.slices] = voxels
    if not file.is_file():
        msg = f"shard {index} of {array.path} was written but {file} is not there; check the file system"
        raise StoreError(msg)
    return file.stat().st_size


def _put_shard(array: StoredArray, index: tuple[int, ...], voxels: Voxels) -> int:
    """Put one whole shard as an object and return its bytes; until all of it is there, nothing of it is."""
    name = shard_name(index)
    reader = handle_of(array.path, "shards", array.opened)
    if array.library == "tensorstore":
        remove(array.path, [name])
        handle_of(array.path, array.library, array.opened)[array.layout.region(index).slices].write(voxels).result()
        return listing(array.path)[name]
    content = encoded(reader, voxels)
    put(f"{array.path}/{name}", content)
    return len(content)


def shard_name(index: tuple[int, ...]) -> str:
    """Return the name of a shard below its array."""
    return "/".join(("c", *map(str, index)))


def shard_file(array: StoredArray, index: tuple[int, ...]) -> Path:
    """Return the file of a shard, of an array on this file system."""
    return Path(array.path, shard_name(index))


def local_path(path: str | Path) -> str:
    """Return an absolute path as text, a URL unchanged: workers may stand in another folder.

    Raises
    ------
    StoreError
        When there is no name at all, or a URL names a protocol and neither a server nor a bucket.
    """
    name = str(path)
    if not name.strip() or name.endswith("://") or (is_url(name) and name.partition("://")[2].startswith("/")):
        msg = f"the folder or the URL of a store is expected, got {name!r}"
        raise StoreError(msg)
    text = name.rstrip("/") or "/"
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    return text if "://" in text else str(Path(text).absolute())


def _layout_of(array: zarr.Array[Any]) -> Layout:
    names = getattr(array.metadata, "dimension_names", None) or ("",) * array.ndim
    dtype = np.dtype(array.dtype).newbyteorder("=")
    return Layout(array.shape, array.chunks, array.shards, dtype, tuple(str(name) for name in names))
