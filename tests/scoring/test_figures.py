"""Figures of real data with a known truth, measured with other tools, through the commands a person calls."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fidopt.cli import main

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
    before = score_case(corpus.case(corpus.dataset("lung_ct", roots), "case01", roots), None)
    assert len(before.landmarks["tre"]) == 51
    assert before.metrics["tre"] == pytest.approx(35.26895, abs=1e-5)
    assert np.median(before.landmarks["tre"]) == pytest.approx(34.37720, abs=1e-5)
    assert before.metrics["dice_lungs"] == pytest.approx(0.70799, abs=1e-5)

    transform = shared_data("lung_ct") / "stored_bspline.txt"
    fields = folder / "fields"
    (fields / "case01").mkdir(parents=True)
    like = str(case / "fixed.ome.zarr")
    assert main(["field", str(transform), str(fields / "case01" / "DVF.nii.gz"), "--like", like]) == 0
    row = scored("lung_ct", fields)["rows"]["case01"]
    assert row["error"] is None
    assert row["landmarks"]["tre"]["count"] == 51
    assert row["landmarks"]["tre"]["mean"] == row["metrics"]["tre"] == pytest.approx(1.58758, abs=5e-4)
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
