"""Known deformations: smooth, one-to-one by construction and measured, the same from the same seed."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.building.deformation import Deformation, draw, transform_text
from fidopt.building.folding import STEEPEST, refuse_folding
from fidopt.building.recipe import MOST_STEEP, Recipe, read_recipe
from fidopt.errors import DescriptorError, InputError

TURNED = [0.8, -0.6, 0.0, 0.6, 0.8, 0.0, 0.0, 0.0, 1.0]
FLAT = Grid.of((61, 47), spacing=(0.7, 2.5), origin=(10.0, -4.0), direction=(0.6, -0.8, 0.8, 0.6))
OBLIQUE = Grid.of((21, 33, 28), spacing=(1.1, 0.9, 2.3), origin=(-30.0, 12.5, 400.0), direction=TURNED)


def steepest_recipe(grid, distance, *, share=MOST_STEEP, border="still", seed=1):
    reach = share * distance / STEEPEST[grid.ndim]
    return Recipe(seed=seed, distance=distance, reach=reach, border=border)


def voxels(grid):
    return grid.world(np.stack(np.meshgrid(*map(np.arange, grid.shape), indexing="ij"), axis=-1).reshape(-1, grid.ndim))


@pytest.mark.parametrize(("grid", "distance"), [(FLAT, 6.0), (OBLIQUE, 5.0)], ids=["2D", "3D"])
@pytest.mark.parametrize("border", ["still", "free"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31), share=st.floats(0.05, MOST_STEEP))
def test_every_deformation_is_one_to_one(grid, distance, border, seed, share):
    deformation = draw(steepest_recipe(grid, distance, share=share, border=border, seed=seed), grid, name="d:c")
    assert refuse_folding(deformation.transform, grid) >= deformation.least_determinant > 0
    points = voxels(grid)[::37]
    there = deformation.inverse(points, tolerance=1e-7)
    assert np.abs(deformation.transform.points(there) - points).max() <= 1e-7
    again = deformation.inverse(deformation.transform.points(points), tolerance=1e-7)
    np.testing.assert_allclose(again, points, rtol=0, atol=1e-6 * min(grid.spacing))


def test_the_same_seed_and_case_give_the_same_bits_and_another_case_does_not():
    recipe = steepest_recipe(OBLIQUE, 5.0)
    one, same, other = (draw(recipe, OBLIQUE, name=name) for name in ("d:a", "d:a", "d:b"))
    np.testing.assert_array_equal(one.transform.coefficients, same.transform.coefficients)
    assert one.transform.grid == same.transform.grid
    assert not np.array_equal(one.transform.coefficients, other.transform.coefficients)


@pytest.mark.parametrize("grid", [FLAT, OBLIQUE], ids=["2D", "3D"])
def test_a_still_border_does_not_move_and_the_inside_does(grid):
    deformation = draw(steepest_recipe(grid, 5.0), grid, name="d:c")
    corners = np.array(list(product(*[(-0.5, n - 0.5) for n in grid.shape])))
    edges = [np.where(np.arange(grid.ndim) == axis, (grid.shape[axis] - 1) / 2, corners) for axis in range(grid.ndim)]
    outside = grid.world(np.concatenate([corners, *edges]))
    np.testing.assert_allclose(deformation.transform.points(outside), outside, rtol=0, atol=1e-9)
    moved = np.linalg.norm(deformation.transform.points(voxels(grid)) - voxels(grid), axis=1)
    assert moved.max() > 0.3 * 5.0 * MOST_STEEP / STEEPEST[grid.ndim]


@pytest.mark.parametrize("grid", [FLAT, OBLIQUE], ids=["2D", "3D"])
def test_itk_reads_the_stored_deformation_as_the_same_transform(grid, tmp_path):
    deformation = draw(steepest_recipe(grid, 6.0, border="free"), grid, name="d:c")
    path = tmp_path / "deformation.tfm"
    path.write_text(transform_text(deformation.transform))
    itk = sitk.ReadTransform(str(path))
    points = voxels(grid)[::101]
    expected = np.array([itk.TransformPoint(point) for point in points.tolist()])
    np.testing.assert_allclose(deformation.transform.points(points), expected, rtol=0, atol=1e-9)
    assert np.abs(expected - points).max() > 0.1


def test_a_recipe_that_could_fold_is_refused_before_anything_is_drawn(make, tmp_path):
    dataset, _ = make({"one-fixed.nii.gz": b""})
    path = tmp_path / "warp.json"
    path.write_text(json.dumps({"seed": 1, "distance": 10.0, "reach": 3.7}))
    with pytest.raises(InputError, match=r"reach: must be at most 3\.63 for a distance of 10, got 3\.7"):
        read_recipe(path, dataset)
    path.write_text(json.dumps({"seed": 1, "distance": 10.0, "reach": 3.6}))
    assert read_recipe(path, dataset).reach == 3.6
    path.write_text(json.dumps({"seed": -1, "distance": 0, "reach": 3.6, "strength": 2}))
    with pytest.raises(DescriptorError, match="seed: must not be negative"):
        read_recipe(path, dataset)


def test_a_secret_seed_that_could_be_found_by_trying_is_refused(make, tmp_path):
    dataset, _ = make({"one-fixed.nii.gz": b""})
    path = tmp_path / "private" / "warp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"seed": 20251011, "distance": 10.0, "reach": 3.0}))
    with pytest.raises(InputError, match=r"seed: must have 15 digits or more, got 8: .*secrets.randbits") as caught:
        read_recipe(path, dataset)
    assert "20251011" not in str(caught.value)
    path.write_text(json.dumps({"seed": 2**127 + 11, "distance": 10.0, "reach": 3.0}))
    assert read_recipe(path, dataset).seed == 2**127 + 11


def test_a_deformation_that_folds_after_all_is_refused():
    sound = draw(steepest_recipe(FLAT, 6.0), FLAT, name="d:c")
    torn = Deformation(BSpline(sound.transform.grid, np.asarray(sound.transform.coefficients) * 4))
    assert torn.least_determinant == 0
    with pytest.raises(InputError, match=r"away from zero \(the smallest one measured is -.*cannot be a truth"):
        refuse_folding(torn.transform, FLAT)
    with pytest.raises(InputError, match="inverse is not found"):
        torn.inverse(voxels(FLAT), tolerance=1e-7)


def test_an_image_too_small_for_the_recipe_is_refused_rather_than_left_still():
    with pytest.raises(InputError, match=r"d:c: a distance of 9 is too large .* nothing moves"):
        draw(steepest_recipe(FLAT, 9.0), FLAT, name="d:c")
