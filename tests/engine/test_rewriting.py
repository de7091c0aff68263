"""Levels that are written again: a store has its old ones until the new ones are whole, whatever happens."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blocks.execute import rewrite_levels, write_image
from blocks.graphs import store as tasks
from blocks.image import levels_of, open_image
from tests.interrupting import Interrupted, Writer, some_image
from tests.killing import files


def test_levels_are_taken_up(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    write_image(path, some_image())
    before = sum(writer.wrote.values())
    writer.most = before + 1
    with pytest.raises(Interrupted):
        rewrite_levels(path, made_from="a")
    assert_levels(path, whole)
    writer.most = 1 << 30
    outcome = rewrite_levels(path, made_from="a")
    assert (outcome.shards, outcome.there) == (3, 1)
    assert sum(writer.wrote.values()) == before + 3
    assert files(path) == whole


def assert_levels(path: Path, whole: dict[str, bytes]) -> None:
    """See that a store has every level and every byte of it, whatever else is under way."""
    now = files(path)
    assert {name: now.get(name) for name in whole} == whole


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), ValueError("no such kind")])
def test_levels_that_cannot_be_written_leave_the_old_ones(
    tmp_path: Path, writer: Writer, whole: dict[str, bytes], error: Exception
):
    path = tmp_path / "a.ome.zarr"
    write_image(path, some_image())
    start = sum(writer.wrote.values())
    writer.error = error  # type: ignore[assignment]
    for most in (0, 1):
        writer.most = start + most
        with pytest.raises(tasks.ShardError):
            rewrite_levels(path, kind="labels", made_from="a")
        assert_levels(path, whole)
        # What was written is kept for the next attempt; where there is nothing, nothing is left.
        assert (path / ".journal").exists() == bool(most)
    with pytest.raises(ValueError, match="'image' or 'labels', got 'bad'"):
        rewrite_levels(path, kind="bad")  # type: ignore[arg-type]
    writer.most = 1 << 30
    rewrite_levels(path, made_from="b")
    assert files(path) == whole


def test_a_store_opens_with_what_it_says_at_every_step_of_the_exchange(
    tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    path, labels = tmp_path / "a.ome.zarr", tmp_path / "b.ome.zarr"
    write_image(path, some_image())
    write_image(labels, some_image(), kind="labels")
    rename, replace, left = Path.rename, Path.replace, [0]

    def stopping(move: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def moved(self: Path, target: Path) -> Path:
            left[0] -= 1
            if not left[0]:
                raise Interrupted
            return move(self, target)

        return moved

    for steps in range(1, 100):
        left[0] = steps
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", stopping(rename))
            patched.setattr(Path, "replace", stopping(replace))
            try:
                rewrite_levels(path, kind="labels", made_from="a")
            except Interrupted:
                levels = [open_image(path, level=level).values for level in range(len(levels_of(path)))]
                assert np.array_equal(levels[0], some_image().values)
                assert len(levels) in (1, len(levels_of(labels)))
            else:
                break
    assert 5 < steps < 99
    rewrite_levels(path, kind="labels", made_from="a")
    assert files(path) == files(labels)


def test_levels_of_other_names_go_when_the_new_ones_are_there(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "a.ome.zarr"
    write_image(path, some_image())
    root = json.loads((path / "zarr.json").read_text())
    for number, level in enumerate(root["attributes"]["ome"]["multiscales"][0]["datasets"][1:], 1):
        level["path"] = f"half{number}"
        (path / str(number)).rename(path / f"half{number}")
    (path / "zarr.json").write_text(json.dumps(root))
    monkeypatch.setattr("blocks.image.construction._set_aside", interrupt)
    with pytest.raises(Interrupted):
        rewrite_levels(path, made_from="a")
    monkeypatch.undo()
    # Another order than the one that was ended, which had begun to replace them.
    rewrite_levels(path, made_from="b")
    assert sorted(files(path)) == sorted(whole)


def interrupt(*_: object) -> None:
    raise Interrupted
