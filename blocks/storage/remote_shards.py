"""Decode boxes out of shards in an object store: a shard's index and the chunks that are wanted, by byte ranges.

Of the shards of a box the indices are fetched first, all at the same time; then of each the chunks, those that lie
behind one another in one range, several ranges at a time. No more than :data:`HELD` bytes of what is stored are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.region import Region
from blocks.storage.answers import fetch_tails
from blocks.storage.cache import ChunkCache
from blocks.storage.objects import fetch, fetch_ranges
from blocks.storage.shards import ABSENT, ShardReader, Voxels, _decode, _Part

#: Bytes of chunks that are fetched at a time, of one shard; a chunk that is larger is fetched alone.
HELD = 8 << 20
#: Most bytes of one range, so that several are under way.
_RANGE = 1 << 20


@dataclass(frozen=True)
class _RemotePart(_Part):
    """What is read of a shard; its version, and where its chunks lie, None where there is no such object."""

    version: tuple[str, ...] = ()
    entries: npt.NDArray[np.uint64] | None = None


@dataclass(frozen=True)
class _Stored:
    """A box, the chunk it lies in and where in the object that is stored."""

    box: Region
    start: int
    stop: int


@dataclass(frozen=True)
class RemoteShardReader(ShardReader):
    """Reads boxes of one array in an object store; ``path`` is its URL."""

    @classmethod
    def of(cls, path: str) -> ShardReader | None:
        """Return a reader of an array, None where its layout is not the one read here."""
        said = fetch(f"{path}/zarr.json")
        return None if said is None else cls.described(path, said)

    def _shards(self, box: Region, wanted: npt.NDArray[np.bool_] | None) -> list[_Part]:
        parts = [part for part in super()._shards(box, wanted) if part.boxes]
        tails = fetch_tails([part.file for part in parts], self._index_bytes)
        found: list[_Part] = []
        for part, tail in zip(parts, tails, strict=True):
            version = () if tail is None else tail.version
            entries = None if tail is None else self._entries(tail.content, part.file)
            found.append(_RemotePart(part.file, part.first, part.boxes, version, entries))
        return found

    def _version_of(self, shard: _Part) -> tuple[int | str, ...] | None:
        return shard.version or None if isinstance(shard, _RemotePart) else None

    def _pieces(self, shard: _Part, cache: ChunkCache | None) -> Iterator[tuple[Region, Voxels]]:
        entries = shard.entries if isinstance(shard, _RemotePart) else None
        stored = []
        for box in shard.boxes:
            offset, length = (ABSENT, 0) if entries is None else map(int, entries[self._place(shard, box)[0]])
            if offset == ABSENT:
                yield box, np.full(box.shape, self.fill, dtype=self.layout.dtype)
            else:
                stored.append(_Stored(box, offset, offset + length))
        buffer = np.empty(self.layout.chunks, dtype=self.layout.dtype)
        for chunk, content in _fetched(shard.file, sorted(stored, key=lambda item: item.start)):
            corner, first = self._place(shard, chunk.box)
            part, where = chunk.box.relative_to(first).slices, f"{shard.file}, chunk {corner}"
            place = None if cache is None else cache.take(self.layout.chunks, self.layout.dtype)
            if place is None or cache is None:
                _decode(content, len(content), buffer, where)
                yield chunk.box, buffer[part]
                continue
            try:
                _decode(content, len(content), place.voxels, where)
                yield chunk.box, place.voxels[part]
            except BaseException:
                cache.give(place)
                raise
            cache.put((shard.file, self._version_of(shard) or (), corner), place)


def _fetched(url: str, chunks: list[_Stored]) -> Iterator[tuple[_Stored, bytes]]:
    """Yield chunks, in the order in which they are stored, with their bytes; some megabytes are fetched at a time."""
    at = 0
    while at < len(chunks):
        runs: list[list[_Stored]] = []
        held = 0
        while at < len(chunks) and (not runs or held + chunks[at].stop - chunks[at].start <= HELD):
            chunk = chunks[at]
            last = runs[-1] if runs else []
            if last and last[-1].stop == chunk.start and chunk.stop - last[0].start <= _RANGE:
                last.append(chunk)
            else:
                runs.append([chunk])
            held, at = held + chunk.stop - chunk.start, at + 1
        contents = fetch_ranges(url, [(run[0].start, run[-1].stop) for run in runs])
        for run, content in zip(runs, contents, strict=True):
            for chunk in run:
                yield chunk, content[chunk.start - run[0].start : chunk.stop - run[0].start]
