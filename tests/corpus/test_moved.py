"""A known deformation's case: images and labels as ITK resamples them, pairs through the inverse."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks import image_of, open_image
from blocks.grid import Grid
from blocks.image import grid_of
from blocks.region import Region
from fidopt import building, corpus
from fidopt.alignment.bodies import body_of
from fidopt.building.deformation import draw
from fidopt.building.moved import drawn_pairs
from fidopt.building.recipe import Recipe, recipe_path
from fidopt.errors import InputError, MissingError
from fidopt.images.landmarks import read_landmarks
from tests.corpus.conftest import nifti

TRUTH = {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l", "labels": {"3": "bright"}}
RECIPE = {"seed": 7, "distance": 4.0, "reach": 1.2, "border": "free", "points": 25}


@pytest.fixture
def built(make, pair):
    """A case whose moving side went through its deformation, and its files."""
    files = {name: data for name, data in pair.items() if name.startswith("one")}
    dataset, roots = make(files, truth=TRUTH, warp=True, recipe=RECIPE)
    building.build(dataset, roots=roots)
    return corpus.case(dataset, "one", roots), files


def to_itk(data, folder):
    path = Path(folder) / "image.nii.gz"
    path.write_bytes(data)
    return sitk.ReadImage(str(path))


def test_the_moving_side_is_what_itk_resamples_through_the_stored_deformation(built, tmp_path):
    case, files = built
    transform = sitk.ReadTransform(str(case.truth / "deformation.tfm"))
    image = to_itk(files["one-moving.nii.gz"], tmp_path)
    least = float(sitk.GetArrayViewFromImage(image).min())
    expected = sitk.Resample(sitk.Cast(image, sitk.sitkFloat64), image, transform, sitk.sitkLinear, least)
    np.testing.assert_allclose(
        open_image(case.moving).values, sitk.GetArrayViewFromImage(expected), rtol=0, atol=0.5 + 1e-6
    )
    labels = to_itk(files["one-truth-moving_labels.nii.gz"], tmp_path)
    followed = sitk.Resample(labels, labels, transform, sitk.sitkNearestNeighbor)
    moved = open_image(case.label_sets()[""][1]).values
    assert np.mean(moved == sitk.GetArrayViewFromImage(followed)) > 0.999
    assert not np.array_equal(moved, sitk.GetArrayViewFromImage(labels))


def test_the_fixed_side_is_untouched(built):
    case, files = built
    source = nibabel.Nifti1Image.from_bytes(gzip.decompress(files["one-fixed.nii.gz"]))
    np.testing.assert_array_equal(open_image(case.fixed).values, np.asanyarray(source.dataobj).T)


def test_pairs_lie_where_the_deformation_brings_them_to_a_millionth_of_a_voxel(built):
    case, _ = built
    fixed, moving = (read_landmarks(path, ndim=3) for path in case.landmark_sets()[""])
    # The provider's two pairs are kept, first, and 25 are added.
    assert len(fixed) == len(moving) == 27
    np.testing.assert_array_equal(fixed[0], [12.0, -8.5, 305.25])
    transform = sitk.ReadTransform(str(case.truth / "deformation.tfm"))
    back = np.array([transform.TransformPoint(point) for point in moving.tolist()])
    assert np.abs(back - fixed).max() < 1e-6 * 0.9
    assert np.linalg.norm(moving - fixed, axis=1).max() > 0.5


def test_points_lie_in_the_body_and_their_pairs_in_the_moving_image(built):
    case, _ = built
    fixed, moving = (read_landmarks(path, ndim=3)[2:] for path in case.landmark_sets()[""])
    image = open_image(case.fixed)
    assert grid_of(image).inside(fixed).all()
    body = body_of(image, modality=case.dataset.modalities["fixed"])
    assert body.at(fixed).all()
    assert case.moving_grid().inside(moving).all()


def test_a_point_whose_pair_falls_outside_is_drawn_again():
    grid = Grid.of((40, 50), spacing=(0.5, 2.0))
    body = body_of(image_of(np.pad(np.ones((36, 46), dtype=np.uint8), 2), grid), modality="mr")
    recipe = Recipe.model_validate(RECIPE)
    deformation = draw(recipe, grid, name="d:c")
    smaller = grid.crop(Region((8, 10), (30, 35)))
    fixed, pairs = drawn_pairs(body, deformation, recipe, fixed=grid, moving=smaller, name="d:c")
    assert len(fixed) == 25
    assert smaller.inside(pairs).all()
    _, anywhere = drawn_pairs(body, deformation, recipe, fixed=grid, moving=grid, name="d:c")
    assert not smaller.inside(anywhere).all()
    away = Grid.of((4, 4), origin=(500.0, 500.0))
    with pytest.raises(InputError, match="d:c: 0 of the body's points have their pair inside"):
        drawn_pairs(body, deformation, recipe, fixed=grid, moving=away, name="d:c")


def test_points_are_drawn_in_dark_tissue_on_a_bright_slide_and_never_in_a_speck_beside_it():
    voxels = np.full((3, 40, 44), 240, dtype=np.uint8)
    voxels[:, 12:30, 10:28] = np.array([150, 60, 120], dtype=np.uint8)[:, None, None]
    voxels[:, 3:5, 34:40] = 60
    grid = Grid.of((40, 44), spacing=(4.0, 4.0))
    recipe = Recipe(seed=1, distance=16.0, reach=2.0, border="free", points=40)
    fixed, _ = drawn_pairs(
        body_of(image_of(voxels, grid), modality="histology"),
        draw(recipe, grid, name="d:c"),
        recipe,
        fixed=grid,
        moving=grid,
        name="d:c",
    )
    index = np.floor(grid.index(fixed) + 0.5).astype(int)
    assert np.all((index >= [12, 10]) & (index < [30, 28]))


def test_points_are_drawn_inside_a_chest_its_lungs_too_and_not_in_its_table(make):
    values = np.full((60, 60, 20), -1000, dtype=np.int16)
    values[10:50, 8:40] = 40
    values[16:26, 14:34, 4:16] = -850
    values[4:56, 46:48] = 300
    files = {f"one-{side}.nii.gz": nifti(values, spacing=(1.5, 1.5, 2.0)) for side in ("fixed", "moving")}
    dataset, roots = make(
        files, truth=TRUTH | {"labels": {}}, warp=True, recipe=RECIPE | {"distance": 12.0, "reach": 2.0, "points": 400}
    )
    building.build(dataset, roots=roots)
    case = corpus.case(dataset, "one", roots)
    fixed = read_landmarks(case.landmark_sets()[""][0], ndim=3)
    z, y, x = np.floor(case.fixed_grid().index(fixed) + 0.5).astype(int).T
    assert np.all((x >= 10) & (x < 50) & (y >= 8) & (y < 40))
    assert np.mean(values[x, y, z] == -850) > 0.05


def test_the_same_recipe_gives_the_same_case_and_another_seed_another(make, pair):
    files = {name: data for name, data in pair.items() if name.startswith("one")}
    dataset, roots = make(files, truth=TRUTH, warp=True, recipe=RECIPE)
    first = building.build(dataset, roots=roots)[0].checksums
    assert building.build(dataset, roots=roots, overwrite=True)[0].checksums == first
    dataset, roots = make(files, truth=TRUTH, warp=True, recipe=RECIPE | {"seed": 8})
    other = building.build(dataset, roots=roots, overwrite=True)[0].checksums
    assert {entry for entry in first if other[entry] == first[entry]} == {
        "fixed.ome.zarr",
        "truth/fixed_labels.ome.zarr",
    }


def test_the_seed_kept_with_the_archive_comes_before_a_public_one(make, pair):
    dataset, roots = make(pair, truth=TRUTH, warp=True, recipe=RECIPE)
    public = corpus.dataset_folder("tiny", roots) / "warp.json"
    public.write_text(json.dumps(RECIPE))
    private = roots.archives / "tiny" / "private" / "warp.json"
    assert recipe_path(dataset, roots) == private
    private.unlink()
    assert recipe_path(dataset, roots) == public
    public.unlink()
    with pytest.raises(MissingError, match="its known deformation's seed is not in"):
        recipe_path(dataset, roots)
