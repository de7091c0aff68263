"""The sets of the other tasks: neck tumours that a segmentation is scored on, and a head to be made a CT of."""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks import open_image
from blocks.image import grid_of
from fidopt import building, corpus, resources
from fidopt.errors import UsageError

NECK = "headneck_masks"
HEAD = "mr_ct_templates"


@pytest.fixture(scope="module")
def build(tmp_path_factory, shared_data):
    """Return a function that builds a set from the shared data once, and gives its cases by name."""
    place = tmp_path_factory.mktemp("corpus")

    def _build(name):
        roots = resources.roots(corpus=place, archives=shared_data(name).parent)
        dataset = corpus.dataset(name, roots)
        built = building.build(dataset, roots=roots)
        assert {one.recorded for one in built} == {"match"}, (
            f"after a change of the store: fidopt build {name} --record"
        )
        assert building.verify(dataset, roots=roots) == []
        return {case.name: case for case in corpus.cases(dataset, (), roots)}

    return _build


@pytest.fixture(scope="module")
def outputs(tmp_path_factory, shared_data):
    """Return the folder of outputs that the earlier masks are laid out in, as its script does it."""
    folder = tmp_path_factory.mktemp("outputs")
    script = corpus.dataset_folder(NECK, resources.roots()) / "outputs.py"
    subprocess.run([sys.executable, str(script), str(shared_data(NECK)), str(folder)], check=True)
    return folder


def dice(truth, found):
    """Return the Dice of two masks, and None where both are empty."""
    total = int(truth.sum()) + int(found.sum())
    return 2 * int((truth & found).sum()) / total if total else None


def published(folder):
    with (folder / "dice.csv").open(newline="") as stream:
        return {f"case{int(row['case']):02d}": row for row in csv.DictReader(stream)}


def test_masks_of_the_neck_give_the_thirty_published_dice(build, outputs, shared_data):
    cases, rows = build(NECK), published(shared_data(NECK))
    assert sorted(cases) == sorted(rows)
    assert len(rows) == 15
    measured = 0
    for name, case in cases.items():
        truth = open_image(case.truth / "labels.ome.zarr")
        output = sitk.ReadImage(str(outputs / name / "labels.nii.gz"))
        assert output.GetSize() == truth.shape[::-1]
        np.testing.assert_allclose(output.GetOrigin(), grid_of(truth).origin, rtol=0, atol=1e-9)
        found = sitk.GetArrayViewFromImage(output)
        for value in (1, 2):
            here, there = truth.values == value, found == value
            row = rows[name]
            assert (here.sum(), there.sum()) == (
                int(row[f"truth_voxels_{value}"]),
                int(row[f"predicted_voxels_{value}"]),
            )
            expected = row[f"dice_{value}"]
            assert dice(here, there) == (pytest.approx(float(expected), abs=1e-12) if expected else None)
            measured += 1
    assert measured == 30


def test_outputs_of_the_neck_name_the_structures_as_the_truth_does(outputs, build):
    case = next(iter(build(NECK).values()))
    for path in outputs.glob("*/labels.json"):
        assert json.loads(path.read_text()) == case.dataset.truth.labels
    assert sorted(path.name for path in outputs.iterdir()) == sorted(case.dataset.cases)


def test_outputs_of_a_case_that_is_not_there_are_refused(tmp_path, shared_data):
    script = corpus.dataset_folder(NECK, resources.roots()) / "outputs.py"
    command = [sys.executable, str(script), str(shared_data(NECK)), str(tmp_path), "case08", "case09"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "no mask of case09 there" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_masks_of_the_neck_come_without_images_and_are_never_run(build):
    case = build(NECK)["case90"]
    assert [path.name for path in case.folder.iterdir()] == ["truth"]
    assert not case.has_images
    with pytest.raises(UsageError, match="has no image to segment: methods cannot run on it"):
        case.require_images()


def test_a_head_s_ct_is_the_templates_in_hounsfield_units(build, shared_data):
    case = build(HEAD)["head"]
    image = nibabel.load(shared_data(HEAD) / "scct.nii")
    cormack = np.asarray(image.dataobj, dtype=np.float64).T
    target = open_image(case.truth / "target.ome.zarr")
    assert target.dtype == np.float32
    values = target.values.astype(np.float64)
    dark, bright = cormack <= 900, cormack > 3100
    soft = ~dark & ~bright
    # Within what is lost where a file's scaled values become float32, as they do in ITK: half of 2^-11 at 3,800.
    near = {"rtol": 0, "atol": 2**-12}
    np.testing.assert_allclose(values[dark], cormack[dark] - 1000, **near)
    np.testing.assert_allclose(values[soft], (cormack[soft] - 900) / 11 - 100, **near)
    np.testing.assert_allclose(values[bright], cormack[bright] - 3000, **near)
    assert min(dark.sum(), bright.sum(), soft.sum()) > 10_000
    corner = image.affine @ [90, 108, 90, 1]
    np.testing.assert_allclose(grid_of(target).world([90, 108, 90]), corner[:3] * [-1, -1, 1], rtol=0, atol=1e-6)
    assert values.max() - values.min() == pytest.approx(case.dataset.truth.dynamic_range, abs=1e-3)


@pytest.mark.parametrize(
    ("cormack", "hounsfield"), [(0, -1000), (900, -100), (1450, -50), (2000, 0), (3100, 100), (3101, 101)]
)
def test_cormack_units_are_turned_into_hounsfields(cormack, hounsfield):
    path = corpus.dataset_folder(HEAD, resources.roots()) / "prepare.py"
    spec = importlib.util.spec_from_file_location("prepare_head", path)
    prepare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prepare)
    assert prepare.hounsfield_of(np.array([cormack])).tolist() == [hounsfield]


def test_a_head_s_t1_is_read_at_the_ct_s_voxels(build, shared_data):
    case = build(HEAD)["head"]
    source, target = open_image(case.folder / "source.ome.zarr"), open_image(case.truth / "target.ome.zarr")
    assert grid_of(source) == grid_of(target)
    image = nibabel.load(shared_data(HEAD) / "tpl-MNI152NLin2009cAsym_res-02_T1w.nii.gz")
    voxels = np.asarray(image.dataobj, dtype=np.float64)
    at = np.array([40, 50, 45])
    world = grid_of(source).world(at) * [-1, -1, 1]
    index = np.linalg.inv(image.affine) @ [*world, 1.0]
    low = np.floor(index[:3]).astype(int)
    part = index[:3] - low
    np.testing.assert_allclose(np.minimum(part, 1 - part), 0.25, rtol=0, atol=1e-9)
    cube = voxels[tuple(slice(n, n + 2) for n in low)]
    weights = [np.array([1 - p, p]) for p in part]
    expected = np.einsum("ijk,i,j,k->", cube, *weights)
    assert source.values[tuple(at)] == pytest.approx(expected, rel=1e-6)


def test_the_best_constant_leaves_eighty_four_hounsfields_in_the_head(build):
    case = build(HEAD)["head"]
    (mask,) = case.masks().values()
    inside = open_image(mask).values == 1
    values = open_image(case.truth / "target.ome.zarr").values.astype(np.float64)[inside]
    assert np.abs(values - np.median(values)).mean() == pytest.approx(83.7, abs=0.05)
    assert np.abs(values - values.mean()).mean() == pytest.approx(83.7, abs=0.05)
    assert 0.55 < inside.mean() < 0.65
