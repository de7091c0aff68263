"""A folder of fields becomes rows, a field that cannot be scored among them."""

import json

import numpy as np
import pytest

import fidopt
from fidopt import corpus
from fidopt.errors import DescriptorError, MissingError, UsageError
from fidopt.images.nifti import write_field
from fidopt.resources import packaged_share
from fidopt.results import read_rows
from fidopt.scoring import submission
from fidopt.scoring.submission import score, score_fields

pytest.importorskip("konfai", reason="KonfAI is not installed")

SHIFT = (3.0, -4.0, 2.0)


@pytest.fixture
def dataset(make_case, roots):
    make_case(shift=SHIFT)
    make_case(shift=SHIFT, name="case02")
    return corpus.dataset("tiny", roots)


@pytest.fixture
def fields(tmp_path, grids):
    """Return a folder with the right field of one case, and a field with one bad value for the other."""
    grid = grids()[0]
    vectors = np.empty((3, *grid.shape), dtype=np.float32)
    vectors[:] = np.array(SHIFT).reshape(3, 1, 1, 1)
    folder = tmp_path / "fields"
    for case in ("case01", "case02"):
        (folder / case).mkdir(parents=True)
        if case == "case02":
            vectors[0, 1, 2, 3] = np.nan
        write_field(folder / case / "DVF.nii.gz", vectors, grid)
    return folder


def test_a_good_field_and_a_bad_one_are_two_rows(dataset, fields, roots):
    said: list[str] = []
    scored = score_fields("mine", dataset, fields=fields, roots=roots, machine="here", say=said.append)
    rows = read_rows(roots.results / "here" / "mine" / "tiny.json")
    assert rows is not None
    good, bad = rows.rows["case01"], rows.rows["case02"]
    assert good.error is None
    assert good.metrics["dice"] > 0.8
    assert (good.time_s, good.peak_ram_mib) == (None, None)
    assert bad.error is not None
    assert bad.error.stage == "field"
    assert "(3, 2, 1)" in bad.error.reason
    assert bad.metrics == score(dataset, "case02", None, roots=roots).metrics
    assert any("case02" in message and "unregistered" in message for message in said)
    assert [one.case for one in scored.cases] == ["case01", "case02"]


def test_a_field_with_its_sign_the_wrong_way_round_is_said_to_be_worse_than_none(dataset, fields, roots, grids):
    grid = grids()[0]
    vectors = np.broadcast_to(-np.array(SHIFT, dtype=np.float32).reshape(3, 1, 1, 1), (3, *grid.shape))
    write_field(fields / "case02" / "DVF.nii.gz", vectors, grid)
    told = {"fields": fields, "roots": roots, "machine": "here"}
    said: list[str] = []
    score_fields("mine", dataset, say=said.append, **told)
    (message,) = [one for one in said if "worse than no registration" in one]
    assert message.startswith("tiny/case02: worse than no registration in dice (0")
    assert "sign, frame or axes" in message
    said.clear()
    score_fields("identity", dataset, say=said.append, **told)
    assert not [one for one in said if "worse than" in one]


def test_rows_of_identity_on_the_same_files_spare_scoring_the_pair_again(dataset, fields, roots, grids, monkeypatch):
    grid = grids()[0]
    for case in ("case01", "case02"):
        vectors = np.full((3, *grid.shape), 50.0, np.float32)
        write_field(fields / case / "DVF.nii.gz", vectors * (case == "case01"), grid)
    told = {"fields": fields, "roots": roots, "machine": "here"}
    score_fields("identity", dataset, ["case02"], **told)
    real, asked = submission.score_case, []
    monkeypatch.setattr(
        submission, "score_case", lambda case, field, **more: asked.append(field) or real(case, field, **more)
    )
    said: list[str] = []
    score_fields("mine", dataset, say=said.append, **told)
    assert [field is None for field in asked] == [False, True, False]
    assert [one.split(":")[0] for one in said if "worse than" in one] == ["tiny/case01"]


def test_the_error_of_every_landmark_is_kept_with_the_row(make_case, fields, roots, grids):
    random = np.random.default_rng(0)
    fixed = grids()[0].world(random.uniform(3, 12, (7, 3)))
    errors = np.arange(7.0)
    moving = fixed + np.array(SHIFT) + np.stack([errors, 0 * errors, 0 * errors], axis=1)
    for name in ("case01", "case02"):
        make_case(shift=SHIFT, points={"fixed_landmarks": fixed, "moving_landmarks": moving}, name=name)
    dataset = corpus.dataset("tiny", roots)
    line = score_fields("mine", dataset, fields=fields, roots=roots, machine="here").line
    rows = read_rows(line.rows)
    assert rows is not None
    assert rows.rows["case01"].landmarks["tre"] == pytest.approx(errors.tolist(), abs=1e-5)
    # What stands for the field that cannot be scored is the unregistered pair's.
    apart = np.linalg.norm(moving - fixed, axis=1)
    assert rows.rows["case02"].landmarks["tre"] == pytest.approx(apart.tolist(), abs=1e-5)
    assert "regions" not in line.rows.read_text()


