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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
from numcodecs.blosc import Blosc  # type: ignore[import-untyped]  # it has no types

from blocks.region import Region
from blocks.storage.cache import ChunkCache, Key
from blocks.storage.codecs import codec_of, is_ours
from blocks.storage.cuts import Cut, chunks_of, cuts
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
    """What is read of one shard: its file, and the cuts of its chunks."""

    file: str
    cuts: list[Cut]


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
        others: Sequence[Region] | None = None,
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
        others
            What further tasks read, where that is known: a chunk that none of them reads need not be left in the cache.
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
        if touched is not None:
            self._clear(out, box, touched)
        shards = self._shards(cuts(self.layout, box, touched=touched, others=others))
        if cache is not None:
            # All that is held is taken before anything is decoded, which would push it out.
            shards = [self._taken(shard, cache, out) for shard in shards]
        for shard in shards:
            for cut, voxels in self._pieces(shard, cache):
                out[cut.out] = voxels
        return out

    def pieces(self, box: Region) -> Iterator[tuple[Region, Voxels]]:
        """Yield the parts of a box, a decoded chunk at a time; a piece's voxels last until the next one is asked for.

        Raises
        ------
        StoreError
            When a shard's file is damaged.
        """
        for shard in self._shards(cuts(self.layout, box)):
            for cut, voxels in self._pieces(shard, None):
                yield Region(cut.start, cut.stop), voxels

    def _shards(self, found: Iterable[tuple[tuple[int, ...], list[Cut]]]) -> list[_Part]:
        """Return what is to be read of each shard."""
        return [_Part("/".join((self.path, "c", *map(str, index))), parts) for index, parts in found if parts]

    def _clear(self, out: Voxels, box: Region, touched: Sequence[Region]) -> None:
        """Set to zero what is not read of a box."""
        chunks = self.layout.chunks
        lattice = box.align(chunks).start
        for corner in np.argwhere(chunks_of(self.layout, box, touched) == 0).tolist():
            start = tuple(a + k * n for a, k, n in zip(lattice, corner, chunks, strict=True))
            chunk = Region(start, tuple(a + n for a, n in zip(start, chunks, strict=True))).intersect(box)
            out[chunk.relative_to(box.start).slices] = 0

    def _taken(self, shard: _Part, cache: ChunkCache, out: Voxels) -> _Part:
        """Fill in what the cache holds of a shard, and return what is left to decode."""
        version = self._version_of(shard)
        if version is None:
            return shard
        left = []
        for cut in shard.cuts:
            with cache.reading((shard.file, version, cut.corner)) as voxels:
                if voxels is None:
                    left.append(cut)
                else:
                    out[cut.out] = voxels[cut.inside]
        return replace(shard, cuts=left)

    def _version_of(self, shard: _Part) -> tuple[int | str, ...] | None:
        """Return what tells a shard from another of the same name, None where it is not there."""
        try:
            return _version(os.stat(shard.file))  # noqa: PTH116 - a Path costs more than the call
        except FileNotFoundError:
            return None

    def _pieces(self, shard: _Part, cache: ChunkCache | None) -> Iterator[tuple[Cut, Voxels]]:
        """Yield the cuts of one shard with their voxels."""
        if not shard.cuts:
            return
        try:
            handle = os.open(shard.file, os.O_RDONLY)
        except FileNotFoundError:
            for cut in shard.cuts:
                yield cut, np.full(cut.shape, self.fill, dtype=self.layout.dtype)
            return
        try:
            yield from self._decoded(handle, shard, cache)
        finally:
            os.close(handle)

    def _decoded(self, handle: int, shard: _Part, cache: ChunkCache | None) -> Iterator[tuple[Cut, Voxels]]:
        entries, version = self._index(handle, shard.file), _version(os.fstat(handle))
        buffer = np.empty(self.layout.chunks, dtype=self.layout.dtype)
        left, last = shard.cuts, False
        while left:
            later = []
            for cut in left:
                offset, length = (int(v) for v in entries[cut.corner])
                key = (shard.file, version, cut.corner)
                if offset == ABSENT:
                    yield cut, np.full(cut.shape, self.fill, dtype=self.layout.dtype)
                elif cache is not None and cache.is_made(key) and not last:
                    # Another thread decodes it at this moment: in the end it is there.
                    later.append(cut)
                else:
                    stored = partial(os.pread, handle, length, offset)
                    yield from self._chunk(cut, key, cache, buffer, stored=stored, length=length)
            left, last = later, True

    def _chunk(
        self,
        cut: Cut,
        key: Key,
        cache: ChunkCache | None,
        buffer: Voxels,
        *,
        stored: Callable[[], bytes],
        length: int,
    ) -> Iterator[tuple[Cut, Voxels]]:
        """Yield a cut with its voxels: out of the cache, else decoded, into the cache where there is room."""
        if cache is not None:
            cache.wait(key)
            with cache.reading(key) as held:
                if held is not None:
                    yield cut, held[cut.inside]
                    return
        making = nullcontext() if cache is None else cache.making(key, buffer.shape, buffer.dtype, again=cut.again)
        with making as place:
            voxels = buffer if place is None else place
            _decode(stored(), length, voxels, f"{key[0]}, chunk {cut.corner}")
            yield cut, voxels[cut.inside]

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


def _version(status: os.stat_result) -> tuple[int, ...]:
    """Return what tells a shard's file from another one written to the same path, or over it with its old time."""
    return (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)


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
