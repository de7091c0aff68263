"""Figures of real data with a known truth, measured with other tools, through the commands a person calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from fidopt.cli import main

if TYPE_CHECKING:
    from fidopt.scoring.evaluation import Scores

pytest.importorskip("konfai", reason="KonfAI is not installed")

Score = Callable[..., dict]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture
def build(shared_data, folder, monkeypatch) -> Callable[[str], Path]:
    """Return a function that builds a dataset once, from the providers' files beside the checkout."""

    def _build(name: str) -> Path:
        archive = shared_data(name)
        monkeypatch.setenv("FIDOPT_ARCHIVES", str(archive.parent))
        monkeypatch.setenv("FIDOPT_CORPUS", str(folder / "corpus"))
        monkeypatch.setenv("FIDOPT_RESULTS", str(folder / "results"))
        if not (folder / "corpus" / name).exists():
            assert main(["build", name]) == 0
        return folder / "corpus" / name

    return _build


@pytest.fixture
def scored(capsys) -> Score:
    """Return a function that scores a folder of fields and gives what ``--json`` prints."""

    def _score(dataset: str, fields: Path, *words: str) -> dict:
        capsys.readouterr()
        assert main(["score", "figures", dataset, "--fields", str(fields), "--machine", "here", "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    return _score


def test_the_lungs_before_and_after_the_stored_registration(build, scored, shared_data, folder):
    from fidopt import corpus, resources
    from fidopt.scoring.evaluation import score_case

    case = build("lung_ct") / "case01"
    roots = resources.roots()
    dataset = corpus.dataset("lung_ct", roots)
    centres = score_case(corpus.case(dataset, "case01", roots), None)
    assert centres.metrics["tre"] == pytest.approx(7.60345, abs=1e-5)

    # What was measured before the alignment is found again through its inverse, which is a field like any other.
    undone = f"inverse:{corpus.alignment_path(dataset, 'case01', roots)}"
    like = str(case / "fixed.ome.zarr")

    def row_of(name: str, *transforms: str) -> dict:
        fields = folder / name
        (fields / "case01").mkdir(parents=True)
        assert main(["field", *transforms, str(fields / "case01" / "DVF.nii.gz"), "--like", like]) == 0
        row = scored("lung_ct", fields)["rows"]["case01"]
        assert row["error"] is None
        assert row["landmarks"]["tre"]["count"] == 51
        assert row["landmarks"]["tre"]["mean"] == pytest.approx(row["metrics"]["tre"], rel=1e-12)
        return row

    before = row_of("before", undone)
    assert before["metrics"]["tre"] == pytest.approx(35.26895, abs=1e-5)
    assert before["landmarks"]["tre"]["median"] == pytest.approx(34.37720, abs=1e-5)
    assert before["metrics"]["dice_lungs"] == pytest.approx(0.70799, abs=1e-5)

    row = row_of("after", str(shared_data("lung_ct") / "stored_bspline.txt"), undone)
    assert row["metrics"]["tre"] == pytest.approx(1.58758, abs=5e-4)
    assert row["landmarks"]["tre"]["median"] == pytest.approx(1.10047, abs=5e-4)
    assert row["metrics"]["dice_lungs"] == pytest.approx(0.986885, abs=1e-5)
    assert row["metrics"]["folds"] == 0.0


def test_learn2regs_zero_fields_give_the_organisers_figures(build, scored, shared_data):
    build("lungct_points")
    document = scored("lungct_points", shared_data("lungct_points") / "zero_field", "--voxels")
    rows = document["rows"].values()
    assert all(row["error"] is None for row in rows)
    tre = [row["metrics"]["tre"] for row in rows]
    keypoints = [row["metrics"]["tre_keypoints"] for row in rows]
    assert tre == pytest.approx([20.180078, 15.600577, 8.141407], abs=1e-4)
    assert keypoints == pytest.approx([20.242239, 16.514453, 9.599363], abs=1e-4)
    assert document["mean"]["tre"] == pytest.approx(14.640687, abs=1e-4)
    assert document["mean"]["tre_keypoints"] == pytest.approx(15.452018, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "pairs", "mean", "median"), [("rat_kidney", 69, 1.991, 2.069), ("lesions", 78, 6.630, 5.705)]
)
def test_sections_of_tissue_start_as_far_apart_as_measured(build, name, pairs, mean, median):
    from fidopt import corpus, resources
    from fidopt.scoring.evaluation import score_case

    build("histology")
    roots = resources.roots()
    case = corpus.case(corpus.dataset("histology", roots), name, roots)
    scores = score_case(case, None)
    errors = np.array(scores.landmarks["tre"]) / case.fixed_grid().diagonal
    assert len(errors) == pairs
    assert 100 * scores.metrics["rtre"] == pytest.approx(mean, abs=5e-4)
    assert 100 * np.median(errors) == pytest.approx(median, abs=5e-4)


def unregistered(dataset: str) -> dict[str, Scores]:
    """Return what each case of a built dataset is scored as it stands."""
    from fidopt import corpus, resources
    from fidopt.scoring.evaluation import score_case

    roots = resources.roots()
    return {case.name: score_case(case, None) for case in corpus.cases(corpus.dataset(dataset, roots), (), roots)}


def field_folder(folder: Path, case: str, vectors: np.ndarray, like: Path) -> Path:
    """Write u (3, z, y, x) on the grid of a store as the field of a case, and return the folder of fields."""
    from blocks.image import grid_of, open_image
    from fidopt.images.nifti import write_field

    path = folder / case / "DVF.nii.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    grid = grid_of(open_image(like))
    write_field(path, np.broadcast_to(vectors.astype(np.float32), (3, *grid.shape)), grid)
    return folder


def test_a_prostate_with_the_images_centres_together_overlaps_by_three_fifths(build):
    from fidopt import corpus, resources

    build("prostate_us_mr")
    roots = resources.roots()
    for case in corpus.cases(corpus.dataset("prostate_us_mr", roots), (), roots):
        centres = [grid.world((np.array(grid.shape) - 1) / 2) for grid in (case.fixed_grid(), case.moving_grid())]
        np.testing.assert_allclose(*centres, rtol=0, atol=1e-9)
    dice = [found.metrics["dice"] for found in unregistered("prostate_us_mr").values()]
    assert len(dice) == 12
    # The centres lie half a voxel apart along two axes, so that the last bit decides which of two voxels is nearest.
    assert np.mean(dice) == pytest.approx(0.62, abs=0.01)


def test_two_hippocampi_overlap_unregistered_as_itk_has_them(build, shared_data):
    build("hippocampus_mr")
    labels = shared_data("hippocampus_mr") / "labels"
    scores = unregistered("hippocampus_mr")
    assert len(scores) == 10
    for case, found in scores.items():
        fixed, moving = (
            sitk.ReadImage(str(labels / f"hippocampus_{n}.nii.gz"), sitk.sitkUInt8) for n in case.split("_")
        )
        there = sitk.GetArrayFromImage(sitk.Resample(moving, fixed, sitk.Transform(), sitk.sitkNearestNeighbor))
        here = sitk.GetArrayFromImage(fixed)
        dice = {
            str(v): 2 * np.sum((here == v) & (there == v)) / np.sum((here == v).astype(int) + (there == v))
            for v in (1, 2)
        }
        assert found.labels["dice"] == pytest.approx(dice, abs=1e-6)
    mean = np.mean([found.metrics["dice"] for found in scores.values()])
    assert 0.4 < mean < 0.6


def test_a_spinal_cord_overlaps_unregistered_as_measured(build):
    build("spine_mr")
    dice = {case: found.metrics["dice"] for case, found in unregistered("spine_mr").items()}
    assert dice == pytest.approx(
        {"t2_t1w": 0.85156, "t1w_t2": 0.71829, "t2s_t2": 0.37346, "t2_pam50": 0.20262}, abs=1e-5
    )


@pytest.fixture
def template_warp(shared_data) -> np.ndarray:
    """Return ANTs' field from T2 to the template (3, z, y, x), the largest float32 where it leaves the template."""
    file = nibabel.load(shared_data("spine_mr") / "warp_template2anat.nii.gz")
    return np.asarray(file.dataobj)[..., 0, :].T


@pytest.mark.parametrize(("outside", "dice"), [("as it is, background", 0.94236), ("where nothing moves", 0.93994)])
def test_a_template_of_the_cord_through_its_ants_warp(build, scored, folder, template_warp, outside, dice):
    case = build("spine_mr") / "t2_pam50"
    vectors = template_warp.copy()
    assert np.sum(vectors > 1e38) == 3 * 2025
    if outside == "where nothing moves":
        vectors[vectors > 1e38] = 0
    fields = field_folder(folder / outside.split()[0], "t2_pam50", vectors, case / "fixed.ome.zarr")
    row = scored("spine_mr", fields, "t2_pam50")["rows"]["t2_pam50"]
    assert row["error"] is None
    assert row["metrics"]["dice"] == pytest.approx(dice, abs=1e-5)
    assert np.isfinite([row["metrics"]["sdlogj"], row["metrics"]["folds"]]).all()


@pytest.mark.parametrize("wrong", ["sign", "frame", "order"])
def test_a_warp_read_wrongly_does_not_find_the_cord(build, scored, folder, template_warp, wrong):
    case = build("spine_mr") / "t2_pam50"
    read = {
        "sign": -template_warp,
        "frame": template_warp * np.array([-1, -1, 1], dtype=np.float32).reshape(3, 1, 1, 1),
        "order": template_warp[::-1],
    }[wrong]
    fields = field_folder(folder / wrong, "t2_pam50", read, case / "fixed.ome.zarr")
    assert scored("spine_mr", fields, "t2_pam50")["rows"]["t2_pam50"]["metrics"]["dice"] < 0.5
