"""A large dataset's build that was interrupted: what is whole is kept, the rest is made, and nothing is left over."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from blocks.execute import DiskFullError
from fidopt.building.unfinished import clear, taken_up
from fidopt.errors import InputError, OutputExistsError


def left(place: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in place.iterdir())


def interrupt(place: Path, case: str, made_from: str) -> None:
    with suppress(KeyboardInterrupt), taken_up(place, case, made_from) as folder:
        (folder / "case").mkdir()
        raise KeyboardInterrupt


def test_what_an_interrupted_build_left_is_there_for_the_same_inputs(tmp_path: Path):
    interrupt(tmp_path, "one", "a")
    with taken_up(tmp_path, "one", "a") as folder:
        assert (folder / "case").is_dir()
    assert left(tmp_path) == []


def test_what_was_built_from_something_else_goes_and_other_cases_stay(tmp_path: Path):
    interrupt(tmp_path, "one", "a")
    interrupt(tmp_path, "one-more", "a")
    with taken_up(tmp_path, "one", "b") as folder:
        assert not (folder / "case").exists()
        assert left(tmp_path) == [".unfinished-one", ".unfinished-one-more"]
    assert left(tmp_path) == [".unfinished-one-more"]
    clear(tmp_path, "one-more")
    assert left(tmp_path) == []


def test_a_refused_case_leaves_nothing_and_a_full_disk_leaves_what_is_there(tmp_path: Path):
    with pytest.raises(InputError), taken_up(tmp_path, "one", "a"):
        raise InputError
    assert left(tmp_path) == []
    with pytest.raises(DiskFullError), taken_up(tmp_path, "one", "a"):
        raise DiskFullError
    assert left(tmp_path) == [".unfinished-one"]


def test_two_processes_never_build_one_case(tmp_path: Path):
    with taken_up(tmp_path, "one", "a") as folder:
        refused = pytest.raises(OutputExistsError, match=r"another process is building .*/one; wait for it")
        with refused, taken_up(tmp_path, "one", "a"):
            pass
        clear(tmp_path, "one")
        assert folder.is_dir()
