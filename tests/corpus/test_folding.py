"""The bound on a B-spline's folding holds, is close, and is measured where it says."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.building.deformation import draw, transform_text
from fidopt.building.folding import (
    STEEPEST,
    determinants,
    least_determinant,
    refuse_folding,
    smallest_determinant,
    steepness,
)
from fidopt.building.recipe import Recipe
from fidopt.errors import InputError

TURNED = (0.8, -0.6, 0.0, 0.6, 0.8, 0.0, 0.0, 0.0, 1.0)
FLAT = Grid.of((61, 47), spacing=(0.7, 2.5), origin=(10.0, -4.0), direction=(0.6, -0.8, 0.8, 0.6))
OBLIQUE = Grid.of((21, 33, 28), spacing=(1.1, 0.9, 2.3), origin=(-30.0, 12.5, 400.0), direction=TURNED)


def one_point(moved, *, ndim=2, spacing=1.0):
    """Return a spline whose middle control point moves by so many control distances along x."""
    lattice = Grid.of((9,) * ndim, spacing=(spacing,) * ndim)
    coefficients = np.zeros((ndim, *lattice.shape))
    coefficients[(0, *(4,) * ndim)] = moved * spacing
    return BSpline(lattice, coefficients)


def test_the_steepest_gradient_of_a_spline_is_the_constant_it_is_held_to():
    def weights(t):
        return np.array([(1 - t) ** 3, 3 * t**3 - 6 * t * t + 4, -3 * t**3 + 3 * t * t + 3 * t + 1, t**3]) / 6

    def slopes(t):
        return np.array([-3 * (1 - t) ** 2, 9 * t * t - 12 * t, -9 * t * t + 6 * t + 3, 3 * t * t]) / 6

    for ndim, samples in ((2, 33), (3, 9)):
        most = 0.0
        for where in product(np.linspace(0, 1, samples), repeat=ndim):
            for signs in product((1, -1), repeat=ndim):
                total = np.zeros((4,) * ndim)
                for axis, sign in enumerate(signs):
                    term = np.array(float(sign))
                    for a, t in enumerate(where):
                        term = np.multiply.outer(term, slopes(t) if a == axis else weights(t))
                    total += term
                most = max(most, float(np.abs(total).sum()))
        assert 0.99 * STEEPEST[ndim] < most <= STEEPEST[ndim]


def test_the_bound_of_one_moved_control_point_is_the_one_computed_by_hand():
    # Differences of at most one step along x and along y: a row's sum of at most 2 d; Choi and Lee's 2.046 d in two
    # dimensions is more, their 2.479 d in three less than the 3 d of the differences.
    assert steepness(one_point(0.2)) == pytest.approx(0.4)
    assert least_determinant(one_point(0.2)) == pytest.approx(0.36)
    assert steepness(one_point(0.2, ndim=3, spacing=12.5)) == pytest.approx(0.2 * STEEPEST[3])
    assert steepness(one_point(0.0)) == 0
    assert least_determinant(one_point(0.6)) == 0


def test_the_determinant_of_one_moved_control_point_is_the_one_computed_by_hand():
    # Along x through the control point the slope of a cubic B-spline is least at two thirds of a step: -2/3, times the
    # 2/3 that the spline across is there.
    fine = Grid.of((601, 601), spacing=(0.01, 0.01), origin=(1.0, 1.0))
    assert smallest_determinant(one_point(0.3), fine, every_voxel=True) == pytest.approx(1 - 0.3 * 4 / 9, abs=1e-5)


def test_a_control_point_that_moves_at_the_edge_is_not_called_one_to_one():
    lattice = Grid.of((9, 9))
    for at in (2, 6):
        coefficients = np.zeros((2, 9, 9))
        coefficients[0, 4, at] = 0.1
        assert steepness(BSpline(lattice, coefficients)) == math.inf
        with pytest.raises(InputError, match="do not keep its Jacobian determinant away from zero"):
            refuse_folding(BSpline(lattice, coefficients), Grid.of((9, 9)))


def test_a_lattice_with_unequal_distances_is_bounded_by_what_is_measured():
    random = np.random.default_rng(3)
    lattice = Grid.of((11, 12), spacing=(3.0, 8.0), direction=(0.6, -0.8, 0.8, 0.6))
    coefficients = np.zeros((2, 11, 12))
    coefficients[:, 3:-3, 3:-3] = random.uniform(-0.7, 0.7, size=(2, 5, 6))
    transform = BSpline(lattice, coefficients)
    image = Grid.of((200, 200), spacing=(0.16, 0.42), direction=lattice.direction)
    assert 0 < least_determinant(transform) < smallest_determinant(transform, image, every_voxel=True) < 1


@pytest.mark.parametrize("grid", [FLAT, OBLIQUE], ids=["2D", "3D"])
def test_determinants_are_those_of_itk_s_transform(grid, tmp_path):
    deformation = draw(Recipe(seed=3, distance=7.0, reach=2.0, border="free"), grid, name="d:c")
    (tmp_path / "deformation.tfm").write_text(transform_text(deformation.transform))
    itk = sitk.ReadTransform(str(tmp_path / "deformation.tfm"))
    found = np.concatenate(list(determinants(deformation.transform, grid)))
    random = np.random.default_rng(1)
    for at in zip(*(random.integers(0, n, 40) for n in grid.shape), strict=True):
        point = grid.world(np.array(at))
        ends = [
            [itk.TransformPoint((point + sign * step).tolist()) for sign in (1, -1)]
            for step in np.eye(grid.ndim) * 1e-4
        ]
        columns = [(np.array(a) - np.array(b)) / 2e-4 for a, b in ends]
        assert found[at] == pytest.approx(np.linalg.det(np.stack(columns, axis=-1)), abs=1e-7)


def test_determinants_of_an_axis_parallel_grid_are_those_of_itk_s_filter():
    grid = Grid.of((40, 31, 28), spacing=(0.9, 1.1, 1.3), origin=(-3.0, 4.0, 5.0))
    deformation = draw(Recipe(seed=5, distance=9.0, reach=3.0, border="free"), grid, name="d:c")
    points = grid.world(np.stack(np.meshgrid(*map(np.arange, grid.shape), indexing="ij"), axis=-1).reshape(-1, 3))
    field = sitk.GetImageFromArray(
        (deformation.transform.points(points) - points).reshape(*grid.shape, 3), isVector=True
    )
    field.SetSpacing(grid.spacing)
    field.SetOrigin(grid.origin)
    theirs = sitk.GetArrayFromImage(sitk.DisplacementFieldJacobianDeterminant(field))[2:-2, 2:-2, 2:-2]
    ours = np.concatenate(list(determinants(deformation.transform, grid)))[2:-2, 2:-2, 2:-2]
    # Theirs are differences of neighbours, which flatten a cubic.
    assert np.abs(theirs - ours).max() < 0.03
    assert np.corrcoef(theirs.ravel(), ours.ravel())[0, 1] > 0.999


def test_the_determinants_do_not_depend_on_how_many_are_measured_at_once(monkeypatch):
    deformation = draw(Recipe(seed=3, distance=7.0, reach=2.0, border="free"), OBLIQUE, name="d:c")
    whole = np.concatenate(list(determinants(deformation.transform, OBLIQUE)))
    monkeypatch.setattr("fidopt.building.folding._AT_ONCE", 1000)
    parts = list(determinants(deformation.transform, OBLIQUE))
    assert len(parts) == 21
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-14, atol=0)


def test_where_voxels_lie_close_together_sixteen_a_control_distance_are_measured():
    fine = Grid.of((3000, 2000), spacing=(0.01, 0.01), origin=(2.0, 2.0))
    deformation = draw(Recipe(seed=3, distance=4.0, reach=1.5), fine, name="d:c")
    shapes = [part.shape for part in determinants(deformation.transform, fine, every_voxel=False)]
    assert sum(shape[0] for shape in shapes) == 120
    assert shapes[0][1] == 80
    coarse, every = (smallest_determinant(deformation.transform, fine, every_voxel=full) for full in (False, True))
    assert coarse == pytest.approx(every, abs=0.01)


def test_a_grid_along_other_axes_is_not_measured():
    with pytest.raises(ValueError, match="along the lattice's axes"):
        list(determinants(one_point(0.1), FLAT))
