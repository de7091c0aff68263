"""Encode whole shards straight into their files: the bytes zarr-python writes, for two thirds of its time beside blosc.

A chunk at a time is copied together, compressed and written, so that a shard is never held compressed: zarr-python
holds every compressed chunk, and then all of them once more as one buffer.

Of every byte of voxels the writer reads and writes one in the copy, within the second cache, and compresses one;
compression is nine tenths of the time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import google_crc32c
import numpy as np
import numpy.typing as npt

from blocks.region import Region
from blocks.storage.shards import ABSENT, ShardReader

Voxels = npt.NDArray[Any]


def write_whole(reader: ShardReader, file: Path, voxels: Voxels) -> None:
    """Write a shard's file, by a file of another name beside it that is renamed when it is whole.

    Parameters
    ----------
    reader
        Of the array; says how it is laid out and compressed.
    file
        The shard's.
    voxels
        All voxels of the shard inside the array, from the shard's first.
    """
    partial = file.with_suffix(f".{uuid4().hex}.partial")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("wb") as stream:
            _encode(reader, stream, voxels)
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def encoded(reader: ShardReader, voxels: Voxels) -> bytes:
    """Return the bytes of a shard for an object store, which takes them whole; see :func:`write_whole`."""
    stream = BytesIO()
    _encode(reader, stream, voxels)
    return stream.getvalue()


def _encode(reader: ShardReader, stream: BinaryIO, voxels: Voxels) -> None:
    chunks = reader.layout.chunks
    counts = tuple(s // c for s, c in zip(reader.layout.blocks, chunks, strict=True))
    index = np.full((*counts, 2), ABSENT, dtype="<u8")
    buffer = np.empty(chunks, dtype=reader.layout.dtype)
    offset = 0
    for corner in _order(counts):
        start = tuple(k * n for k, n in zip(corner, chunks, strict=True))
        part = Region(start, tuple(a + n for a, n in zip(start, chunks, strict=True))).clip(voxels.shape)
        if part.empty:
            continue
        if part.shape != chunks:
            buffer[...] = reader.fill
        buffer[part.relative_to(start).slices] = voxels[part.slices]
        stored = reader.codec.encode(buffer)
        stream.write(stored)
        index[corner] = offset, len(stored)
        offset += len(stored)
    said = index.tobytes()
    stream.write(said + struct.pack("<I", google_crc32c.value(said)))


@lru_cache(maxsize=16)
def _order(counts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return a shard's chunks as zarr-python orders them in the file: by Morton code, the first axis fastest."""

    def code(corner: tuple[int, ...]) -> Iterator[int]:
        for bit in range(max(counts).bit_length() - 1, -1, -1):
            yield from ((k >> bit) & 1 for k in reversed(corner))

    return tuple(sorted(product(*map(range, counts)), key=lambda corner: tuple(code(corner))))
