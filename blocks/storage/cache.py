"""Decoded chunks that the next task is likely to read again, within the memory that running tasks leave over.

A task's box of the moving image is a voxel or a few wider than the shards it covers, and whole chunks are decoded for
it: two tasks that are neighbours decode the chunks between them twice. One cache a process, shared by its threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy.typing as npt

Voxels = npt.NDArray[Any]
#: A chunk's file, what tells that file from another of the same name, and the chunk's place in it.
Key: TypeAlias = tuple[str, tuple[int, ...], tuple[int, ...]]


class ChunkCache:
    """Decoded chunks by a key that names file, version and place; the least recently used go first.

    Notes
    -----
    It holds nothing until :meth:`room` has said how much it may, and may be used from any number of threads. Chunks
    are handed out as they are, and not to be written to.
    """

    def __init__(self) -> None:
        self.decoded = 0
        self.found = 0
        self._lock = threading.Lock()
        self._chunks: OrderedDict[Key, Voxels] = OrderedDict()
        self._rooms: list[int] = []
        self._limit = 0
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the chunks that are held."""
        return self._bytes

    @contextmanager
    def room(self, limit: int) -> Iterator[None]:
        """Hold at most so many bytes while a task runs; the least that any running task leaves over is what counts.

        Parameters
        ----------
        limit
            What the task does not need of the memory it may use. With every task using its own share and the cache no
            more than the least of what is left over, all of them together stay within the shares.

        Notes
        -----
        What is held when no task runs any more stays, for the next one.
        """
        with self._lock:
            self._rooms.append(limit)
            self._shrink()
        try:
            yield
        finally:
            with self._lock:
                self._rooms.remove(limit)

    def get(self, key: Key) -> Voxels | None:
        """Return a chunk, None where it is not held."""
        with self._lock:
            found = self._chunks.get(key)
            if found is not None:
                self._chunks.move_to_end(key)
                self.found += 1
            return found

    def put(self, key: Key, voxels: Voxels) -> bool:
        """Hold a chunk that was just decoded, and say whether it is held: nobody may write to it any more."""
        with self._lock:
            self.decoded += 1
            if key in self._chunks or not self._rooms or voxels.nbytes > self._limit:
                return False
            self._chunks[key] = voxels
            self._bytes += voxels.nbytes
            self._shrink()
            return True

    def drop(self, file: str) -> None:
        """Hold no chunk of a file any more: it is written again, by the same name and perhaps in the same instant."""
        with self._lock:
            for key in [key for key in self._chunks if key[0] == file]:
                self._bytes -= self._chunks.pop(key).nbytes

    def forget(self) -> None:
        """Hold nothing more."""
        with self._lock:
            self._chunks.clear()
            self._bytes = 0

    def _shrink(self) -> None:
        if self._rooms:
            self._limit = max(0, min(self._rooms))
        while self._bytes > self._limit:
            self._bytes -= self._chunks.popitem(last=False)[1].nbytes


#: The process's cache.
CHUNKS = ChunkCache()
