"""Decode boxes straight out of shard files: about half of what zarr-python takes for the layout we write.

Reading is what an engine does most, and the time of it is spent outside the codec: in coroutines, fresh buffers and
copies. Only the layout every store of ours has is read here (blosc in a shard, the index at its end, on this file
system); any other array is left to zarr-python. The index is checked against its checksum on every read.

Of a voxel of s bytes, what is stored of it is read once, s bytes are decoded to a buffer of a chunk, which stays in the
second cache, and s are copied from there to the box. Decoding takes two thirds of the time.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
from numcodecs.blosc import Blosc  # type: ignore[import-untyped]  # it has no types

from blocks.region import Region
from blocks.storage.cache import ChunkCache
from blocks.storage.codecs import codec_of, is_ours
from blocks.storage.layout import Layout, StoreError

Voxels = npt.NDArray[Any]

#: Offset and length in the index of a chunk that holds the fill value and is not stored.
ABSENT = 2**64 - 1
#: What to do about a shard that is damaged.
_AGAIN = "fetch or write the store again"
#: Decodes by what a buffer's own header says.
_BLOSC = Blosc()


@dataclass(frozen=True)
class _Part:
    """What is read of one shard: its file, its first voxel, and boxes that each lie in one chunk."""

    file: str
    first: tuple[int, ...]
    boxes: list[Region]


@dataclass(frozen=True)
class ShardReader:
    """Reads boxes of one array.

    Parameters
    ----------
    path
        Folder of the array.
    layout
        How it is laid out, all axes.
    fill
        Value of what is not stored.
    codec
        What its chunks are compressed with.
    """

    path: str
    layout: Layout
    fill: bool | float
    codec: Blosc

    @classmethod
    def of(cls, path: str) -> ShardReader | None:
        """Return a reader of an array, None where its layout is not the one read here."""
        try:
            return cls.described(path, Path(path, "zarr.json").read_bytes())
        except OSError:
            return None

    @classmethod
    def described(cls, path: str, metadata: bytes) -> ShardReader | None:
        """Return a reader of an array by the content of its ``zarr.json``, None where its layout is another one.

        Raises
        ------
        StoreError
            When its chunks or shards have no voxel along an axis, or a shard is not of whole chunks.
        """
        try:
            said = json.loads(metadata)
            (sharding,) = said["codecs"]
            if not is_ours(said, sharding):
                return None
            chunk = tuple(sharding["configuration"]["chunk_shape"])
            shard = tuple(said["chunk_grid"]["configuration"]["chunk_shape"])
            names = tuple(said.get("dimension_names") or ("",) * len(chunk))
            layout = Layout(tuple(said["shape"]), chunk, shard, np.dtype(said["data_type"]), names)
            codec = codec_of(**sharding["configuration"]["codecs"][1]["configuration"])
        except (ValueError, KeyError, TypeError):
            return None
        if len(chunk) != len(shard) or any(c < 1 or s < 1 or s % c for c, s in zip(chunk, shard, strict=True)):
            # Read as they stand, such numbers would lead past every voxel that is stored.
            msg = f"{path}: its metadata say chunks of {chunk} voxels in shards of {shard}, whole chunks are expected;"
            raise StoreError(f"{msg} fetch or write the store again")
        return cls(path, layout, said["fill_value"], codec)

    def read(
        self,
        box: Region,
        *,
        touched: Sequence[Region] | None = None,
        cache: ChunkCache | None = None,
        into: Voxels | None = None,
    ) -> Voxels:
        """Return the voxels of a box inside the array.

        Parameters
        ----------
        box
            All axes.
        touched
            The parts of the box that are wanted: only the chunks they touch are decoded, and the rest is zero. By
            default all of it.
        cache
            Where decoded chunks are looked for first, and left.
        into
            Where to read to, of the box's shape; by default a new array.

        Raises
        ------
        StoreError
            When a shard's file is damaged.
        """
        out = np.empty(box.shape, dtype=self.layout.dtype) if into is None else into
        wanted = None if touched is None else self._wanted(box, touched)
        if wanted is not None and not wanted.all():
            self._clear(out, box, wanted)
        shards = self._shards(box, wanted)
        if cache is not None:
            # All that is held is taken before anything is decoded, which would push it out.
            shards = [self._taken(shard, cache, out, box.start) for shard in shards]
        for shard in shards:
            for part, voxels in self._pieces(shard, cache):
                out[part.relative_to(box.start).slices] = voxels
        return out

    def pieces(self, box: Region) -> Iterator[tuple[Region, Voxels]]:
        """Yield the parts of a box, a decoded chunk at a time; a piece's voxels last until the next one is asked for.

        Raises
        ------
        StoreError
            When a shard's file is damaged.
        """
        for shard in self._shards(box, None):
            yield from self._pieces(shard, None)

    def _shards(self, box: Region, wanted: npt.NDArray[np.bool_] | None) -> list[_Part]:
        """Return what is to be read of each shard, cut along its chunks."""
        blocks, chunks = self.layout.blocks, self.layout.chunks
        lattice = box.align(chunks).start
        found = []
        for part in box.split(blocks):
            index = tuple(a // n for a, n in zip(part.start, blocks, strict=True))
            file = os.path.join(self.path, "c", *map(str, index))  # noqa: PTH118 - a Path costs more than the read
            boxes = list(part.split(chunks))
            if wanted is not None:
                at = [tuple((a - f) // n for a, f, n in zip(b.start, lattice, chunks, strict=True)) for b in boxes]
                boxes = [b for b, corner in zip(boxes, at, strict=True) if wanted[corner]]
            found.append(_Part(file, self.layout.region(index).start, boxes))
        return found

    def _wanted(self, box: Region, touched: Sequence[Region]) -> npt.NDArray[np.bool_]:
        """Return which chunks around a box hold a voxel of the parts: an entry a chunk an axis."""
        chunks = self.layout.chunks
        around = box.align(chunks)
        wanted = np.zeros([n // c for n, c in zip(around.shape, chunks, strict=True)], dtype=bool)
        for part in touched:
            inside = part.intersect(box)
            if not inside.empty:
                at = inside.align(chunks).relative_to(around.start)
                wanted[tuple(slice(s.start // n, s.stop // n) for s, n in zip(at.slices, chunks, strict=True))] = True
        return wanted

    def _clear(self, out: Voxels, box: Region, wanted: npt.NDArray[np.bool_]) -> None:
        """Set to zero what is not read of a box."""
        chunks = self.layout.chunks
        lattice = box.align(chunks).start
        for corner in np.argwhere(~wanted).tolist():
            start = tuple(a + k * n for a, k, n in zip(lattice, corner, chunks, strict=True))
            chunk = Region(start, tuple(a + n for a, n in zip(start, chunks, strict=True))).intersect(box)
            out[chunk.relative_to(box.start).slices] = 0

    def _taken(self, shard: _Part, cache: ChunkCache, out: Voxels, start: tuple[int, ...]) -> _Part:
        """Fill in what the cache holds of a shard, and return what is left to decode."""
        version = self._version_of(shard)
        if version is None:
            return shard
        left = []
        for box in shard.boxes:
            corner, first = self._place(shard, box)
            with cache.reading((shard.file, version, corner)) as voxels:
                if voxels is None:
                    left.append(box)
                else:
                    out[box.relative_to(start).slices] = voxels[box.relative_to(first).slices]
        return replace(shard, boxes=left)

    def _version_of(self, shard: _Part) -> tuple[int | str, ...] | None:
        """Return what tells a shard from another of the same name, None where it is not there."""
        try:
            return _version(os.stat(shard.file))  # noqa: PTH116 - a Path costs more than the call
        except FileNotFoundError:
            return None

    def _pieces(self, shard: _Part, cache: ChunkCache | None) -> Iterator[tuple[Region, Voxels]]:
        """Yield the boxes of one shard with their voxels."""
        if not shard.boxes:
            return
        try:
            handle = os.open(shard.file, os.O_RDONLY)
        except FileNotFoundError:
            for box in shard.boxes:
                yield box, np.full(box.shape, self.fill, dtype=self.layout.dtype)
            return
        try:
            yield from self._decoded(handle, shard, cache)
        finally:
            os.close(handle)

    def _decoded(self, handle: int, shard: _Part, cache: ChunkCache | None) -> Iterator[tuple[Region, Voxels]]:
        entries, version = self._index(handle, shard.file), _version(os.fstat(handle))
        buffer = np.empty(self.layout.chunks, dtype=self.layout.dtype)
        for box in shard.boxes:
            corner, first = self._place(shard, box)
            offset, length = (int(v) for v in entries[corner])
            if offset == ABSENT:
                yield box, np.full(box.shape, self.fill, dtype=self.layout.dtype)
                continue
            stored, where = os.pread(handle, length, offset), f"{shard.file}, chunk {corner}"
            place = None if cache is None else cache.take(self.layout.chunks, self.layout.dtype)
            if place is None or cache is None:
                _decode(stored, length, buffer, where)
                yield box, buffer[box.relative_to(first).slices]
                continue
            try:
                _decode(stored, length, place.voxels, where)
                yield box, place.voxels[box.relative_to(first).slices]
            except BaseException:
                cache.give(place)
                raise
            cache.put((shard.file, version, corner), place)

    def _place(self, shard: _Part, box: Region) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return which chunk of a shard a box lies in, and the chunk's first voxel in the array."""
        chunks = self.layout.chunks
        corner = tuple((a - f) // n for a, f, n in zip(box.start, shard.first, chunks, strict=True))
        return corner, tuple(f + k * n for f, k, n in zip(shard.first, corner, chunks, strict=True))

    @property
    def _index_bytes(self) -> int:
        """Length of the index at a shard's end: an offset and a length a chunk, and a checksum."""
        return 16 * int(np.prod([s // c for s, c in zip(self.layout.blocks, self.layout.chunks, strict=True)])) + 4

    def _index(self, handle: int, file: str) -> npt.NDArray[np.uint64]:
        size = self._index_bytes
        before = os.fstat(handle).st_size - size
        return self._entries(os.pread(handle, size, before) if before >= 0 else b"", file)

    def _entries(self, stored: bytes, file: str) -> npt.NDArray[np.uint64]:
        """Return where each chunk of a shard is stored, by its index: (*chunks, offset and length)."""
        if len(stored) != self._index_bytes or struct.unpack("<I", stored[-4:])[0] != google_crc32c.value(stored[:-4]):
            msg = f"{file} is damaged: the index at its end does not match its checksum; {_AGAIN}"
            raise StoreError(msg)
        counts = tuple(s // c for s, c in zip(self.layout.blocks, self.layout.chunks, strict=True))
        return np.frombuffer(stored[:-4], dtype="<u8").reshape(*counts, 2)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    """Return what tells a shard's file from another one written to the same path."""
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _decode(stored: bytes, length: int, buffer: Voxels, where: str) -> None:
    """Decode one chunk into a buffer of a chunk's shape."""
    # The header of a blosc buffer holds, little endian at bytes 4 and 12, the sizes decoded and stored.
    sizes = struct.unpack_from("<I4xI", stored, 4) if len(stored) == length >= 16 else None
    if sizes != (buffer.nbytes, length):
        msg = f"{where} is damaged: it does not hold a chunk of {buffer.nbytes} bytes; {_AGAIN}"
        raise StoreError(msg)
    try:
        _BLOSC.decode(stored, buffer)
    except (RuntimeError, ValueError) as error:
        msg = f"{where} is damaged ({error}); {_AGAIN}"
        raise StoreError(msg) from error
