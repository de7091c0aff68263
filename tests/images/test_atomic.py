"""Files appear whole, and never inside a store."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import blocks
from fidopt.cli import main
from fidopt.errors import UsageError
from fidopt.images.atomic import refuse_inside_store, written_whole
from tests.killing import files

SHIFT = """#Insight Transform File V1.0
#Transform 0
Transform: TranslationTransform_double_3_3
Parameters: 1 2 3
FixedParameters:
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a store, a link into it, an unfinished store and a transform."""
    monkeypatch.chdir(tmp_path)
    image = blocks.image_of(np.arange(60, dtype="u1").reshape(3, 4, 5), blocks.Grid.of((3, 4, 5)))
    blocks.write_image("x.ome.zarr", image)
    Path("link").symlink_to("x.ome.zarr/0")
    Path("y.ome.zarr/.journal").mkdir(parents=True)
    Path("y.ome.zarr/.journal/lock").touch()
    Path("shift.tfm").write_text(SHIFT)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["field", "shift.tfm", "x.ome.zarr/f.nii.gz", "--like", "x.ome.zarr"],
        ["field", "shift.tfm", "x.ome.zarr/0/f.mha", "--like", "x.ome.zarr"],
        ["field", "shift.tfm", "x.ome.zarr/f.ome.zarr", "--like", "x.ome.zarr"],
        ["convert", "x.ome.zarr", "x.ome.zarr/b.nii.gz"],
        ["convert", "x.ome.zarr", "link/b.tif"],
        ["convert", "x.ome.zarr", "x.ome.zarr/new/b.nrrd"],
        ["convert", "x.ome.zarr", "y.ome.zarr/b.nii"],
        ["convert", "x.ome.zarr", "x.ome.zarr/b.ome.zarr"],
        ["warp", "x.ome.zarr", "shift.tfm", "x.ome.zarr/b.ome.zarr", "--like", "x.ome.zarr"],
    ],
)
def test_nothing_is_written_inside_a_store(folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]):
    before = files(folder)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "lies inside the OME-Zarr store" in said
    assert said.endswith("write it elsewhere\n")
    assert files(folder) == before


def test_a_file_beside_a_store_is_written(folder: Path):
    refuse_inside_store("x.ome.zarr")
    refuse_inside_store("s3://bucket/x.ome.zarr/f.nii.gz")
    assert main(["convert", "x.ome.zarr", "b.nii.gz"]) == 0
    with pytest.raises(UsageError, match="lies inside"), written_whole("x.ome.zarr/f.txt"):
        pass


def test_what_a_dead_process_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path):
    import socket

    host = socket.gethostname()
    dead, living = (tmp_path / f".{host}-{pid}.a.txt" for pid in (2**22 + 1, os.getppid()))
    dead.touch()
    living.touch()
    with written_whole(tmp_path / "a.txt") as part:
        part.write_text("a")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([living.name, "a.txt"])
