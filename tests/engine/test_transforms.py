"""Transforms against SimpleITK, point by point, and the bound over a box."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks.grid import Grid
from blocks.region import Region
from blocks.transforms import Affine, AffineBox, BSpline, Composite, DisplacementField, fold
from tests import strategies
from tests.itk import itk_transform


def itk_points(transform, points):
    moved = itk_transform(transform)
    return np.array([moved.TransformPoint([float(v) for v in point]) for point in points])


def around(grid: Grid, rng: np.random.Generator, n: int = 40) -> np.ndarray:
    """World points in and around a grid, away from where a voxel's last bit decides."""
    size = np.array(grid.shape)
    return grid.world(rng.uniform(-2.3, size + 1.3, (n, grid.ndim)))


@strategies.QUICK
@given(data=st.data(), seed=strategies.SEEDS)
def test_any_transform_moves_points_as_itk(data, seed):
    fixed = data.draw(strategies.grids(least=2))
    transform = data.draw(strategies.transforms(fixed))
    points = around(fixed, np.random.default_rng(seed))
    np.testing.assert_allclose(transform.points(points), itk_points(transform, points), rtol=0, atol=1e-9)


def test_a_translation_a_rotation_about_a_centre_and_their_inverse_by_hand():
    moved = Affine.translation((1.0, -2.0, 3.0)).points([[10.0, 20.0, 30.0]])
    np.testing.assert_array_equal(moved, [[11.0, 18.0, 33.0]])
    quarter = Affine.rigid([[0.0, -1.0], [1.0, 0.0]], (5.0, 0.0), centre=(1.0, 1.0))
    np.testing.assert_allclose(quarter.points([[2.0, 1.0], [1.0, 1.0]]), [[6.0, 2.0], [6.0, 1.0]], atol=1e-15)
    np.testing.assert_allclose(quarter.inverse().points([[6.0, 2.0]]), [[2.0, 1.0]], atol=1e-15)
    assert quarter.is_rigid()
    assert not Affine((1.0, 0.0, 0.0, 1.1), (0.0, 0.0)).is_rigid()
    assert not Affine((1.0, 0.0, 0.0, -1.0), (0.0, 0.0)).is_rigid()


def test_stages_fold_into_as_few_as_do_the_same():
    fixed = Grid.of((5, 6, 7))
    turn = Affine.rigid(strategies.rotation(np.random.default_rng(0), 3), (1, 2, 3), centre=(2, 2, 2))
    field = DisplacementField(fixed, np.ones((3, 5, 6, 7)))
    nested = Composite((turn, Composite((Affine.translation((1, 0, 0)), field)), turn, turn.inverse()))
    stages = fold(nested)
    assert [type(stage) for stage in stages] == [Affine, DisplacementField, Affine]
    points = around(fixed, np.random.default_rng(1))
    np.testing.assert_allclose(Composite(stages).points(points), nested.points(points), atol=1e-12)
    np.testing.assert_allclose(stages[2].rows, np.eye(3), atol=1e-15)


def test_a_bspline_at_the_ends_of_its_valid_region_as_itk():
    rng = np.random.default_rng(2)
    spline = BSpline(Grid.of((8, 8, 8)), rng.normal(size=(3, 8, 8, 8)))
    below, above = np.nextafter(1.0, 0.0), np.nextafter(6.0, 7.0)
    points = np.array([[x, 3.3, 3.4] for x in (0.5, below, 1.0, 2.0, np.nextafter(6.0, 0.0), 6.0, above, 6.0 + 1e-13)])
    moved = spline.points(points)
    np.testing.assert_allclose(moved, itk_points(spline, points), rtol=0, atol=1e-9)
    np.testing.assert_array_equal((moved != points).any(axis=1), [False, False, True, True, True, True, True, False])


def test_a_field_keeps_its_edge_value_for_half_a_voxel_and_ends_there():
    vectors = np.zeros((2, 3, 4))
    vectors[0, :, 0], vectors[0, :, 3] = 5.0, 7.0
    field = DisplacementField(Grid.of((3, 4)), vectors)
    x = np.array([-0.51, -0.5, -0.2, 0.0, 3.0, 3.49, 3.5, 3.51])
    points = np.stack([x, np.ones_like(x)], axis=1)
    moved = field.points(points)
    np.testing.assert_array_equal(moved[:, 0] - x, [0.0, 5.0, 5.0, 5.0, 7.0, 7.0, 0.0, 0.0])
    np.testing.assert_allclose(moved, itk_points(field, points), rtol=0, atol=1e-12)


def test_a_lazy_field_is_read_where_points_need_it_and_nowhere_else():
    array = np.random.default_rng(3).normal(size=(2, 40, 50)).astype(np.float32)
    asked = []

    class Lazy:
        shape, dtype = array.shape, array.dtype

        def __getitem__(self, index):
            asked.append(index)
            return array[index]

    field, whole = DisplacementField(Grid.of((40, 50)), Lazy()), DisplacementField(Grid.of((40, 50)), array)
    points = np.array([[10.2, 20.4], [12.9, 22.0]])
    np.testing.assert_array_equal(field.points(points), whole.points(points))
    assert asked == [(slice(None), slice(20, 24), slice(10, 14))]
    local = field.local(field.window_region(AffineBox.of(field.grid, Region((5, 6), (8, 9)))))
    assert local.vectors.array.shape == (2, 5, 5)
    np.testing.assert_array_equal(local.points([[6.5, 7.0]]), whole.points([[6.5, 7.0]]))
    with pytest.raises(IndexError, match="window"):
        local.points([[30.0, 30.0]])


