"""The memory that tasks read their boxes to and make their shards in, left by one to the next.

Either has tens of megabytes, of which every page is cleared by the system when it is first touched. Where memory is in
pieces that takes as long as decoding what is then read to it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Scratch:
    """Memory that is lent; what comes back is lent again, and there is never more of it than tasks ran at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Bytes] = []

    @property
    def nbytes(self) -> int:
        """Bytes that lie idle."""
        return sum(buffer.nbytes for buffer in self._idle)

    @contextmanager
    def lent(self, size: int, *, most: int) -> Iterator[Bytes]:
        """Lend memory of ``size`` bytes or more, ``most`` of them at most; what it holds is anything."""
        with self._lock:
            fits = [k for k, buffer in enumerate(self._idle) if size <= buffer.nbytes <= most]
            buffer = self._idle.pop(fits[0]) if fits else None
            if buffer is None and self._idle:
                # It would be held beside the one that takes its place.
                self._idle.pop(0)
        if buffer is None:
            buffer = np.empty(min(_roomy(size), most), dtype=np.uint8)
        try:
            yield buffer
        finally:
            with self._lock:
                self._idle.append(buffer)

    def forget(self) -> None:
        """Let go of what lies idle."""
        with self._lock:
            self._idle.clear()


def _roomy(size: int) -> int:
    """Return a size and up to a quarter more: the next box may be larger, and what none touches takes no memory."""
    step = 1 << max(0, size.bit_length() - 3)
    return -(-size // step) * step


#: The process's, for the boxes of images that are read.
SCRATCH = Scratch()
#: For the shards that are written: of one size, while boxes have many, which would push them out.
SHARDS = Scratch()
