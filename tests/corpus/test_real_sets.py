"""The sets that ship: voxels as their providers deliver them, and the unregistered figures known of them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks import open_image
from fidopt import building, corpus, resources
from fidopt.errors import UsageError
from fidopt.images.landmarks import read_landmarks


@pytest.fixture(scope="module")
def build(tmp_path_factory, shared_data):
    """Return a function that builds a set from the shared data, and gives its cases."""
    place = tmp_path_factory.mktemp("corpus")

    def _build(name):
        roots = resources.roots(corpus=place, archives=shared_data(name).parent)
        dataset = corpus.dataset(name, roots)
        building.build(dataset, roots=roots)
        assert building.verify(dataset, roots=roots) == [] or corpus.checksums(name, roots)
        return corpus.cases(dataset, (), roots)

    return _build


def errors(case, name=""):
    fixed, moving = (read_landmarks(path, ndim=case.dataset.dimension) for path in case.landmark_sets()[name])
    return np.linalg.norm(fixed - moving, axis=1)


def test_lung_ct_keeps_the_pairs_inside_both_images_and_its_lungs_out_of_reach(build, shared_data):
    (case,) = build("lung_ct")
    distances = errors(case)
    assert len(distances) == 51
    assert distances.mean() == pytest.approx(35.26895, abs=5e-6)
    assert np.median(distances) == pytest.approx(34.37720, abs=5e-6)
    assert case.masks() == {}
    assert list(case.label_sets()) == ["lungs"]
    folder = shared_data("lung_ct")
    stores = [case.fixed, case.moving, *case.label_sets()["lungs"]]
    names = ["baseline", "followup", "baseline_mask", "followup_mask"]
    for store, name in zip(stores, names, strict=True):
        source = sitk.ReadImage(str(folder / f"3DCT_lung_{name}.mha"))
        image = open_image(store)
        np.testing.assert_array_equal(image.values, sitk.GetArrayViewFromImage(source))
        assert image.dtype == sitk.GetArrayViewFromImage(source).dtype
        assert (image.attrs["spacing"], image.attrs["origin"]) == (source.GetSpacing(), source.GetOrigin())


def test_lungct_points_is_scored_in_the_world_and_never_run(build):
    cases = build("lungct_points")
    means = [errors(case).mean() for case in cases]
    np.testing.assert_allclose(means, [20.180078, 15.600577, 8.141407], rtol=0, atol=1e-6)
    keypoints = [errors(case, "keypoints").mean() for case in cases]
    np.testing.assert_allclose(keypoints, [20.242239, 16.514453, 9.599363], rtol=0, atol=1e-6)
    grid = cases[0].fixed_grid()
    assert (grid.shape, grid.spacing) == ((208, 192, 192), (1.75, 1.25, 1.75))
    assert cases[0].moving_grid() == grid
    assert [case.dataset.cases[case.name].learn2reg for case in cases] == ["0001_0001", "0002_0002", "0003_0003"]
    assert cases[0].masks().keys() == {"fixed_mask"}
    with pytest.raises(UsageError, match="has no images to register"):
        cases[0].require_images()


def test_histology_has_its_published_distances_and_stays_in_colour(build):
    figures = {case.name: errors(case) / case.fixed_grid().diagonal * 100 for case in build("histology")}
    assert {name: len(values) for name, values in figures.items()} == {"rat_kidney": 69, "lesions": 78}
    assert figures["rat_kidney"].mean() == pytest.approx(1.991, abs=5e-4)
    assert np.median(figures["rat_kidney"]) == pytest.approx(2.069, abs=5e-4)
    assert figures["lesions"].mean() == pytest.approx(6.630, abs=5e-4)
    assert np.median(figures["lesions"]) == pytest.approx(5.705, abs=5e-4)
    case = build("histology")[0]
    image = open_image(case.fixed)
    assert (image.dims, image.dtype, image.sizes["c"], image.attrs["unit"]) == (("c", "y", "x"), np.uint8, 3, "px")


def test_the_sets_of_archives_are_built_to_the_recorded_bytes(build):
    for name in ("lung_ct", "lungct_points", "histology"):
        dataset = build(name)[0].dataset
        roots = resources.roots(corpus=build(name)[0].folder.parents[1])
        assert building.verify(dataset, roots=roots) == [], f"after a change of the store: fidopt build {name} --record"


@pytest.mark.parametrize(
    ("name", "case_name", "package"), [("retina", "eye2", "skimage"), ("brain", "head2", "nilearn")]
)
def test_a_demonstration_pair_is_two_images_with_a_truth_that_leaves_room(tmp_path, name, case_name, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'fidopt[demo]'")
    roots = resources.roots(corpus=tmp_path, archives=tmp_path / "none")
    dataset = corpus.dataset(name, roots)
    building.build(dataset, [case_name], roots=roots)
    case = corpus.case(dataset, case_name, roots)
    voxel = min(case.fixed_grid().spacing)
    assert 2 * voxel < errors(case).mean() < 10 * voxel
    assert errors(case).max() < 16 * voxel
    fixed, moving = open_image(case.fixed), open_image(case.moving)
    assert fixed.shape == moving.shape
    assert not np.array_equal(fixed.values, moving.values)
    labels = [open_image(path).values for path in case.label_sets()[""]]
    assert [set(np.unique(one)) for one in labels] == [{0, 1, 2}, {0, 1, 2}]
    for label in (1, 2):
        overlap = 2 * np.sum((labels[0] == label) & (labels[1] == label))
        assert overlap / (np.sum(labels[0] == label) + np.sum(labels[1] == label)) < 0.8
    transform = sitk.ReadTransform(str(case.truth / "deformation.tfm"))
    x, y = (read_landmarks(path, ndim=dataset.dimension) for path in case.landmark_sets()[""])
    assert np.abs([transform.TransformPoint(point) for point in y.tolist()] - x).max() < 1e-6 * voxel
    assert dataset.warp
    assert dataset.truth.grade == "synthetic"
