"""Shards that a store has lost: read, they would be voxels of the fill value, which nobody can tell from an image's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from blocks.image import Level, levels_of
from blocks.image.opening import read_root
from blocks.storage import Layout, is_url, local_path
from fidopt.errors import InputError


def lost_shards(store: str, levels: Sequence[Level]) -> list[str] | None:
    """Return the shard files that a store lacks; None where fidopt did not write it, or it is not on this machine.

    fidopt stores every shard, those that hold nothing but zeros too: one that is not there was lost. Other tools leave
    such a shard out, and lay a store out in another way.
    """
    if is_url(store) or not {"konfai", "fidopt"} & read_root(local_path(store)).keys():
        return None
    layouts = [_own_layout(level) for level in levels]
    if any(
        (level.chunks, level.shards) != (own.chunks, own.shards) for level, own in zip(levels, layouts, strict=True)
    ):
        return None
    pairs = zip(levels, layouts, strict=True)
    return [file for level, own in pairs for file in _lost(Path(local_path(store)) / level.path / "c", own)]


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


def _lost(shards: Path, layout: Layout) -> Iterator[str]:
    for index in layout.indices():
        file = shards.joinpath(*map(str, index))
        if not file.is_file():
            yield file.relative_to(shards.parent.parent).as_posix()
