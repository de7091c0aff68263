"""The shared faults all the way: built into a case, scored by command, read from what ``--json`` prints."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from blocks.image import grid_of, image_of
from fidopt.cli import main
from fidopt.images.landmarks import write_landmarks
from fidopt.images.nifti import write_field, write_nifti
from fidopt.images.readers import read_image

pytest.importorskip("konfai", reason="KonfAI is not installed")

SIDES = ("fixed", "moving")
#: Of a dataset whose archive holds its one case as it is to be built.
PREPARE = "import shutil, sys\nsource, target, case = sys.argv[1:]\nshutil.copytree(source, f'{target}/{case}')\n"


@pytest.fixture
def case(tmp_path, monkeypatch) -> Callable[[Mapping[str, Path]], None]:
    """Return a function that builds a dataset ``made`` of one case from files by their place in the case."""
    monkeypatch.chdir(tmp_path)
    for variable in ("SHARE", "CORPUS", "ARCHIVES", "RESULTS"):
        monkeypatch.setenv(f"FIDOPT_{variable}", str(tmp_path / variable.lower()))

    def _case(files: Mapping[str, Path]) -> None:
        sums = {}
        for place, path in files.items():
            copy = tmp_path / "archives" / "made" / place
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            sums[place] = "sha256:" + hashlib.sha256(copy.read_bytes()).hexdigest()
        folder = tmp_path / "share" / "datasets" / "made"
        folder.mkdir(parents=True)
        (folder / "prepare.py").write_text(PREPARE)
        truth = {"grade": "expert", "by": "-", "checked": "-", "limits": "-", "labels": {"1": "slab"}}
        document = {
            "name": "made",
            "title": "Made",
            "dimension": 3,
            "unit": "mm",
            "modalities": {"fixed": "ct", "moving": "ct"},
            "spdx": "CC0-1.0",
            "citation": "-",
            "source": {"url": "-", "files": sums},
            "cases": {"one": {"source": "-", "learn2reg": "0001_0001", "subjects": ["a", "a"]}},
            "truth": truth,
        }
        (folder / "dataset.json").write_text(json.dumps(document))
        assert main(["build", "made"]) == 0

    return _case


@pytest.fixture
def score(tmp_path, capsys) -> Callable[..., dict]:
    """Return a function that scores one field on the case, and gives its row."""

    def _score(field: Path, *words: str) -> dict:
        (tmp_path / "fields" / "one").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(field, tmp_path / "fields" / "one" / "DVF.nii.gz")
        capsys.readouterr()
        assert main(["score", "it", "made", "--fields", "fields", "--machine", "here", "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)["rows"]["one"]

    return _score


def on_the_grid_of(field: Path, folder: Path) -> dict[str, Path]:
    """Return an image on a field's grid as both sides, and the voxel (2, 2, 2) as their one landmark pair."""
    grid = grid_of(read_image(field))
    voxels = np.arange(np.prod(grid.shape), dtype=np.int16).reshape(grid.shape)
    write_nifti(folder / "image.nii.gz", image_of(voxels, grid))
    write_landmarks(folder / "points.csv", grid.world([[2.0, 2.0, 2.0]]))
    points = {f"truth/{side}_landmarks.csv": folder / "points.csv" for side in SIDES}
    return {f"{side}.nii.gz": folder / "image.nii.gz" for side in SIDES} | points


def test_a_slab_moved_by_three_slices_is_fifteen_millimetres_away(case, score, shared_case, tmp_path):
    first, second = shared_case("d6_a.nii.gz"), shared_case("d6_b.nii.gz")
    truth = {"truth/fixed_labels.nii.gz": first, "truth/moving_labels.nii.gz": second}
    case({f"{side}.nii.gz": first for side in SIDES} | truth)
    grid = grid_of(read_image(first))
    write_field(tmp_path / "zero.nii.gz", np.zeros((3, *grid.shape), np.float32), grid)
    row = score(tmp_path / "zero.nii.gz")
    assert row["metrics"]["hd95"] == pytest.approx(15.0, abs=1e-5)
    assert row["metrics"]["dice"] == 0.0


@pytest.mark.parametrize("name", ["d4_flipped", "d4_oblique"])
def test_a_linear_field_on_a_hard_grid_is_regular(case, score, shared_case, tmp_path, name):
    field = shared_case(f"{name}.nii.gz")
    case(on_the_grid_of(field, tmp_path))
    metrics = score(field)["metrics"]
    assert metrics["sdlogj"] == pytest.approx(0.0, abs=1e-6)
    assert metrics["folds"] == 0.0


def test_a_field_is_read_by_its_intent_or_not_at_all(case, score, shared_case, tmp_path):
    right = shared_case("d2_vector.nii.gz")
    case(on_the_grid_of(right, tmp_path))
    # (1, 2, 3) mm; as voxels of 2 mm, on axes that are the world's but for their signs, twice as far.
    assert score(right)["metrics"]["tre"] == pytest.approx(14**0.5)
    for name in ("d2_noint", "d2_l2r_4d"):
        field = shared_case(f"{name}.nii.gz")
        assert score(field, "--voxels")["metrics"]["tre"] == pytest.approx(2 * 14**0.5)
        reason = score(field)["error"]["reason"]
        assert "its shape is (4, 5, 6," in reason
        assert "--voxels" in reason
    negated = score(shared_case("d2_dispvect.nii.gz"))
    assert "1007 (vector) is expected" in negated["error"]["reason"]
    assert negated["metrics"]["tre"] == 0.0


@pytest.mark.parametrize("name", ["d9_nan", "d9_inf"])
def test_a_field_with_one_voxel_that_is_no_number_counts_as_unregistered(case, score, shared_case, tmp_path, name):
    field = shared_case(f"{name}.nii.gz")
    case(on_the_grid_of(field, tmp_path))
    row = score(field)
    assert "1 voxel is not finite in the field, the first at index (3, 3, 3)" in row["error"]["reason"]
    assert row["metrics"]["tre"] == 0.0
