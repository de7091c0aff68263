"""The real scorer on a case whose landmarks know the motion: only the field as written may beat the zero field."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blocks.transforms import DisplacementField
from fidopt.check import real
from fidopt.check.readings import Pair, Reading
from fidopt.check.scenes import scenes
from fidopt.check.synthetic import build_case
from fidopt.cli import main
from fidopt.corpus import Case
from fidopt.images.landmarks import write_landmarks
from fidopt.images.nifti import write_field

SCENE = next(scene for scene in scenes((3,)) if scene.name == "one_grid")


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Case:
    """Return the pair with landmarks in it."""
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    built = build_case(SCENE, "ct", tmp_path_factory.mktemp("corpus") / "check" / "one_grid")
    points = SCENE.pair().points[::900]
    built.truth.mkdir()
    write_landmarks(built.truth / "fixed_landmarks.csv", points)
    write_landmarks(built.truth / "moving_landmarks.csv", points + np.array(SCENE.motion))
    return built


def field(motion) -> DisplacementField:
    vectors = np.empty((3, *SCENE.fixed.shape), dtype=np.float32)
    vectors[:] = np.reshape(motion, (3, 1, 1, 1))
    return DisplacementField(SCENE.fixed, vectors)


def test_a_right_field_alone_beats_the_zero_field(case, tmp_path):
    verdict = real.judge_on_case(field(SCENE.motion), case, workdir=tmp_path)
    assert verdict.metric == "tre"
    assert verdict.zero == pytest.approx(np.linalg.norm(SCENE.motion), abs=1e-4)
    assert verdict.written == pytest.approx(0, abs=1e-4)
    # A translation is the same in mirrored voxels, and the wrong sign of its smallest part costs the least.
    assert {words for words, value in verdict.readings.items() if value < verdict.zero} >= {"as written"}
    assert "with every sign reversed" in " ".join(verdict.readings)
    assert verdict.readings["with z negated"] == pytest.approx(3.2, abs=1e-4)
    assert not verdict.passed
    assert "this case does not tell the two apart" in verdict.said


def test_a_field_of_another_convention_is_told_which(case, tmp_path):
    pair = Pair(SCENE.fixed, SCENE.fixed, np.zeros((1, 3)))
    wrong = Reading((-1, -1, 1), (0, 1, 2)).numbers(np.array([SCENE.motion]), pair)[0]
    verdict = real.judge_on_case(field(wrong), case, workdir=tmp_path)
    assert not verdict.passed
    assert verdict.written > verdict.zero
    assert "read with x and y negated (RAS, not LPS) it beats the zero field instead" in verdict.said


def test_readings_that_a_pair_does_not_tell_apart_are_left_out():
    still = dict(real.readings_of(field((1.0, 2.0, 0.0)), SCENE.fixed))
    assert "with z negated" not in still
    assert "with x negated" in still
    assert not any("mirrored" in words for words in still)
    ramp = field((1.0, 2.0, 3.0))
    vectors = np.array(ramp.vectors)
    vectors[0] *= np.linspace(0, 2, vectors.shape[3], dtype=np.float32)
    turned = dict(real.readings_of(DisplacementField(SCENE.fixed, vectors), SCENE.fixed))
    assert "with its voxels mirrored along x of the array" in turned
    assert "with its voxels mirrored along z of the array" not in turned


def test_only_the_field_as_written_passes():
    better = {"as written": 1.0, "with z negated": 4.0, "with x negated": None}
    verdict = real._verdict("tre", 3.0, better, more=False)
    assert verdict.passed
    assert "only the field as written beats the zero field" in verdict.said
    assert not real._verdict("tre", 0.5, better, more=False).passed
    dice = real._verdict("dice", 0.5, {"as written": 0.4, "with z negated": 0.6}, more=True)
    assert not dice.passed
    assert "read with z negated it beats the zero field instead (0.6)" in dice.said


def test_the_command_keeps_what_the_scorer_said(case, tmp_path, monkeypatch, capsys):
    for name in ("FIDOPT_RESULTS", "FIDOPT_MACHINE"):
        monkeypatch.delenv(name, raising=False)
    share = tmp_path / "share"
    monkeypatch.setenv("FIDOPT_SHARE", str(share))
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    monkeypatch.setenv("FIDOPT_CORPUS", str(case.folder.parents[1]))
    folder, described = share / "methods" / "good", share / "datasets" / "check"
    for path in (folder, described):
        path.mkdir(parents=True)
    (described / "dataset.json").write_text(case.dataset.model_dump_json(exclude={"schema_url"}))
    method = {"version": "1", "licence": {"code": "MIT", "weights": None}, "tasks": ["registration"], "threads": 1}
    method |= {"name": "good", "dimensions": [3], "modalities": ["*"], "timeout_s": 60, "reference": "the tests"}
    (folder / "method.json").write_text(json.dumps(method))
    (folder / "setup.sh").write_text('mkdir -p "$FIDOPT_ENV"\n')
    (folder / "run.sh").write_text('cp "$(dirname "$0")/field.nii.gz" "$3/DVF.nii.gz"\n')
    write_field(folder / "field.nii.gz", np.asarray(field(SCENE.motion).vectors), SCENE.fixed)
    monkeypatch.setattr(real, "readings_of", lambda found, moving: iter([("as written", found)]))
    assert main(["check", "good", "--on", "check", "one_grid", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["passed"]
    assert document["case"] == "check/one_grid"
    kept = json.loads(Path(document["file"]).read_text())
    assert kept["lines"]["good"]["cases"]["check/one_grid"]["metric"] == "tre"