def test_the_resolved_evaluation_is_kept_beside_the_rows(dataset, fields, roots):
    line = score_fields("mine", dataset, ["case01"], fields=fields, roots=roots, machine="here").line
    text = line.evaluation.read_text()
    assert "fidopt:scoring:criteria:HD95" in text
    assert "images:omezarr" in text
    assert str(roots.results.parent) not in text


def test_scoring_again_writes_the_same_bytes(dataset, fields, roots):
    files = []
    for _ in range(2):
        line = score_fields("mine", dataset, fields=fields, roots=roots, machine="here").line
        files.append((line.rows.read_bytes(), line.evaluation.read_bytes()))
    assert files[0] == files[1]


def test_a_case_without_a_field_counts_as_the_unregistered_pair(dataset, fields, roots):
    (fields / "case02" / "DVF.nii.gz").unlink()
    cases = score_fields("mine", dataset, fields=fields, roots=roots, machine="here").cases
    assert cases[0].row.error is None
    assert cases[1].row.error is not None
    assert "no field" in cases[1].row.error.reason


def test_a_folder_without_any_field_is_refused_and_nothing_is_written(dataset, roots, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no field of tiny"):
        score_fields("mine", dataset, fields=tmp_path / "empty", roots=roots, machine="here")
    assert not (roots.results / "here" / "mine").exists()


def test_fields_of_another_task_are_refused_before_they_are_looked_for(dataset, roots, tmp_path):
    other = dataset.model_copy(update={"task": "synthesis"})
    with pytest.raises(UsageError, match="tiny is a synthesis dataset: displacement fields score registration alone"):
        score_fields("mine", other, fields=tmp_path / "none", roots=roots, machine="here")


def test_rows_that_cannot_be_read_are_refused_before_anything_is_scored(dataset, fields, roots, monkeypatch):
    path = roots.results / "here" / "mine" / "tiny.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"method": "mine"')
    monkeypatch.setattr("fidopt.scoring.submission.score_case", lambda *_, **__: pytest.fail("it was scored"))
    with pytest.raises(DescriptorError, match="is not JSON"):
        score_fields("mine", dataset, fields=fields, roots=roots, machine="here")
    assert path.read_text() == '{"method": "mine"'


@pytest.mark.parametrize("name", ["../mine", "a b", "", "a@", ".x"])
def test_a_name_that_is_not_one_is_refused(dataset, fields, roots, name):
    with pytest.raises(UsageError, match="cannot name a line"):
        score_fields(name, dataset, fields=fields, roots=roots, machine="here")


def test_cases_that_are_not_built_are_refused_with_what_to_do(make_case, fields, roots):
    make_case()
    with pytest.raises(MissingError, match="fidopt build tiny case02"):
        score_fields("mine", corpus.dataset("tiny", roots), fields=fields, roots=roots, machine="here")


def test_one_field_is_scored_from_python(dataset, fields, roots):
    assert fidopt.score is score
    row = fidopt.score("tiny", "case01", fields / "case01" / "DVF.nii.gz", roots=roots)
    assert row.error is None
    assert row.metrics["dice"] > 0.8
    bad = fidopt.score("tiny", "case02", str(fields / "case02" / "DVF.nii.gz"), roots=roots)
    assert bad.error is not None
    json.dumps(bad.model_dump(mode="json"), allow_nan=False)


def test_scoring_without_konfai_says_what_to_install(dataset, fields, roots, monkeypatch):
    monkeypatch.setattr("fidopt.scoring.evaluator.importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"konfai and torch .* pip install 'fidopt\[score\]'"):
        score_fields("mine", dataset, fields=fields, roots=roots, machine="here")


def test_a_scored_case_is_drawn_and_a_failed_one_is_not(dataset, fields, roots):
    drawn: list[str] = []
    score_fields(
        "mine",
        dataset,
        fields=fields,
        roots=roots,
        machine="here",
        draw=lambda case, field, folder, **_: drawn.append(f"{case.name} {folder.relative_to(roots.results)}"),
    )
    assert drawn == ["case01 here/mine/tiny.previews/case01"]


def test_the_pictures_of_a_case_that_fails_now_are_taken_away(dataset, fields, roots):
    old = roots.results / "here" / "mine" / "tiny.previews" / "case02" / "after.png"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"of another field")
    score_fields("mine", dataset, fields=fields, roots=roots, machine="here")
    assert not old.parent.exists()


def test_a_users_own_evaluation_comes_first(dataset, fields, roots):
    text = (packaged_share() / "evaluation" / "registration.yml").read_text()
    own = roots.share[0] / "evaluation" / "registration.yml"
    own.parent.mkdir()
    own.write_text(text.replace("margin: 2", "margin: 3"))
    line = score_fields("mine", dataset, ["case01"], fields=fields, roots=roots, machine="here").line
    assert "margin: 3" in line.evaluation.read_text()
