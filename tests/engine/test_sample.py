"""The sampling kernels at the places where a mistake hides: faces, ties, the ends of a type, what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from blocks.graphs.warp import warp
from blocks.grid import Grid
from blocks.image import image_of
from blocks.kernels.cubic import RADIUS, coefficients, mirrored
from blocks.kernels.route import route_to_index
from blocks.kernels.warp import warp_block
from blocks.plan import read_region
from blocks.region import Region
from blocks.transforms import Affine, fold
from tests import strategies
from tests.itk import itk_warp


def read_at(values: np.ndarray, positions: list[float], interpolation: str, background: float = 0) -> np.ndarray:
    """Read a row of voxels (in the middle of three equal rows) at positions along it."""
    image = np.repeat(values[None], 3, axis=0)
    result = []
    for position in positions:
        shift = Affine.translation((position, 1.0))
        warped = warp(
            image_of(image, Grid.of(image.shape)),
            shift,
            Grid.of((1, 1)),
            interpolation=interpolation,
            background=background,
        )
        result.append(warped.compute().values[0, 0])
    return np.array(result)


def test_linear_between_voxels_at_the_faces_and_beyond_by_hand():
    row = np.array([10, 20, 40, 80], dtype=np.uint8)
    at = [-0.5000001, -0.5, -0.2, 0.0, 0.25, 1.5, 2.9875, 3.0, 3.4999, 3.5]
    np.testing.assert_array_equal(read_at(row, at, "linear", 7), [7, 10, 10, 10, 12, 30, 80, 80, 80, 7])


def test_nearest_takes_the_upper_of_two_and_the_lower_face_alone_by_hand():
    row = np.array([10, 20, 40, 80], dtype=np.uint8)
    at = [-0.5000001, -0.5, 0.4999, 0.5, 1.5, 2.5, 3.4999, 3.5]
    np.testing.assert_array_equal(read_at(row, at, "nearest", 7), [7, 10, 10, 20, 40, 80, 80, 7])


def test_half_rounds_to_even_and_a_type_is_kept_to_its_ends():
    np.testing.assert_array_equal(read_at(np.array([0, 1, 2, 3], dtype=np.int8), [0.5, 1.5, 2.5], "linear"), [0, 2, 2])
    for dtype in strategies.INTEGERS:
        info = np.iinfo(dtype)
        row = np.array([info.min, info.min, info.max, info.max, info.min, info.min], dtype=dtype)
        for interpolation in ("linear", "cubic"):
            values = read_at(row, [0.0, 0.5, 2.5, 2.0, 3.0], interpolation)
            assert values.dtype == dtype
            assert values[0] <= info.min + (0 if interpolation == "linear" else info.max // 10)
            assert values[2] == info.max
        assert read_at(row, [2.4], "nearest")[0] == info.max


def test_a_boolean_stays_one_and_a_float_keeps_its_width():
    row = np.array([False, True, True, False])
    np.testing.assert_array_equal(read_at(row, [0.4, 0.6, 1.5, 2.6], "linear"), [False, True, True, False])
    overshoot = read_at(row, [1.5], "cubic")
    assert overshoot.dtype == bool
    assert overshoot.view(np.uint8)[0] == 1
    half = read_at(np.array([0.1, 0.3, 0.7, 0.2], dtype=np.float16), [0.5], "linear")
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, [0.2], rtol=1e-3)


def test_a_neighbour_of_no_weight_may_be_no_number():
    row = np.array([1.0, np.nan, np.inf, 4.0, 5.0], dtype=np.float32)
    np.testing.assert_array_equal(read_at(row, [0.0, 3.0, 3.5, 4.0], "linear"), [1.0, 4.0, 4.5, 5.0])
    assert np.isnan(read_at(row, [0.001], "linear")[0])


def test_a_position_that_is_no_number_is_background():
    grid = Grid.of((3, 4))
    vectors = np.zeros((2, 3, 4))
    vectors[0, 1, 1], vectors[1, 2, 2], vectors[0, 0, 0] = np.nan, np.inf, -1e300
    from blocks.transforms import DisplacementField

    image = image_of(np.full(grid.shape, 9, dtype=np.int16), grid)
    for interpolation in ("linear", "nearest", "cubic"):
        field = DisplacementField(grid, vectors)
        warped = warp(image, field, grid, interpolation=interpolation, background=-1).compute().values
        expected = np.full(grid.shape, 9)
        expected[1, 1] = expected[2, 2] = expected[0, 0] = -1
        np.testing.assert_array_equal(warped, expected)


@pytest.mark.parametrize("shape", [(1, 7, 9), (7, 1, 9), (7, 9, 1), (1, 9), (9, 1), (2, 2, 2)])
def test_axes_of_one_or_two_voxels_warp_as_itk(shape):
    rng = np.random.default_rng(6)
    moving = Grid.of(shape, spacing=(0.8, 1.5, 2.0)[: len(shape)])
    fixed = Grid.of(
        tuple(n + 4 for n in shape), spacing=(0.4, 0.7, 1.0)[: len(shape)], origin=(-0.9, -1.1, -2.3)[: len(shape)]
    )
    array = rng.normal(size=shape) * 100
    for interpolation in ("linear", "nearest", "cubic"):
        shift = Affine.translation((0.13, -0.21, 0.17)[: len(shape)])
        warped = warp(image_of(array, moving), shift, fixed, interpolation=interpolation).compute().values
        if interpolation == "cubic" and min(shape) < 3:
            # ITK mirrors once, and reads beyond an axis this short: the mirror is checked by hand below.
            continue
        expected = itk_warp(array, moving, shift, fixed, interpolation=interpolation)
        assert (expected != 0).mean() > 0.1
        np.testing.assert_allclose(warped, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ndim", [2, 3])
def test_cubic_equals_itk_up_to_the_cut_of_its_prefilter(ndim):
    rng = np.random.default_rng(7)
    moving = Grid.of((21, 30, 44)[-ndim:], spacing=(0.9, 1.0, 1.3)[:ndim])
    fixed = Grid.of((25, 28, 40)[-ndim:], spacing=(1.0, 1.1, 1.2)[:ndim], origin=(-1.0, -0.7, -0.4)[:ndim])
    turn = strategies.rotation(rng, ndim, most=0.1)
    transform = Affine.of(turn, rng.uniform(-1, 1, ndim))
    array = rng.normal(size=moving.shape)
    warped = warp(image_of(array, moving), transform, fixed, interpolation="cubic").compute().values
    expected = itk_warp(array, moving, transform, fixed, interpolation="cubic")
    assert (expected != 0).mean() > 0.5
    np.testing.assert_allclose(warped, expected, rtol=0, atol=1e-8)


def test_cubic_gives_back_voxels_and_a_constant():
    rng = np.random.default_rng(8)
    grid = Grid.of((5, 40))
    array = rng.normal(size=grid.shape)
    same = warp(image_of(array, grid), Affine.identity(2), grid, interpolation="cubic").compute().values
    np.testing.assert_allclose(same, array, atol=1e-8)
    flat = coefficients(np.full((6, 7), 3.0), Region.of((6, 7)), shape=(6, 7))
    np.testing.assert_allclose(flat, 3.0, rtol=1e-14)


def test_an_axis_is_mirrored_about_its_outer_centres_by_hand():
    np.testing.assert_array_equal(mirrored(np.arange(-5, 8), 4), [1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1][:13])
    np.testing.assert_array_equal(mirrored(np.array([-3, 0, 5]), 1), [0, 0, 0])
    np.testing.assert_array_equal(mirrored(np.array([-3, -2, -1, 0, 1, 2, 3]), 2), [1, 0, 1, 0, 1, 0, 1])
    assert RADIUS == 16


def test_a_block_that_lacks_what_is_needed_is_an_error_and_never_a_wrong_voxel():
    grid = Grid.of((8, 9, 10))
    array = np.ones((1, *grid.shape))
    shift = Affine.translation((0.5, 0.5, 0.5))
    route = route_to_index(fold(shift), grid, moving=grid, region=grid.region)
    for interpolation in ("linear", "nearest", "cubic"):
        read = read_region(shift, grid, grid.region, grid, interpolation=interpolation)
        for box in (Region((0, 0, 0), (8, 9, 9)), Region((2, 0, 0), read.stop)):
            with pytest.raises(RuntimeError, match="error of the plan"):
                warp_block(
                    array[(slice(None), *box.slices)],
                    box,
                    shape=grid.shape,
                    route=route,
                    interpolation=interpolation,
                    background=0,
                )
