"""Decode boxes out of shards in an object store: a shard's index and the chunks that are wanted, by byte ranges.

Of the shards of a box the indices are fetched first, all at the same time; then of each the chunks, those that lie
behind one another in one range, several ranges at a time. No more than :data:`HELD` bytes of what is stored are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from blocks.storage.answers import fetch_tails
from blocks.storage.cache import ChunkCache
from blocks.storage.cuts import Cut
from blocks.storage.objects import fetch, fetch_ranges
from blocks.storage.shards import ABSENT, ShardReader, Voxels, _Part

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
    """A cut, and where in the object its chunk is stored."""

    cut: Cut
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

    def _shards(self, found: Iterable[tuple[tuple[int, ...], list[Cut]]]) -> list[_Part]:
        parts = super()._shards(found)
        tails = fetch_tails([part.file for part in parts], self._index_bytes)
        remote: list[_Part] = []
        for part, tail in zip(parts, tails, strict=True):
            version = () if tail is None else tail.version
            entries = None if tail is None else self._entries(tail.content, part.file)
            remote.append(_RemotePart(part.file, part.cuts, version, entries))
        return remote

    def _version_of(self, shard: _Part) -> tuple[int | str, ...] | None:
        return shard.version or None if isinstance(shard, _RemotePart) else None

    def _pieces(self, shard: _Part, cache: ChunkCache | None) -> Iterator[tuple[Cut, Voxels]]:
        entries = shard.entries if isinstance(shard, _RemotePart) else None
        stored = []
        for cut in shard.cuts:
            offset, length = (ABSENT, 0) if entries is None else map(int, entries[cut.corner])
            if offset == ABSENT:
                yield cut, np.full(cut.shape, self.fill, dtype=self.layout.dtype)
            else:
                stored.append(_Stored(cut, offset, offset + length))
        buffer = np.empty(self.layout.chunks, dtype=self.layout.dtype)
        for chunk, content in _fetched(shard.file, sorted(stored, key=lambda item: item.start)):
            key = (shard.file, self._version_of(shard) or (), chunk.cut.corner)
            fetched = partial(bytes, content)
            yield from self._chunk(chunk.cut, key, cache, buffer, stored=fetched, length=len(content))


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
