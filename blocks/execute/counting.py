"""What is done of a run, told as it advances; and the errors that say where it stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from blocks.graphs.store import ShardError

Index = tuple[int, ...]

#: How often a shard is tried before it is named.
ATTEMPTS = 3


class Progress(Protocol):
    """Called as shards are written."""

    def __call__(self, done: int, total: int, written: int, /) -> None:
        """Take note of ``done`` of ``total`` shards, the last of which takes ``written`` bytes on disk."""


class Noted(Protocol):
    """Takes note of shards: :class:`blocks.journal.Written`, or nothing where no store is written."""

    def add(self, level: int, index: Index) -> None:
        """Count a shard as written."""


class Count:
    """How many shards are written.

    Parameters
    ----------
    total
        How many there are in all.
    done
        How many were there before.
    written
        Takes note of each.
    progress
        Told of each.
    """

    def __init__(self, total: int, *, done: int, written: Noted | None, progress: Progress | None) -> None:
        self.total, self.done = total, done
        self._written, self._progress = written, progress

    def add(self, level: int, index: Index, length: int) -> None:
        """Count one more shard and tell."""
        self.done += 1
        if self._written is not None:
            self._written.add(level, index)
        if self._progress is not None:
            self._progress(self.done, self.total, length)


def failure(shards: Iterable[Index], error: BaseException, *, tried: bool = False) -> ShardError:
    """Return an error that names the shard, or those that were in work where it cannot be told which.

    Parameters
    ----------
    shards
        Indices.
    error
        What happened.
    tried
        Whether it was tried as often as a shard is.
    """
    if not isinstance(error, ShardError):
        names = sorted("/".join(map(str, index)) for index in shards)
        said = f"{type(error).__name__}: {error}"
        error = ShardError(f"shard {' or '.join(names)} could not be computed: {said}")
    error.tried = error.tried or tried
    return error
