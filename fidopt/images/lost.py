"""Shards that a store has lost: read, they would be voxels of the fill value, which nobody can tell from an image's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from blocks.image import Level, levels_of
from blocks.image.opening import read_root
from blocks.storage import Layout, is_url, local_path, shard_name
from blocks.storage.answers import stamps
from blocks.storage.objects import listing
from fidopt.errors import InputError

#: Shards that a web server is asked about at a time.
_ASKED = 4096


def lost_shards(store: str, levels: Sequence[Level]) -> list[str] | None:
    """Return the shards that a store lacks, each by its name in the store; None where fidopt did not write it.

    fidopt stores every shard, those that hold nothing but zeros too: one that is not there was lost. Other tools leave
    such a shard out, and lay a store out in another way. Of a store on the web its server is asked about each shard.
    """
    if not {"konfai", "fidopt"} & read_root(local_path(store)).keys():
        return None
    layouts = [_own_layout(level) for level in levels]
    if any(
        (level.chunks, level.shards) != (own.chunks, own.shards) for level, own in zip(levels, layouts, strict=True)
    ):
        return None
    pairs = zip(levels, layouts, strict=True)
    return [f"{level.path}/{name}" for level, own in pairs for name in _lost(f"{local_path(store)}/{level.path}", own)]


def refuse_lost(store: str) -> None:
    """Refuse to read a store whose finest level has lost a shard.

    Raises
    ------
    InputError
        With the first of them.
    """
    lost = lost_shards(store, levels_of(store)[:1])
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        msg = f"{store}: its shard file {lost[0]} is not there{more}, and its voxels would be read as zeros"
        raise InputError(f"{msg}; fetch or write the store again")


def _own_layout(level: Level) -> Layout:
    channels = ("c",) * (len(level.shape) - level.grid.ndim)
    return Layout.of(level.shape, level.dtype, (*channels, *"zyx"[-level.grid.ndim :]))


def _lost(array: str, layout: Layout) -> Iterator[str]:
    """Yield the names of the shards that an array lacks."""
    names = map(shard_name, layout.indices())
    if not is_url(array):
        yield from (name for name in names if not Path(array, name).is_file())
    elif array.startswith("s3://"):
        there = listing(array)
        yield from (name for name in names if name not in there)
    else:
        while some := list(islice(names, _ASKED)):
            answers = stamps([f"{array}/{name}" for name in some])
            yield from (name for name, answer in zip(some, answers, strict=True) if answer is None)
