"""Known deformations by the hundred: none folds, and images, labels and pairs are those of ITK's own transform."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
from scipy.spatial.transform import Rotation

from blocks import image_of
from blocks.grid import Grid
from fidopt import corpus, resources
from fidopt.building.contents import Contents
from fidopt.building.deformation import draw, transform_text
from fidopt.building.folding import STEEPEST, refuse_folding, smallest_determinant
from fidopt.building.moved import move
from fidopt.building.recipe import MOST_STEEP, Recipe
from fidopt.demo import RUNS

DRAWN = [pytest.param(n, marks=pytest.mark.slow) if n >= 6 else n for n in range(100)]


def some_grid(random, ndim):
    """Return an oblique anisotropic grid of odd sizes, anywhere in the world."""
    turned = Rotation.random(random_state=int(random.integers(1 << 31))).as_matrix()
    if ndim == 2:
        angle = random.uniform(0, 2 * np.pi)
        turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return Grid.of(
        random.integers(25, 60 if ndim == 2 else 45, ndim),
        spacing=random.uniform(0.4, 3.0, ndim),
        origin=random.uniform(-500, 500, ndim),
        direction=turned,
    )


def some_case(random, grid):
    """Return a smooth image with a bright body, its labels, and landmarks in it."""
    axes = np.meshgrid(*(np.linspace(-1, 1, n) for n in grid.shape), indexing="ij")
    body = 1.0 - sum(axis**2 for axis in axes)
    waves = sum(np.sin(random.uniform(2, 7) * axis + random.uniform(0, 6)) for axis in axes)
    values = (1000 * np.clip(body, 0, None) * (2 + waves / 3)).astype(np.float32)
    labels = np.where(body > 0.2, 1 + np.digitize(waves, [-0.5, 0.5]), 0).astype(np.uint8)
    index = random.uniform(0.4, 0.6, (5, grid.ndim)) * (np.array(grid.shape) - 1)
    points = grid.world(index)
    images = {"fixed": values, "moving": values, "truth/fixed_labels": labels, "truth/moving_labels": labels}
    return Contents(
        {name: image_of(value, grid) for name, value in images.items()},
        {"truth/fixed_landmarks": points, "truth/moving_landmarks": points},
    )


def itk_image(image):
    made = sitk.GetImageFromArray(np.asarray(image.values))
    made.SetSpacing(image.attrs["spacing"])
    made.SetOrigin(image.attrs["origin"])
    made.SetDirection(image.attrs["direction"])
    return made


@pytest.mark.parametrize("number", DRAWN)
def test_a_drawn_deformation_is_one_to_one_and_its_case_is_as_itk_resamples_it(number, tmp_path):
    random = np.random.default_rng(number)
    grid = some_grid(random, ndim=2 + number % 2)
    extent = np.array(grid.shape) * np.array(grid.spacing[::-1])
    distance = float(extent.min() * random.uniform(0.12, 0.2))
    reach = float(random.uniform(0.3, MOST_STEEP) * distance / STEEPEST[grid.ndim])
    border = ("still", "free")[number // 2 % 2]
    recipe = Recipe(seed=number, distance=distance, reach=reach, border=border, points=20)
    deformation = draw(recipe, grid, name=f"d:{number}")

    smallest = smallest_determinant(deformation.transform, grid, every_voxel=True)
    assert smallest > deformation.least_determinant > 0
    assert refuse_folding(deformation.transform, grid) > deformation.least_determinant

    before = some_case(random, grid)
    after = move(before, deformation, recipe, modality="mr", name=f"d:{number}")
    (tmp_path / "deformation.tfm").write_text(transform_text(deformation.transform))
    itk = sitk.ReadTransform(str(tmp_path / "deformation.tfm"))
    labels = itk_image(before.images["truth/moving_labels"])
    theirs = sitk.GetArrayFromImage(sitk.Resample(labels, labels, itk, sitk.sitkNearestNeighbor))
    np.testing.assert_array_equal(after.images["truth/moving_labels"].values, theirs)
    assert not np.array_equal(after.images["moving"].values, before.images["moving"].values)
    image = itk_image(before.images["moving"])
    theirs = sitk.Resample(image, image, itk, sitk.sitkLinear, float(before.images["moving"].min()))
    np.testing.assert_allclose(
        after.images["moving"].values, sitk.GetArrayFromImage(theirs), rtol=1e-5, atol=1e-3, strict=True
    )

    fixed, moving = (after.points[f"truth/{side}_landmarks"] for side in ("fixed", "moving"))
    assert len(fixed) == len(moving) == 25
    np.testing.assert_array_equal(fixed[:5], before.points["truth/fixed_landmarks"])
    back = np.array([itk.TransformPoint(point) for point in moving.tolist()])
    assert np.abs(grid.index(back) - grid.index(fixed)).max() < 1e-6
    assert grid.inside(fixed).all()
    assert grid.inside(moving).all()


def test_the_seeds_that_everybody_can_read_are_of_sets_that_no_track_holds():
    roots = resources.roots()
    public = sorted(path.parent.name for path in (resources.packaged_share() / "datasets").glob("*/warp.json"))
    assert set(public) == set(RUNS)  # the demonstration's, and no others
    ranked = {name for track in corpus.tracks(roots).root.values() for name in track.datasets}
    assert not ranked & set(public)
    for name in public:
        dataset = corpus.dataset(name, roots)
        assert (dataset.warp, dataset.truth.grade) == (True, "synthetic")
        assert "in no track" in dataset.truth.limits


def test_no_other_seed_is_in_the_repository():
    checkout = resources.packaged_share()
    if not (checkout / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    names = listed.splitlines()
    assert not [name for name in names if "/private/" in name or name.endswith("deformation.tfm")]
    assert all(name.startswith("datasets/") for name in names if name.endswith("warp.json"))
