import imageio.v3 as iio
import numpy as np
import pytest

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of
from fidopt.errors import InputError
from fidopt.images.preview import checkerboard, coarse_level, png_bytes, render, write_png


def test_three_planes_keep_their_proportions_and_stand_side_by_side():
    # 20 x 40 x 60 mm: planes of 60 x 40, 60 x 20 and 40 x 20.
    image = image_of(np.zeros((10, 20, 60), np.int16), Grid.of((10, 20, 60), spacing=(1, 2, 2)))
    picture = render(image, side=60)
    assert picture.shape == (40, 60 + 8 + 60 + 8 + 40, 3)
    assert picture.dtype == np.uint8


def test_the_percentiles_become_black_and_white():
    image = image_of(np.linspace(-1000, 1000, 10000).reshape(100, 100), Grid.of((100, 100)))
    picture = render(image, side=100)
    assert picture.min() == 0
    assert picture.max() == 255
    assert abs(int(picture[50, 0, 0]) - 127) <= 2
    dark = render(image, window=(1000, 2000), side=100)
    assert dark.max() == 0


def test_a_colour_is_drawn_as_it_is(random):
    array = random.integers(0, 255, (3, 40, 30)).astype(np.uint8)
    assert np.array_equal(render(image_of(array, Grid.of((40, 30))), side=40), np.moveaxis(array, 0, -1))


def test_the_world_s_z_goes_up_whichever_way_the_axis_runs():
    array = np.zeros((8, 8, 8))
    array[-1] = 1
    up = image_of(array, Grid.of(array.shape))
    down = image_of(array[::-1], Grid.of(array.shape, direction=np.diag([1, 1, -1]).ravel()))
    for image in (up, down):
        coronal = render(image, side=8)[:, 16:24]
        assert coronal[0].min() == 255
        assert coronal[1:].max() == 0


def test_labels_have_colours_of_their_own_and_zero_none():
    array = np.array([[0, 1], [2, 614454277]])
    colours = render(image_of(array, Grid.of((2, 2)), kind="labels"), side=2).reshape(4, 3)
    assert colours[0].tolist() == [0, 0, 0]
    assert len({tuple(colour) for colour in colours.tolist()}) == 4


def test_edges_of_labels_are_drawn_where_they_change_and_nowhere_else():
    grid = Grid.of((40, 40))
    labels = np.zeros(grid.shape, np.uint8)
    labels[10:30, 10:30] = 1
    image = image_of(np.full(grid.shape, 0.5), grid)
    plain = render(image, side=40, window=(0, 1))
    drawn = render(image, labels=image_of(labels, grid, kind="labels"), side=40, window=(0, 1))
    changed = (plain != drawn).any(axis=-1)
    # Four sides of twenty pixels that share the last corner.
    assert changed[9:30, 9:30].sum() == 4 * 20 - 1
    assert changed.sum() == 4 * 20 - 1


def test_the_fields_of_a_checkerboard_alternate_from_the_fixed_image():
    grid = Grid.of((40, 40))
    black, white = (np.full((3, *grid.shape), v, np.uint8) for v in (0, 255))
    picture = checkerboard(image_of(black, grid), image_of(white, grid), squares=4, side=40)
    assert picture[0, 0, 0] == picture[15, 15, 0] == 0
    assert picture[0, 15, 0] == picture[15, 0, 0] == 255


def test_pictures_of_two_grids_are_refused():
    one, other = (image_of(np.zeros(shape), Grid.of(shape)) for shape in ((4, 5), (5, 4)))
    with pytest.raises(InputError, match="on one grid"):
        checkerboard(one, other)


def test_an_image_without_contrast_or_with_nan_is_drawn():
    array = np.full((5, 5), 7.0)
    assert render(image_of(array, Grid.of((5, 5)))).max() == 0
    array[2, 2] = np.nan
    assert render(image_of(array, Grid.of((5, 5)))).max() == 0


def test_a_picture_is_written_as_png(tmp_path, random):
    picture = random.integers(0, 255, (13, 15, 3)).astype(np.uint8)
    write_png(tmp_path / "p.png", picture)
    assert np.array_equal(iio.imread(tmp_path / "p.png", plugin="pillow"), picture)
    assert (tmp_path / "p.png").read_bytes() == png_bytes(picture)


def test_the_level_drawn_is_the_finest_that_is_small_enough(tmp_path):
    write_image(tmp_path / "s.ome.zarr", image_of(np.zeros((1100, 700), np.uint8), Grid.of((1100, 700))))
    assert coarse_level(tmp_path / "s.ome.zarr", side=2000) == 0
    assert coarse_level(tmp_path / "s.ome.zarr", side=600) == 1
    assert coarse_level(tmp_path / "s.ome.zarr", side=10) == 2
