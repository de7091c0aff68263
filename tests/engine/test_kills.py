"""Commands ended at any moment and run again: the same store in the end, nothing left over, nothing done twice."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import blocks
from blocks.storage import StoreError
from tests.killing import fidopt, files, noted

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


def begin(what: str, inputs: Path, out: Path) -> None:
    """Bring the place of the result to what it is before the command: nothing, or a store without its levels."""
    shutil.rmtree(out, ignore_errors=True)
    if what == "pyramid":
        blocks.write_image(out, blocks.open_image(inputs / "moving.ome.zarr"), levels=False)


def run_to_the_end(what: str, inputs: Path, out: Path) -> None:
    """Run the command again, undisturbed: it takes up every shard that is noted."""
    before = noted(out)
    done = fidopt(command(what, inputs, out))
    assert done.returncode == 0, done.stderr
    if before:
        assert f"taken up: {before} of " in done.stderr, (before, done.stderr)
        assert what == "pyramid" or ", taken up" in done.stdout


def ended_again_and_again(what: str, inputs: Path, out: Path, *, kills: int, seed: int) -> None:
    """End a command ``kills`` times at random moments, run again each time, and begin anew when it is done."""
    chance = random.Random(seed)
    begin(what, inputs, out)
    start = time.monotonic()
    run_to_the_end(what, inputs, out)
    whole, took = files(out), time.monotonic() - start
    while kills:
        begin(what, inputs, out)
        alive = True
        while kills and alive:
            before = noted(out)
            by = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
            done = fidopt(command(what, inputs, out), after_s=chance.uniform(0.3, 1.0) * took, by=by)
            alive, after = done.returncode != 0, noted(out)
            kills -= alive
            assert before is None or after is None or after >= before
        run_to_the_end(what, inputs, out)
        assert files(out) == whole


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_command_that_was_ended_takes_up_where_it_stopped(inputs: Path, tmp_path: Path, by: signal.Signals):
    out = tmp_path / "out.ome.zarr"
    done = fidopt(command("warp", inputs, out), when=lambda: noted(out), by=by)
    with pytest.raises(StoreError, match="was not finished"):
        blocks.open_image(out)
    if by == signal.SIGINT:
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            130,
            "fidopt: interrupted; the same command takes up where it stopped",
        )
    run_to_the_end("warp", inputs, out)
    assert not (out / ".journal").exists()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", ["convert", "warp", "field", "pyramid"])
def test_fifty_kills_leave_the_store_of_an_undisturbed_run(what: str, inputs: Path, tmp_path: Path):
    ended_again_and_again(what, inputs, tmp_path / "out.ome.zarr", kills=50, seed=2)
