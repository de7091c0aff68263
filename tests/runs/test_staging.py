"""What a method is handed of a large dataset: the level it can hold, or the store itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blocks
from blocks.grid import Grid
from blocks.image import grid_of, levels_of
from fidopt.descriptors.method import Method
from fidopt.images.nifti import open_nifti
from fidopt.images.readers import read_image
from fidopt.runner import methods
from fidopt.runner.staging import level_for, stage


@pytest.fixture
def large(own_corpus, world):
    """A case of a large 2D dataset in micrometres, its images three levels deep."""
    dataset = own_corpus(large=True, dimension=2, unit="um", masks=["fixed_mask"])
    case = world.case("one")
    for stem, shape in (("fixed", (1101, 1300)), ("moving", (600, 2050)), ("fixed_mask", (1101, 1300))):
        grid = Grid.of(shape, spacing=(0.5, 0.5))
        array = (np.arange(np.prod(shape)).reshape(shape) % 200).astype(np.uint8)
        kind = "labels" if stem == "fixed_mask" else "image"
        image = blocks.image_of(array, grid, unit="um", kind=kind)
        blocks.write_image(case.folder / f"{stem}.ome.zarr", image, overwrite=True)
    return replace(case, dataset=dataset)


def method(world, **changes) -> Method:
    world.method("m", "true", masks=["fixed_mask"], **changes)
    return methods.find("m", world.roots).method


@pytest.mark.parametrize(
    ("limits", "fixed", "moving"),
    [
        ({"max_voxels": 1101 * 1300}, 0, 0),
        ({"max_voxels": 1101 * 1300 - 1}, 1, 0),
        ({"max_voxels": 1 << 24, "max_side": 2048}, 0, 1),
        ({"max_voxels": 551 * 650, "max_side": 1025}, 1, 1),
        ({"max_voxels": 10}, 2, 3),
    ],
)
def test_an_image_is_given_at_the_finest_level_a_method_can_hold(world, large, limits, fixed, moving):
    chosen = method(world, **limits)
    assert (level_for(large.fixed, chosen), level_for(large.moving, chosen)) == (fixed, moving)


def test_a_level_is_nifti_on_the_level_s_own_grid(world, large, tmp_path):
    (tmp_path / "inputs").mkdir()
    inputs = stage(large, method(world, max_voxels=551 * 650), tmp_path / "inputs")
    level = blocks.open_image(large.fixed, level=1)
    image = read_image(inputs.fixed)
    assert np.array_equal(image.values, level.values)
    assert grid_of(image).matches(grid_of(level))
    assert grid_of(image).origin == pytest.approx((0.25, 0.25))
    mask = read_image(inputs.masks["fixed_mask"])
    assert grid_of(mask).matches(grid_of(level))
    assert np.array_equal(mask.values, blocks.open_image(large.masks()["fixed_mask"], level=1).values)
    assert open_nifti(inputs.moving).shape[:2] == levels_of(large.moving)[1].grid.shape[::-1]


def test_a_method_that_reads_stores_gets_them_without_a_copy_and_without_their_place(world, large, tmp_path):
    (tmp_path / "inputs").mkdir()
    inputs = stage(large, method(world, reads="ome-zarr"), tmp_path / "inputs")
    assert np.array_equal(blocks.open_image(inputs.fixed).values, blocks.open_image(large.fixed).values)
    files = [path for path in inputs.fixed.rglob("*") if path.is_file()]
    assert not any(path.is_symlink() for path in files)
    assert all(path.stat().st_ino == (large.fixed / path.relative_to(inputs.fixed)).stat().st_ino for path in files)
