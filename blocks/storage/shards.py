"""Decode boxes straight out of shard files: about half of what zarr-python takes for the layout we write.

Reading is what an engine does most, and the time of it is spent outside the codec: in coroutines, fresh buffers and
copies. Only the layout every store of ours has is read here (blosc in a shard, the index at its end, on this file
system); any other array is left to zarr-python. The index is checked against its checksum on every read.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
from numcodecs.blosc import Blosc  # type: ignore[import-untyped]  # it has no types

from blocks.region import Region
from blocks.storage.layout import Layout, StoreError

Voxels = npt.NDArray[Any]

#: Offset and length in the index of a chunk that holds the fill value and is not stored.
ABSENT = 2**64 - 1
#: Decodes by what a buffer's own header says.
_BLOSC = Blosc()


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
            said = json.loads(Path(path, "zarr.json").read_bytes())
            (sharding,) = said["codecs"]
            if not _is_ours(said, sharding):
                return None
            chunk = tuple(sharding["configuration"]["chunk_shape"])
            shard = tuple(said["chunk_grid"]["configuration"]["chunk_shape"])
            names = tuple(said.get("dimension_names") or ("",) * len(chunk))
            layout = Layout(tuple(said["shape"]), chunk, shard, np.dtype(said["data_type"]), names)
            codec = _codec(**sharding["configuration"]["codecs"][1]["configuration"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cls(path, layout, said["fill_value"], codec)

    def read(self, box: Region) -> Voxels:
        """Return the voxels of a box inside the array.

        Raises
        ------
        StoreError
            When a shard's file is damaged.
        """
        out = np.empty(box.shape, dtype=self.layout.dtype)
        for part, voxels in self.pieces(box):
            out[part.relative_to(box.start).slices] = voxels
        return out

    def pieces(self, box: Region) -> Iterator[tuple[Region, Voxels]]:
        """Yield the parts of a box, a decoded chunk at a time; a piece's voxels last until the next one is asked for.

        Raises
        ------
        StoreError
            When a shard's file is damaged.
        """
        blocks, buffer = self.layout.blocks, np.empty(self.layout.chunks, dtype=self.layout.dtype)
        for part in box.split(blocks):
            index = tuple(a // n for a, n in zip(part.start, blocks, strict=True))
            file = os.path.join(self.path, "c", *map(str, index))  # noqa: PTH118 - a Path costs more than the read
            try:
                handle = os.open(file, os.O_RDONLY)
            except FileNotFoundError:
                yield part, np.full(part.shape, self.fill, dtype=self.layout.dtype)
                continue
            try:
                yield from self._shard(handle, file, self.layout.region(index).start, part, buffer)
            finally:
                os.close(handle)

    def _shard(
        self, handle: int, file: str, first: tuple[int, ...], part: Region, buffer: Voxels
    ) -> Iterator[tuple[Region, Voxels]]:
        """Yield the chunks of one shard, whose first voxel is ``first``, cut to a part of it."""
        chunks, entries = self.layout.chunks, self._index(handle, file)
        for box in part.split(chunks):
            corner = tuple((a - f) // n for a, f, n in zip(box.start, first, chunks, strict=True))
            offset, length = (int(v) for v in entries[corner])
            if offset == ABSENT:
                yield box, np.full(box.shape, self.fill, dtype=self.layout.dtype)
                continue
            _decode(os.pread(handle, length, offset), length, buffer, f"{file}, chunk {corner}")
            start = tuple(f + k * n for f, k, n in zip(first, corner, chunks, strict=True))
            yield box, buffer[box.relative_to(start).slices]

    def _index(self, handle: int, file: str) -> npt.NDArray[np.uint64]:
        """Return where each chunk of a shard is stored: (*chunks, offset and length)."""
        counts = tuple(s // c for s, c in zip(self.layout.blocks, self.layout.chunks, strict=True))
        size = 16 * int(np.prod(counts)) + 4
        before = os.fstat(handle).st_size - size
        stored = os.pread(handle, size, before) if before >= 0 else b""
        if len(stored) != size or struct.unpack("<I", stored[-4:])[0] != google_crc32c.value(stored[:-4]):
            msg = f"{file} is damaged: the index at its end does not match its checksum"
            raise StoreError(msg)
        return np.frombuffer(stored[:-4], dtype="<u8").reshape(*counts, 2)


def _decode(stored: bytes, length: int, buffer: Voxels, where: str) -> None:
    """Decode one chunk into a buffer of a chunk's shape."""
    # The header of a blosc buffer holds, little endian at bytes 4 and 12, the sizes decoded and stored.
    sizes = struct.unpack_from("<I4xI", stored, 4) if len(stored) == length >= 16 else None
    if sizes != (buffer.nbytes, length):
        msg = f"{where} is damaged: it does not hold a chunk of {buffer.nbytes} bytes"
        raise StoreError(msg)
    try:
        _BLOSC.decode(stored, buffer)
    except (RuntimeError, ValueError) as error:
        msg = f"{where} is damaged: {error}"
        raise StoreError(msg) from error


def _codec(*, cname: str, clevel: int, shuffle: str, typesize: int, blocksize: int) -> Blosc:
    """Return what compresses as an array's metadata say."""
    order = {"noshuffle": Blosc.NOSHUFFLE, "shuffle": Blosc.SHUFFLE, "bitshuffle": Blosc.BITSHUFFLE}
    return Blosc(cname=cname, clevel=clevel, shuffle=order[shuffle], typesize=typesize, blocksize=blocksize)


def _is_ours(said: dict[str, Any], sharding: dict[str, Any]) -> bool:
    """Whether an array's metadata describe the layout read here."""
    inside, encoding = sharding["configuration"], said["chunk_key_encoding"]
    little = {"endian": "little"}
    return (
        sharding["name"] == "sharding_indexed"
        and [c["name"] for c in inside["codecs"]] == ["bytes", "blosc"]
        and inside["codecs"][0].get("configuration", little) == little
        and [c["name"] for c in inside["index_codecs"]] == ["bytes", "crc32c"]
        and inside["index_codecs"][0].get("configuration", little) == little
        and inside.get("index_location", "end") == "end"
        and encoding["name"] == "default"
        and encoding.get("configuration", {}).get("separator", "/") == "/"
        and not said.get("storage_transformers")
        and isinstance(said["fill_value"], bool | int | float)
    )
