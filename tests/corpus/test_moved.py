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
from fidopt.building.deformation import Recipe, draw, recipe_path
from fidopt.building.moved import body, drawn_pairs
from fidopt.errors import InputError, MissingError
from fidopt.images.landmarks import read_landmarks

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
    nearest = np.rint(grid_of(image).index(fixed)).astype(int)
    inside = np.all((nearest >= 0) & (nearest < image.shape), axis=1)
    assert inside.all()
    assert body(image)[tuple(nearest.T)].mean() > 0.9
    assert case.moving_grid().inside(moving).all()


def test_a_point_whose_pair_falls_outside_is_drawn_again():
    grid = Grid.of((40, 50), spacing=(0.5, 2.0))
    image = image_of(np.pad(np.ones((36, 46), dtype=np.uint8), 2), grid)
    recipe = Recipe.model_validate(RECIPE)
    deformation = draw(recipe, grid, name="d:c")
    smaller = grid.crop(Region((8, 10), (30, 35)))
    fixed, pairs = drawn_pairs(image, smaller, deformation, recipe, name="d:c")
    assert len(fixed) == 25
    assert smaller.inside(pairs).all()
    _, anywhere = drawn_pairs(image, grid, deformation, recipe, name="d:c")
    assert not smaller.inside(anywhere).all()
    away = Grid.of((4, 4), origin=(500.0, 500.0))
    with pytest.raises(InputError, match="d:c: 0 of the body's points have their pair inside"):
        drawn_pairs(image, away, deformation, recipe, name="d:c")


def test_the_body_is_above_otsus_threshold_with_the_channels_averaged():
    voxels = np.zeros((3, 8, 9), dtype=np.uint8)
    voxels[:, 2:6, 3:7] = np.array([200, 90, 30], dtype=np.uint8)[:, None, None]
    np.testing.assert_array_equal(body(image_of(voxels, Grid.of((8, 9)))), voxels[0] > 0)


def test_dark_tissue_on_a_bright_slide_is_a_body_too():
    voxels = np.full((3, 12, 13), 240, dtype=np.uint8)
    voxels[:, 4:9, 3:8] = np.array([150, 60, 120], dtype=np.uint8)[:, None, None]
    np.testing.assert_array_equal(body(image_of(voxels, Grid.of((12, 13)))), voxels[0] < 200)
    fixed, _ = drawn_pairs(
        image_of(voxels, Grid.of((12, 13), spacing=(4.0, 4.0))),
        Grid.of((12, 13), spacing=(4.0, 4.0)),
        draw(Recipe(seed=1, distance=8.0, reach=1.0, border="free"), Grid.of((12, 13), spacing=(4.0, 4.0)), name="d:c"),
        Recipe(seed=1, distance=8.0, reach=1.0, border="free", points=40),
        name="d:c",
    )
    index = np.rint(Grid.of((12, 13), spacing=(4.0, 4.0)).index(fixed)).astype(int)
    assert np.all(voxels[0][tuple(index.T)] < 200)


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
        building.build(dataset, roots=roots)
