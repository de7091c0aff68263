"""Images averaged down: means of boxes, where their middles lie."""

import dask.array as da
import numpy as np
import pytest

from blocks import Grid, image_of, write_image
from blocks.image import grid_of
from fidopt.alignment.averaging import averaged, coarse
from fidopt.errors import InputError

GRID = Grid.of((5, 7), spacing=(0.5, 2.0), origin=(10.0, -3.0), direction=(0.0, -1.0, 1.0, 0.0))


def test_a_box_becomes_its_mean_in_its_middle_and_a_rest_is_left_out():
    image = image_of(np.arange(35, dtype=np.int16).reshape(5, 7), GRID)
    small = averaged(image, side=4)
    # Two by two voxels: (0 + 1 + 7 + 8) / 4 is the first; the fifth row and the seventh column make no whole box.
    assert small.values.tolist() == [[4.0, 6.0, 8.0], [18.0, 20.0, 22.0]]
    assert small.dtype == np.float32
    grid = grid_of(small)
    assert grid.spacing == (1.0, 4.0)
    np.testing.assert_allclose(grid.world([0, 0]), GRID.world([0.5, 0.5]), atol=1e-12)
    np.testing.assert_allclose(grid.world([1, 2]), GRID.world([2.5, 4.5]), atol=1e-12)


def test_an_image_that_is_small_enough_stays_as_it_is():
    image = image_of(np.arange(35.0).reshape(5, 7), GRID)
    small = averaged(image, side=7)
    np.testing.assert_array_equal(small.values, image.values)
    assert grid_of(small) == GRID


def test_a_lazy_image_in_odd_chunks_gives_the_same_bits():
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 31, 45))
    grid = Grid.of((31, 45))
    whole = averaged(image_of(values, grid), side=9)
    lazy = averaged(image_of(da.from_array(values, chunks=(2, 7, 11)), grid), side=9)
    np.testing.assert_array_equal(whole.values, lazy.values)
    np.testing.assert_allclose(whole.values[0, 0], values[:, :4, :5].mean(), rtol=1e-6)


def test_what_is_not_finite_counts_as_the_least_value():
    values = np.array([[1.0, np.nan], [3.0, np.inf]])
    assert averaged(image_of(values, Grid.of((2, 2))), side=2).values.tolist() == [[1.0, 1.0], [3.0, 1.0]]
    with pytest.raises(InputError, match="holds no finite value"):
        averaged(image_of(np.full((2, 2), np.nan), Grid.of((2, 2))), side=2)


def test_a_store_is_looked_at_where_it_is_coarse_enough_and_else_at_its_coarsest(tmp_path):
    image = image_of(np.zeros((1100, 700), dtype=np.uint8), Grid.of((1100, 700)))
    write_image(tmp_path / "s.ome.zarr", image)
    shapes = [coarse(tmp_path / "s.ome.zarr", side=side).shape for side in (1100, 600, 8)]
    assert shapes == [(1100, 700), (550, 350), (275, 175)]
