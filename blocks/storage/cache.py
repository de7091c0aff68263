"""Decoded chunks that the next task is likely to read again, within the memory that running tasks leave over.

A task's box of the moving image is a voxel or a few wider than the shards it covers, and whole chunks are decoded for
it: two tasks that are neighbours decode the chunks between them twice. One cache a process, shared by its threads.
A chunk that every task that is expected to read it has read goes at once; of the others, the least recently used.

Chunks lie in slabs of some megabytes. A page that is touched for the first time costs as much as decoding what goes
into it; in a slab pages are large, and a chunk that goes leaves its place, already touched, to the next one.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from blocks.storage.cuts import OFTEN

Voxels = npt.NDArray[Any]
#: A chunk's file, what tells that file from another of the same name, and the chunk's place in it.
Key: TypeAlias = tuple[str, tuple[int | str, ...], tuple[int, ...]]

#: Most bytes of a slab, and the most of the cache that one may be.
_SLAB, _SHARE = 8 << 20, 4


@dataclass(eq=False)
class Place:
    """Where a chunk lies in a slab.

    Parameters
    ----------
    voxels
        The chunk; nobody writes to it while it is held or read.
    slab
        Number of the slab.
    readers
        How many threads read it.
    held
        Whether the cache holds the chunk, and not the place alone.
    again
        How often the chunk is expected to be read from here.
    """

    voxels: Voxels
    slab: int
    readers: int = 0
    held: bool = False
    again: int = OFTEN


class ChunkCache:
    """Decoded chunks by file, version and place.

    Notes
    -----
    It holds nothing until :meth:`room` has said how much it may, and may be used from any number of threads.
    """

    def __init__(self) -> None:
        self.decoded = 0
        self._lock = threading.Condition(threading.Lock())
        self._making: Counter[Key] = Counter()
        self._chunks: OrderedDict[Key, Place] = OrderedDict()
        self._free: list[Place] = []
        self._slabs: dict[int, int] = {}
        self._rooms: list[int] = []
        self._made = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the slabs."""
        return sum(self._slabs.values())

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
            while self.nbytes > self._limit:
                self._give_up(next((place.slab for place in self._chunks.values()), min(self._slabs)))
        try:
            yield
        finally:
            with self._lock:
                self._rooms.remove(limit)

    @contextmanager
    def reading(self, key: Key) -> Iterator[Voxels | None]:
        """Give a chunk, None where it is not held; its place is left alone meanwhile."""
        with self._lock:
            place = self._chunks.get(key)
            if place is not None:
                self._chunks.move_to_end(key)
                place.readers += 1
        try:
            yield None if place is None else place.voxels
        finally:
            if place is not None:
                with self._lock:
                    place.readers -= 1
                    place.again -= 1
                    if place.again <= 0 and self._chunks.get(key) is place:
                        del self._chunks[key]
                        place.held = False
                    self._set_free(place)

    @contextmanager
    def making(
        self, key: Key, shape: tuple[int, ...], dtype: np.dtype[Any], *, again: int = OFTEN
    ) -> Iterator[Voxels | None]:
        """Give a place to decode a chunk to, None where there is no room; without an error, the chunk is then held.

        Parameters
        ----------
        key
            The chunk's.
        shape, dtype
            Of its voxels.
        again
            How often it is expected to be read from here; where that is never, it is not held.
        """
        place, made = None, False
        with self._lock:
            self._making[key] += 1
            self.decoded += 1
        try:
            with self._lock:
                place = self._take(shape, dtype)
            yield None if place is None else place.voxels
            made = True
        finally:
            with self._lock:
                self._making.subtract((key,))
                if not self._making[key]:
                    del self._making[key]
                self._lock.notify_all()
                if place is not None:
                    if made and again > 0 and key not in self._chunks and place.slab in self._slabs:
                        place.held, place.again = True, again
                        self._chunks[key] = place
                    self._set_free(place)

    def is_made(self, key: Key) -> bool:
        """Whether some thread decodes a chunk at this moment."""
        return key in self._making

    def wait(self, key: Key) -> None:
        """Return when no thread decodes a chunk any more."""
        with self._lock:
            self._lock.wait_for(lambda: key not in self._making)

    def drop(self, file: str) -> None:
        """Hold no chunk of a file any more: it is written again, by the same name and perhaps in the same instant."""
        with self._lock:
            for key in [key for key in self._chunks if key[0] == file]:
                place = self._chunks.pop(key)
                place.held = False
                self._set_free(place)

    def forget(self) -> None:
        """Hold nothing more."""
        with self._lock:
            for slab in list(self._slabs):
                self._give_up(slab)

    def _take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Place | None:
        """Return a place to decode a chunk to, None where there is no room."""
        while True:
            for k, place in enumerate(self._free):
                if place.voxels.shape == shape and place.voxels.dtype == dtype:
                    return self._free.pop(k)
            if self._add_slab(shape, dtype):
                continue
            key = next((key for key, place in self._chunks.items() if not place.readers), None)
            if key is None:
                return None
            oldest = self._chunks[key]
            if oldest.voxels.shape == shape and oldest.voxels.dtype == dtype:
                del self._chunks[key]
                oldest.held = False
                return oldest
            self._give_up(oldest.slab)

    @property
    def _limit(self) -> int:
        return max(0, min(self._rooms, default=0))

    def _add_slab(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        """Make places for more chunks where they fit."""
        size, limit = math.prod(shape) * dtype.itemsize, self._limit
        count = max(1, min(_SLAB, limit // _SHARE) // size)
        if self.nbytes + count * size > limit:
            return False
        # Not filled in: what is never decoded to takes no memory.
        slab = np.empty((count, *shape), dtype=dtype)
        self._made += 1
        self._slabs[self._made] = count * size
        self._free += [Place(voxels, self._made) for voxels in slab]
        return True

    def _set_free(self, place: Place) -> None:
        """Leave a place that nobody uses to the next chunk."""
        if not place.held and not place.readers and place.slab in self._slabs:
            self._free.append(place)

    def _give_up(self, slab: int) -> None:
        """Let go of a slab and what lies in it; threads that read it keep its memory until they are done."""
        del self._slabs[slab]
        self._free = [place for place in self._free if place.slab != slab]
        for key in [key for key, place in self._chunks.items() if place.slab == slab]:
            self._chunks.pop(key).held = False


#: The process's cache.
CHUNKS = ChunkCache()
