"""The sets that ship: voxels as their providers deliver them, and the unregistered figures known of them."""

from __future__ import annotations

import hashlib
import importlib.util

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks import open_image
from fidopt import building, corpus, resources
from fidopt.alignment.headers import read_alignment
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
    # The images' centres together; as delivered, which the inverse of the alignment undoes, they are 35 mm apart.
    assert distances.mean() == pytest.approx(7.60345, abs=5e-6)
    alignment = read_alignment(corpus.alignment_path(case.dataset, "case01", resources.roots()))
    fixed, moving = (read_landmarks(path, ndim=3) for path in case.landmark_sets()[""])
    delivered = np.linalg.norm(fixed - alignment.points(moving), axis=1)
    assert delivered.mean() == pytest.approx(35.26895, abs=5e-6)
    assert np.median(delivered) == pytest.approx(34.37720, abs=5e-6)
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
        origin = np.array([source.GetOrigin()])
        origin = alignment.inverse().points(origin) if "followup" in name else origin
        assert (image.attrs["spacing"], image.attrs["origin"]) == (source.GetSpacing(), tuple(origin[0].tolist()))


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
    for name in ("lung_ct", "lungct_points", "histology", "prostate_us_mr", "hippocampus_mr", "spine_mr"):
        dataset = build(name)[0].dataset
        roots = resources.roots(corpus=build(name)[0].folder.parents[1])
        assert building.verify(dataset, roots=roots) == [], f"after a change of the store: fidopt build {name} --record"


def test_each_structure_of_a_prostate_has_a_label_and_its_voxels(build, shared_data):
    regions = {}
    for case in build("prostate_us_mr"):
        sets = case.label_sets()
        regions[case.name] = 0
        for number, side in enumerate(("fixed", "moving")):
            source = sitk.GetArrayFromImage(
                sitk.ReadImage(str(shared_data("prostate_us_mr") / f"{side}_labels" / f"{case.name}.nii.gz"))
            )
            structures = source if source.ndim == 4 else source[None]
            gland = open_image(sets[""][number]).values
            np.testing.assert_array_equal(gland, structures[0])
            for value, structure in enumerate(structures[1:], start=2):
                np.testing.assert_array_equal(open_image(sets["regions"][number]).values == value, structure == 1)
                regions[case.name] = value - 1
    assert sorted(regions.values()) == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2]


def test_hippocampi_are_paired_and_drawn_by_the_seed(build):
    cases = build("hippocampus_mr")
    dataset = cases[0].dataset
    order = [name for case in (*dataset.cases, *dataset.development) for name in case.split("_")]
    assert len(set(order)) == len(order) == 30
    assert len(dataset.cases) == 10
    places = {n: hashlib.sha256(f"{dataset.draw.seed}:hippocampus_mr:{n}".encode()).hexdigest() for n in order}
    ranked = sorted(places, key=places.get)
    pairs = [f"{a}_{b}" for a, b in zip(ranked[::2], ranked[1::2], strict=True)]
    assert list(dataset.cases) == pairs[:10]
    assert sorted(dataset.development) == sorted(pairs[10:])
    assert [entry.subjects for entry in dataset.cases.values()] == [tuple(case.split("_")) for case in dataset.cases]


def test_a_neck_keeps_the_axes_that_its_images_were_taken_along(build):
    cases = {case.name: case for case in build("spine_mr")}
    # In ITK's world, which runs to the left, to the back and up, one row of the direction an axis of the world.
    to_the_back_up_right = np.array([[0, 0, -1], [1, 0, 0], [0, 1, 0]])
    to_the_right_forward_up = np.diag([-1, -1, 1])
    directions = {name: np.array(case.fixed_grid().direction).reshape(3, 3) for name, case in cases.items()}
    np.testing.assert_allclose(directions["t2_t1w"], to_the_back_up_right, rtol=0, atol=1e-6)
    np.testing.assert_allclose(directions["t1w_t2"], to_the_right_forward_up, rtol=0, atol=1e-6)
    oblique = directions["t2s_t2"]
    np.testing.assert_allclose(oblique, np.diag([1, -1, 1]), rtol=0, atol=0.02)
    assert np.degrees(np.arccos(oblique[2, 2])) == pytest.approx(1.02, abs=0.01)
    np.testing.assert_allclose(cases["t2s_t2"].fixed_grid().spacing, (0.5, 0.5, 7.5), rtol=1e-6)


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
