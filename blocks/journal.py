"""What is written of a store under construction: a line a shard, in one file of each process that writes.

A file that is there is no proof: its writer may have been killed while it wrote, and a disk that lost its power keeps
names without their bytes. A shard counts as written when a journal has its length and checksum and the file agrees.
Nothing is flushed to the disk on the way: what a power cut takes is found by its checksum, and made again.
"""

from __future__ import annotations

import errno
import os
import socket
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import numpy as np

from blocks.storage import StoredArray, is_url, shard_file

Index = tuple[int, ...]

#: Counted up when the same image, transform and layout are to give other voxels.
KERNELS = 1
#: Bytes of a shard that are summed at a time.
_PIECE = 1 << 20
#: What ends the name of a journal's file.
_LOG = ".log"


class Written:
    """Which shards of a store's arrays are written: a bit each, so that a million take a megabyte.

    Parameters
    ----------
    arrays
        The arrays, in the order in which a level is counted.
    first
        The first level that is to be written; those below count neither as written nor as missing.
    """

    def __init__(self, arrays: Sequence[StoredArray], *, first: int = 0) -> None:
        self._levels = [np.zeros(array.layout.blocks_along, dtype=bool) for array in arrays]
        self.first = first

    def add(self, level: int, index: Index) -> None:
        """Count a shard as written."""
        self._levels[level][index] = True

    def fill(self, level: int) -> None:
        """Count all shards of a level as written."""
        self._levels[level][...] = True

    def __contains__(self, shard: tuple[int, Index]) -> bool:
        """Whether a shard, its level and its index, is written."""
        return bool(self._levels[shard[0]][shard[1]])

    def left(self, level: int) -> int:
        """Return how many shards of a level are not written."""
        return int(self._levels[level].size - np.count_nonzero(self._levels[level]))

    @property
    def count(self) -> int:
        """How many shards are written."""
        return sum(int(np.count_nonzero(level)) for level in self._levels[self.first :])

    @property
    def total(self) -> int:
        """How many there are in all."""
        return sum(level.size for level in self._levels[self.first :])

    def missing(self) -> Iterator[tuple[int, Index]]:
        """Yield the shards that are not written."""
        for level, written in enumerate(self._levels[self.first :], self.first):
            for index in np.argwhere(~written):
                yield level, tuple(int(i) for i in index)


@dataclass(frozen=True)
class Journal:
    """The journal of a store under construction; pickles as its folder.

    Parameters
    ----------
    folder
        The folder ``.journal`` of the store.
    """

    folder: str

    def record(self, array: StoredArray, index: Index) -> None:
        """Note that a shard is written, in this process's own file; a task does so after it wrote the shard."""
        length, checksum = _summed(shard_file(array, index))
        words = f"{Path(array.path).name} {'/'.join(map(str, index))} {length} {checksum:08x}"
        line = f"{words} {zlib.crc32(words.encode()):08x}\n".encode()
        # One write, at the end of a file that nobody else writes: a line is there, or torn at the end.
        log = os.open(Path(self.folder, _own_name(os.getpid())), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(log, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.folder)
        finally:
            os.close(log)

    def find(self, arrays: Sequence[StoredArray], written: Written) -> None:
        """Count what is written of the levels that are to be, and delete whatever else lies among their shards.

        Every shard is read, once, and compared with its checksum.
        """
        levels = {Path(array.path).name: level for level, array in enumerate(arrays) if level >= written.first}
        noted = {(levels[name], index): sums for name, index, sums in self._lines() if name in levels}

        def agrees(item: tuple[tuple[int, Index], tuple[int, int]]) -> bool:
            (level, index), sums = item
            file = shard_file(arrays[level], index)
            # The length first: a file that was cut need not be read.
            return file.is_file() and file.stat().st_size == sums[0] and _summed(file) == sums

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (level, index), whole in zip(noted, pool.map(agrees, noted.items()), strict=True):
                if whole:
                    written.add(level, index)
        clear(arrays, written)

    def _lines(self) -> Iterator[tuple[str, Index, tuple[int, int]]]:
        """Yield what the journal's files say; a line that was torn, or runs into one that was, says nothing."""
        for log in sorted(Path(self.folder).glob(f"*{_LOG}")):
            for line in log.read_text(encoding="ascii", errors="replace").split("\n"):
                words, _, own = line.rpartition(" ")
                if own != f"{zlib.crc32(words.encode()):08x}" or not words:
                    continue
                name, index, length, checksum = words.split(" ")
                yield name, tuple(int(i) for i in index.split("/")), (int(length), int(checksum, 16))


def clear(arrays: Sequence[StoredArray], written: Written) -> None:
    """Delete what lies among shards on this file system and is none of those that are written.

    A worker that was killed in the middle of a shard leaves a part of it, whether or not another one made it again.
    """
    for level, array in enumerate(arrays):
        root = Path(array.path, "c")
        if level < written.first or is_url(array.path):
            continue
        for folder, _, names in os.walk(root):
            for name in names:
                file = Path(folder, name)
                if not _is_shard(array, file.relative_to(root).parts, level, written):
                    file.unlink(missing_ok=True)


def _is_shard(array: StoredArray, index: Sequence[str], level: int, written: Written) -> bool:
    """Whether the name of a file among a level's shards is that of one that is written."""
    if len(index) != array.ndim or not all(part.isdigit() for part in index):
        return False
    place = tuple(int(part) for part in index)
    inside = all(i < n for i, n in zip(place, array.layout.blocks_along, strict=True))
    return inside and (level, place) in written


def _summed(file: Path) -> tuple[int, int]:
    """Return a file's length and its CRC-32."""
    length, checksum = 0, 0
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            length, checksum = length + len(piece), zlib.crc32(piece, checksum)
    return length, checksum


@lru_cache(maxsize=1)
def _own_name(process: int) -> str:
    """Return the name of this process's file: no two processes of any machine have the same."""
    return f"{socket.gethostname()}-{process}-{uuid4().hex[:8]}{_LOG}"
