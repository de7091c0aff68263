"""What an image shows, from its intensities: no table, no hole, no field of view."""

import numpy as np
import pytest
from scipy import ndimage

from blocks import Grid, image_of
from fidopt.alignment.bodies import Body, above_background, body_of
from fidopt.errors import InputError


def ball(shape, middle, radius):
    axes = np.indices(shape)
    return sum((a - m) ** 2 for a, m in zip(axes, middle, strict=True)) <= radius**2


def chest(shape=(40, 60, 60)):
    """A trunk along z with two lungs that leave the image at the top, on a table."""
    trunk = np.broadcast_to(ball(shape[1:], (28, 30), 20), shape).copy()
    lungs = np.broadcast_to(ball(shape[1:], (28, 20), 7) | ball(shape[1:], (28, 40), 7), shape).copy()
    lungs[:12] = False
    values = np.where(trunk, 40.0, -1000.0)
    values[lungs] = -850.0
    values[:, 53:55, 3:57] = 200.0
    return values, trunk


def dice(a, b):
    return 2 * (a & b).sum() / (a.sum() + b.sum())


def test_a_chest_is_whole_and_its_table_is_not_part_of_it():
    values, trunk = chest()
    body = body_of(image_of(values, Grid.of(values.shape)), modality="ct")
    assert body.mask[:, 53:55].sum() == 0
    assert dice(body.mask, trunk) > 0.99
    assert body.mask[39, 28, 20]


def test_a_table_that_touches_by_a_thin_cushion_is_opened_away():
    values, trunk = chest()
    values[:, 48:53, 29:31] = -300.0
    body = body_of(image_of(values, Grid.of(values.shape)), modality="ct")
    assert body.mask[:, 53:55].sum() == 0
    assert dice(body.mask, trunk) > 0.98


def test_a_lung_that_leaves_the_image_on_one_side_is_filled_in_the_planes_that_close_it():
    values, trunk = chest()
    body = body_of(image_of(values[:, :, 20:], Grid.of((40, 60, 40))), modality="ct")
    assert dice(body.mask, trunk[:, :, 20:]) > 0.97


def test_a_body_that_fills_the_field_of_view_keeps_its_edges():
    values = np.full((12, 20, 16), 40.0)
    values[:3] = -1000.0
    body = body_of(image_of(values, Grid.of(values.shape)), modality="ct")
    np.testing.assert_array_equal(body.mask, values > 0)


def test_half_of_otsu_s_threshold_keeps_dim_tissue_and_a_bright_slide_is_turned_over():
    values = np.zeros((40, 40))
    values[10:30, 10:30] = 45.0
    values[12:20, 12:20] = 100.0
    # Otsu parts the bright square from the rest at some 45 to 100; half of it is below the dim one.
    np.testing.assert_array_equal(above_background(values, modality="mr"), values > 0)
    np.testing.assert_array_equal(above_background(240.0 - values, modality="histology"), values > 0)
    np.testing.assert_array_equal(above_background(values - 1024.0, modality="cbct"), values > 0)


def test_the_grid_is_of_at_most_256_voxels_an_axis_whatever_the_spacing():
    values = np.full((4, 600, 300), -1000.0)
    values[:, 100:500, 60:240] = 0.0
    grid = Grid.of(values.shape, spacing=(0.25, 0.25, 5.0), origin=(7.0, 8.0, 9.0))
    body = body_of(image_of(values, grid), modality="ct")
    assert body.grid.shape == (4, 200, 150)
    assert body.grid.spacing == (0.5, 0.75, 5.0)
    assert body.volume == pytest.approx(400 * 180 * 4 * 0.25 * 0.25 * 5, rel=0.02)
    np.testing.assert_allclose(body.centre(), grid.world([1.5, 299.5, 149.5]), atol=0.5)


def test_a_body_is_asked_about_at_points_and_on_finer_grids():
    random = np.random.default_rng(2)
    mask = ndimage.gaussian_filter(random.normal(size=(9, 11, 13)), 2) > 0
    coarse = Grid.of(mask.shape, spacing=(2.0, 3.0, 4.0), origin=(1.0, 2.0, 3.0), direction=(0, 0, 1, 1, 0, 0, 0, 1, 0))
    body = Body(mask, coarse)
    fine = Grid.of(
        (18, 22, 26), spacing=(1.0, 1.5, 2.0), origin=coarse.world([-0.25] * 3).tolist(), direction=coarse.direction
    )
    there = body.on(fine)
    np.testing.assert_array_equal(there, np.kron(mask, np.ones((2, 2, 2), dtype=bool)))
    voxels = np.argwhere(np.ones(fine.shape, dtype=bool))
    np.testing.assert_array_equal(body.at(fine.world(voxels)), there.ravel())
    assert not body.at(coarse.world([[-1, 0, 0], [0, 11, 0]])).any()


def test_an_image_of_one_value_shows_no_body():
    image = image_of(np.full((6, 6, 6), -1000.0), Grid.of((6, 6, 6)))
    with pytest.raises(InputError, match=r"\(ct\) of shape \(6, 6, 6\) shows no body: .* -500 HU"):
        body_of(image, modality="ct")
    with pytest.raises(InputError, match=r"half of Otsu's threshold"):
        body_of(image_of(np.zeros((6, 6)), Grid.of((6, 6))), modality="mr")
