"""A method on a large dataset: its field stays on the level it was given, and is scored as it is."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

import blocks
from blocks.grid import Grid
from fidopt import resources, results
from fidopt.images.landmarks import write_landmarks
from fidopt.runner.session import run_dataset

FIXED, MOVING = np.array([[100.0, 200.0], [300.0, 150.0]]), np.array([[103.0, 204.0], [300.0, 145.0]])


@pytest.fixture
def large(own_corpus, world):
    """A large dataset of one pair in micrometres, with two landmarks."""
    dataset = own_corpus(large=True, dimension=2, unit="um", masks=[])
    packaged = resources.packaged_share()
    world.roots = replace(world.roots, share=(*world.roots.share, packaged))
    case = world.case("one")
    shutil.rmtree(case.truth)
    case.truth.mkdir()
    for side, points in (("fixed", FIXED), ("moving", MOVING)):
        array = (np.arange(1101 * 1300).reshape(1101, 1300) % 251).astype(np.uint8)
        image = blocks.image_of(array, Grid.of(array.shape, spacing=(0.5, 0.5)), unit="um")
        blocks.write_image(case.folder / f"{side}.ome.zarr", image, overwrite=True)
        write_landmarks(case.truth / f"{side}_landmarks.csv", points)
    return dataset


def test_a_field_on_the_level_a_method_can_hold_is_scored_at_the_landmarks(world, large):
    script = resources.packaged_share() / "methods" / "identity" / "zero_field.py"
    sizes = "import nibabel, sys; print(*nibabel.load(sys.argv[1]).shape[:2])"
    run = f'{sys.executable} -c "{sizes}" "$1" > {world.share}/seen; {sys.executable} {script} "$1" "$3/DVF.nii.gz"'
    world.method("m", run, max_voxels=551 * 650)
    done = run_dataset("m", large.name, ["one"], roots=world.roots, say=world.say, machine="here")
    assert done.failed == [], world.told
    row = results.read_rows(done.line.rows).rows["one"]
    assert (world.share / "seen").read_text().split() == ["650", "551"]
    assert row.metrics["tre"] == pytest.approx(5.0)
    assert row.metrics["folds"] == 0
