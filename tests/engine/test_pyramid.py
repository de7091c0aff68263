"""The lazy levels are what a store holds, whatever the blocks, and making them computes nothing."""

from __future__ import annotations

from pathlib import Path

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.execute import compute, write_image
from blocks.graphs.pyramid import pyramid
from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, open_image, unit_of
from blocks.image.levels import level_grid, level_shape, planned_levels


def refuse(*_: object, **__: object) -> None:
    msg = "a graph was computed while it was made"
    raise AssertionError(msg)


def some_grid(shape: tuple[int, ...]) -> Grid:
    n = len(shape)
    turned = (0.8, -0.6, 0.6, 0.8) if n == 2 else (0.8, -0.6, 0, 0.6, 0.8, 0, 0, 0, 1)
    return Grid.of(shape, spacing=(0.3, 0.7, 1.1)[:n], origin=(-100.1, 33.3, 7.7)[:n], direction=turned)


def test_levels_go_down_to_one_chunk_and_round_up():
    assert planned_levels((64, 64, 64)) == [(0, 0, 0)]
    assert planned_levels((65, 1, 3)) == [(0, 0, 0), (1, 0, 1)]
    assert [level_shape((257, 1, 3), h) for h in planned_levels((257, 1, 3))] == [
        (257, 1, 3),
        (129, 1, 2),
        (65, 1, 1),
        (33, 1, 1),
    ]
    assert planned_levels((512, 512)) == [(0, 0)]
    assert len(planned_levels((513, 10))) == 2


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=3))
def test_a_level_is_the_one_before_it_halved(shape: list[int]):
    grid = some_grid(tuple(shape))
    halved = grid
    for halvings in planned_levels(shape)[1:]:
        halved = halved.halved()
        assert level_grid(grid, halvings).matches(halved, tolerance=1e-9)
    assert max(halved.shape) <= (64 if len(shape) == 3 else 512)


@pytest.mark.parametrize("kind", ["image", "labels"])
@pytest.mark.parametrize(("shape", "channels"), [((130, 65, 5), None), ((70, 3, 66), 2), ((1030, 515), 3)])
def test_the_lazy_levels_are_the_stored_ones(tmp_path: Path, kind: str, shape: tuple[int, ...], channels: int | None):
    full = shape if channels is None else (channels, *shape)
    voxels = np.random.default_rng(3).integers(0, 5, full, dtype=np.uint8)
    image = image_of(voxels, some_grid(shape), unit="um", kind=kind)
    write_image(tmp_path / "i.ome.zarr", image)
    for number, level in enumerate(pyramid(image)):
        stored = open_image(tmp_path / "i.ome.zarr", number)
        assert grid_of(level) == grid_of(stored)
        assert level.dims == stored.dims
        assert all(level.coords[d].equals(stored.coords[d]) for d in level.coords)
        assert (unit_of(level), kind_of(level)) == ("um", kind) == (unit_of(stored), kind_of(stored))
        np.testing.assert_array_equal(compute(level).values, compute(stored).values)


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_the_blocks_do_not_matter(data: st.DataObject):
    shape = (data.draw(st.integers(60, 140)), data.draw(st.integers(1, 9)), data.draw(st.integers(60, 70)))
    voxels = np.random.default_rng(4).random(shape).astype("f4")
    image = image_of(voxels, some_grid(shape))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    cut = image.chunk(dict(zip("zyx", chunks, strict=True)))
    for one, other in zip(pyramid(image), pyramid(cut), strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_making_the_levels_computes_nothing(tmp_path: Path):
    image = image_of(np.zeros((130, 70, 4), "u1"), some_grid((130, 70, 4)))
    write_image(tmp_path / "i.ome.zarr", image)
    with dask.config.set(scheduler=refuse):
        levels = pyramid(open_image(tmp_path / "i.ome.zarr"), kind="labels")
        assert [level.shape for level in levels] == [(130, 70, 4), (65, 35, 2), (33, 18, 1)]
        assert [level.dtype for level in levels] == [np.dtype("u1")] * 3


def test_a_crop_has_its_own_levels_where_the_crop_is():
    image = image_of(np.arange(200 * 4, dtype=np.int32).reshape(200, 2, 2), some_grid((200, 2, 2)))
    part = image.isel(z=slice(31, 101))
    levels = pyramid(part)
    assert grid_of(levels[1]).matches(grid_of(part).halved(), tolerance=1e-9)
    assert float(levels[1].coords["z"][0]) == pytest.approx(float(part.coords["z"][0]) + 0.55)


def test_labels_are_counted_where_the_image_says_so():
    voxels = np.zeros((70, 2, 2), np.uint8)
    voxels[0, :, :] = [[9, 9], [9, 4]]
    image = image_of(voxels, some_grid((70, 2, 2)), kind="labels")
    assert compute(pyramid(image)[1]).values[0, 0, 0] == 0
    assert compute(pyramid(image, kind="image")[1]).values[0, 0, 0] == 4
