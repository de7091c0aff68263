"""Commands killed at any moment and run again: the same store in the end, nothing left over, nothing done twice."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import blocks

SHAPE = (260, 270, 290)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an image in several shards, the same as a file, and a transform."""
    folder = tmp_path_factory.mktemp("inputs")
    voxels = (np.random.default_rng(7).random(SHAPE) * 1000).astype("uint16")
    image = blocks.image_of(voxels, blocks.Grid.of(SHAPE, spacing=(0.5, 0.5, 2.0)))
    blocks.write_image(folder / "moving.ome.zarr", image)
    (folder / "turn.tfm").write_text(
        "#Insight Transform File V1.0\n#Transform 0\nTransform: Euler3DTransform_double_3_3\n"
        "Parameters: 0.02 -0.01 0.03 1.5 -2.25 3.0\nFixedParameters: 70 80 300 0\n"
    )
    assert fidopt(["convert", str(folder / "moving.ome.zarr"), str(folder / "moving.nii")]).returncode == 0
    return folder


def command(what: str, inputs: Path, out: Path) -> list[str]:
    moving = str(inputs / "moving.ome.zarr")
    return {
        "convert": ["convert", str(inputs / "moving.nii"), str(out)],
        "warp": ["warp", moving, str(inputs / "turn.tfm"), str(out), "--like", moving],
        "field": ["field", str(inputs / "turn.tfm"), str(out), "--like", moving],
        "pyramid": ["pyramid", str(out)],
    }[what]


def fidopt(words: Sequence[str], *, killed_after_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command, or kill all of it in the middle."""
    called = [sys.executable, "-c", "from fidopt.cli import main; main()", *words]
    process = subprocess.Popen(
        called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=killed_after_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return subprocess.CompletedProcess(called, process.returncode, out, err)


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def noted(out: Path) -> int:
    """Return how many shards the journals of a store under construction hold."""
    logs = (out / ".journal").glob("*.log")
    return sum(len(re.findall(r" [0-9a-f]{8}\n", log.read_text())) for log in logs)


def killed_until_done(what: str, inputs: Path, out: Path, *, kills: int, seed: int) -> dict[str, bytes]:
    """Run a command, killed ``kills`` times at random moments and begun anew when it is done; return the store."""
    chance = random.Random(seed)
    if what == "pyramid":
        blocks.write_image(out, blocks.open_image(inputs / "moving.ome.zarr"), levels=False)
    start = time.monotonic()
    assert fidopt(command(what, inputs, out)).returncode == 0
    whole, took = files(out), time.monotonic() - start
    while kills:
        if what != "pyramid":
            subprocess.run(["rm", "-r", str(out)], check=True)
        while kills:
            before = noted(out)
            done = fidopt(command(what, inputs, out), killed_after_s=chance.uniform(0.35, 1.0) * took)
            kills -= done.returncode == -signal.SIGKILL
            if done.returncode != -signal.SIGKILL:
                break
            assert noted(out) >= before or not (out / ".journal").exists()
        before = noted(out)
        done = fidopt(command(what, inputs, out))
        assert done.returncode == 0, done.stderr
        if before:
            assert f"taken up: {before} of " in done.stderr, (before, done.stderr)
        assert files(out) == whole
    return whole


def test_a_killed_command_is_taken_up(inputs: Path, tmp_path: Path):
    killed_until_done("warp", inputs, tmp_path / "out.ome.zarr", kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["convert", "warp", "field", "pyramid"])
def test_fifty_kills_leave_the_store_of_an_undisturbed_run(what: str, inputs: Path, tmp_path: Path):
    killed_until_done(what, inputs, tmp_path / "out.ome.zarr", kills=50, seed=2)