@strategies.QUICK
@given(data=st.data(), seed=strategies.SEEDS)
def test_the_bound_over_a_box_holds_every_point_of_it(data, seed):
    fixed = data.draw(strategies.grids())
    transform = data.draw(strategies.transforms(fixed))
    region = data.draw(strategies.regions(fixed.shape))
    box = transform.bound(AffineBox.of(fixed, region))
    lower, upper = box.hull()
    rng = np.random.default_rng(seed)
    index = rng.uniform(region.start, np.array(region.stop) - 1, (60, fixed.ndim))
    index[:20] = np.rint(index[:20])
    moved = transform.points(fixed.world(index))
    assert (moved >= lower - 1e-9).all()
    assert (moved <= upper + 1e-9).all()


def test_an_affine_bound_is_exact_and_a_deformation_is_bounded_with_its_sign():
    fixed = Grid.of((4, 4, 4))
    turned = Affine.rigid([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], (0.0, 0.0, 0.0))
    lower, upper = turned.bound(AffineBox.of(fixed, fixed.region)).hull()
    np.testing.assert_allclose(lower, [-3, 0, 0])
    np.testing.assert_allclose(upper, [0, 3, 3])
    vectors = np.full((3, 4, 4, 4), 2.0)
    vectors[1, 2, 2, 2] = 5.0
    lower, upper = DisplacementField(fixed, vectors).bound(AffineBox.of(fixed, fixed.region)).hull()
    np.testing.assert_allclose(lower, [2, 2, 2])
    np.testing.assert_allclose(upper, [5, 8, 5])


def test_points_far_apart_on_a_lazy_field_are_read_in_boxes_of_their_own():
    array = np.random.default_rng(0).normal(size=(2, 5000, 6000)).astype(np.float32)
    read = []

    class Lazy:
        shape, dtype = array.shape, array.dtype

        def __getitem__(self, index):
            read.append(array[index].size)
            return array[index]

    grid = Grid.of((5000, 6000), spacing=(0.7, 1.3))
    index = np.random.default_rng(1).uniform(-0.7, np.array(grid.shape) - 0.3, (200, 2))
    index[:4] = [[0, 0], [4999, 5999], [4999.4, -0.4], [63.5, 63.5]]
    points = grid.world(index)
    moved = DisplacementField(grid, Lazy()).points(points)
    np.testing.assert_array_equal(moved, DisplacementField(grid, array).points(points))
    assert max(read) <= 2 * 65**2
    assert len(read) <= len(points)


def test_what_is_no_number_in_a_field_does_not_spoil_its_bound():
    vectors = np.zeros((2, 3, 3), dtype=np.float32)
    vectors[0, 1, 1], vectors[1, 0, 0], vectors[0, 2, 2] = np.nan, np.inf, -4.0
    lower, upper = (
        DisplacementField(Grid.of((3, 3)), vectors).bound(AffineBox.of(Grid.of((3, 3)), Region.of((3, 3)))).hull()
    )
    assert lower[0] == -4.0
    assert upper[0] == 2.0
    assert upper[1] > 1e30


@pytest.mark.parametrize("turn", [np.eye(2), [[0.6, -0.8], [0.8, 0.6]]])
def test_a_bound_that_no_float_holds_is_boundless_and_not_empty(turn):
    folded = np.full((2, 5, 5), 1e308)
    folded[:, ::2] = -1e308
    far = Composite((BSpline(Grid.of((5, 5)), folded), Affine.of(1e200 * np.array(turn), (0.0, 0.0))))
    lower, upper = far.bound(AffineBox.of(Grid.of((5, 5)), Region.of((5, 5)))).index_hull(Grid.of((5, 5)))
    np.testing.assert_array_equal(lower, [-np.inf, -np.inf])
    np.testing.assert_array_equal(upper, [np.inf, np.inf])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Affine((1.0, 0.0, 0.0), (0.0, 0.0)), "4 and 2 or 9 and 3"),
        (lambda: Affine((1.0, 0.0, 0.0, float("nan")), (0.0, 0.0)), "finite"),
        (lambda: Affine.rigid([[2.0, 0.0], [0.0, 1.0]], (0.0, 0.0)), "rotation"),
        (lambda: Affine((1.0, 1.0, 1.0, 1.0), (0.0, 0.0)).inverse(), "singular"),
        (lambda: BSpline(Grid.of((3, 5)), np.zeros((2, 3, 5))), "four control points"),
        (lambda: BSpline(Grid.of((5, 5)), np.zeros((3, 5, 5))), r"\(2, 5, 5\)"),
        (lambda: BSpline(Grid.of((5, 5)), np.full((2, 5, 5), np.nan)), "finite coefficients"),
        (lambda: DisplacementField(Grid.of((5, 5)), np.zeros((5, 5, 2))), "components first"),
        (lambda: DisplacementField(Grid.of((5, 5)), np.zeros((2, 5, 5), dtype=complex)), "real numbers"),
        (lambda: Composite(()), "at least one"),
        (lambda: Composite((Affine.identity(2), Affine.identity(3))), "numbers of axes"),
        (lambda: Affine.identity(3).points([[1.0, 2.0]]), r"\(n, 3\)"),
        (lambda: AffineBox.of(Grid.of((2, 2)), Region((0, 0), (0, 2))), "empty"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_was_expected(make, message):
    with pytest.raises(ValueError, match=message):
        make()
