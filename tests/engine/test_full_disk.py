"""A disk that is really full: one line that says what to do, and the next run goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import blocks
from tests.killing import fidopt, files, noted


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that holds 24 MB; skipped where nothing may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("nothing may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("name", ["moving.ome.zarr", "moving.nii"])
def test_a_full_disk_is_one_line_and_the_next_run_goes_on(tmp_path: Path, small_disk: Path, name: str):
    voxels = np.random.default_rng(1).integers(0, 255, (300, 300, 300), dtype=np.uint8)
    source = tmp_path / "moving.ome.zarr"
    blocks.write_image(source, blocks.image_of(voxels, blocks.Grid.of(voxels.shape)))
    if name.endswith(".nii"):
        assert fidopt(["convert", str(source), str(tmp_path / name)]).returncode == 0
    out, words = small_disk / "out.ome.zarr", ["convert", str(tmp_path / name), str(small_disk / "out.ome.zarr")]
    done = fidopt(words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the disk is full; make room and run this again, which takes up where it stopped" in done.stderr
    there = noted(out)
    assert there
    subprocess.run(["mount", "-o", "remount,size=80m", str(small_disk)], check=True)
    done = fidopt(words)
    assert (done.returncode, f"taken up: {there} of " in done.stderr) == (0, True)
    blocks.write_image(tmp_path / "whole.ome.zarr", blocks.open_image(source))
    assert files(out) == files(tmp_path / "whole.ome.zarr")
