from __future__ import annotations

import json

import numpy as np
import pytest

from fidopt import results
from fidopt.errors import MissingError, UsageError
from fidopt.images.nifti import write_field
from fidopt.runner import previews
from fidopt.runner.session import run_dataset, threads_for

#: Copies the field its settings, or its folder, name.
GIVE = 'cp "$(dirname "$0")/field.nii.gz" "$3/DVF.nii.gz"'


@pytest.fixture
def pictures():
    """Asked for by a test that wants the real pictures."""


@pytest.fixture(autouse=True)
def _quick_pictures(request, monkeypatch):
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(previews, "draw", lambda case, field, folder: folder.mkdir(parents=True, exist_ok=True))


def add_method(world, name="m", run=GIVE, *, value=2.0, **changes):
    folder = world.method(name, run, **changes)
    grid = world.case("one").fixed_grid()
    vectors = np.random.default_rng(0).random((3, *grid.shape), dtype=np.float32)
    vectors[0] = value
    write_field(folder / "field.nii.gz", vectors, grid)
    return folder


def run(world, scorer, cases=(), *, name="m", **options):
    return run_dataset(name, "toy", cases, roots=world.roots, say=world.say, scorer=scorer, **options)


def read(world, name="m"):
    (path,) = world.roots.results.glob(f"*/{name}/toy.json")
    return json.loads(path.read_text())


def test_a_method_goes_from_nothing_to_rows(world, scorer, pictures):
    add_method(world)
    finished = run(world, scorer)
    assert (finished.done, finished.failed, finished.kept) == (["one", "two", "three"], [], [])
    document = read(world)
    assert list(document) == sorted(document)
    assert document["schema"] == 1
    row = document["rows"]["two"]
    assert row["metrics"] == {"tre": 2.0, "dice": None}
    assert row["reasons"] == {"dice": "there are no labels"}
    assert (row["threads"], row["method_version"], row["peak_gpu_mib"]) == (1, "1", None)
    assert row["time_s"] > 0
    assert "error" not in row
    assert finished.line.evaluation.read_text() == "Evaluator: {}\n"
    pictures = {path.name for path in finished.line.previews("two").iterdir()}
    assert pictures == {"before.png", "after.png", "warped.png", "contours.png", "jacobian.png"}
    assert any("making its environment" in message for message in world.told)
    assert any("machine.json was made" in message for message in world.told)


def test_the_second_run_does_nothing(world, scorer):
    add_method(world)
    run(world, scorer, ["one"])
    before = read(world)
    world.told.clear()
    finished = run(world, scorer, ["one"])
    assert (finished.done, finished.kept) == ([], ["one"])
    assert world.told == []
    assert read(world) == before


def test_it_takes_up_where_it_stopped(world, scorer):
    add_method(world)
    run(world, scorer, ["two"])
    finished = run(world, scorer)
    assert (finished.done, finished.kept) == (["one", "three"], ["two"])


def test_a_case_that_fails_stops_no_other_and_counts_as_unregistered(world, scorer):
    # The second voxel of the ramp says which case it is.
    fail = f'gzip -dc "$1" | tail -c +353 | head -c 2 | od -An -tu2 | grep -qw 1 && {{ echo no luck; exit 5; }}; {GIVE}'
    add_method(world, run=fail)
    finished = run(world, scorer)
    assert (finished.done, finished.failed) == (["one", "two", "three"], ["two"])
    row = read(world)["rows"]["two"]
    assert row["error"] == {"stage": "run", "reason": "run.sh ended with exit code 5", "log_tail": "no luck"}
    assert row["metrics"]["tre"] == 9.0
    assert ("two", False) in scorer.scored
    assert "toy/two: failed (run): run.sh ended with exit code 5; the last it printed: no luck" in world.told


@pytest.mark.parametrize(
    ("run_sh", "said"),
    [
        ('echo rubbish > "$3/DVF.nii.gz"', "DVF.nii.gz"),
        ('head -c 200 "$(dirname "$0")/field.nii.gz" > "$3/DVF.nii.gz"', "DVF.nii.gz"),
        ('cp "$1" "$3/DVF.nii.gz"', "DVF.nii.gz"),
        ('mkdir "$3/DVF.nii.gz"', "DVF.nii.gz"),
    ],
    ids=["rubbish", "cut short", "an image instead", "a folder"],
)
def test_a_field_that_is_none_is_a_failed_case(world, scorer, run_sh, said):
    add_method(world, run=f"echo written; {run_sh}", value=1.5)
    run(world, scorer, ["one"])
    row = read(world)["rows"]["one"]
    assert row["error"]["stage"] == "field"
    assert said in row["error"]["reason"]
    assert row["error"]["log_tail"] == "written"
    assert row["metrics"]["tre"] == 9.0


def test_a_field_that_leaves_a_pair_worse_than_it_was_is_said_so(world, scorer):
    add_method(world, value=2.0)
    add_method(world, "backwards", value=12.0)
    run(world, scorer, ["one"])
    assert not [message for message in world.told if "worse" in message]
    run(world, scorer, ["one"], name="backwards")
    (message,) = [message for message in world.told if "worse" in message]
    assert message.startswith("toy/one: worse than no registration in tre (12, not 9); a field that should be better")


def test_a_scorer_that_breaks_is_a_failed_case_too(world, scorer):
    scorer.broken = "out of luck"
    add_method(world)
    run(world, scorer, ["one", "two"])
    rows = read(world)["rows"]
    assert rows["one"]["error"]["stage"] == "score"
    assert rows["one"]["error"]["reason"] == "RuntimeError: out of luck"
    assert rows["two"]["metrics"]["tre"] == 9.0


def test_failed_cases_run_again_when_asked(world, scorer):
    folder = add_method(world, run="exit 1")
    run(world, scorer, ["one"])
    add_method(world)
    run(world, scorer, ["two"])
    assert run(world, scorer).done == ["three"]
    finished = run(world, scorer, again="failed")
    assert (finished.done, finished.kept) == (["one"], ["two", "three"])
    assert "error" not in read(world)["rows"]["one"]
    assert run(world, scorer, again="all").done == ["one", "two", "three"]
    assert folder.is_dir()


def test_a_case_that_fails_now_keeps_no_pictures_of_before(world, scorer):
    add_method(world)
    finished = run(world, scorer, ["one"])
    assert finished.line.previews("one").is_dir()
    add_method(world, run="exit 1")
    run(world, scorer, ["one"], again="all")
    assert not finished.line.previews("one").exists()


def test_a_row_of_another_version_is_run_again(world, scorer):
    add_method(world)
    run(world, scorer, ["one"])
    add_method(world, version="2")
    assert run(world, scorer, ["one"]).done == ["one"]
    assert read(world)["rows"]["one"]["method_version"] == "2"


def test_rows_of_other_files_are_set_aside(world, scorer, own_corpus):
    own_corpus()
    add_method(world)
    run(world, scorer, ["one"])
    before = read(world)["checksums"]
    (world.case("three").folder / "truth" / "fixed_landmarks.csv").write_text("x,y,z\n1,2,3\n")
    finished = run(world, scorer, ["two"])
    assert finished.done == ["two"]
    assert set(read(world)["rows"]) == {"two"}
    assert read(world)["checksums"] != before
    kept = finished.line.rows.with_name(f"toy.{before[7:15]}.json.old")
    assert set(json.loads(kept.read_text())["rows"]) == {"one"}
    assert any("scored on other files" in message for message in world.told)


def test_the_same_rows_are_the_same_bytes(world, scorer):
    add_method(world)
    finished = run(world, scorer, ["one"])
    row = results.read_rows(finished.line.rows).rows["one"]
    text = finished.line.rows.read_bytes()
    results.add_row(finished.line, "one", row, checksums=read(world)["checksums"])
    assert finished.line.rows.read_bytes() == text


def test_a_variant_has_rows_of_its_own(world, scorer):
    add_method(world, variants={"fine": {"source": "tests", "settings": {"step": 2}}})
    run(world, scorer, ["one"], name="m@fine")
    assert read(world, "m@fine")["method"] == "m@fine"


def test_what_cannot_run_is_refused_before_anything_is_made(world, scorer):
    add_method(world, dimensions=[2])
    with pytest.raises(UsageError, match="toy is 3D"):
        run(world, scorer)
    assert not world.roots.environments.exists()
    assert not world.roots.results.exists()


def test_an_environment_that_cannot_be_had_leaves_no_row(world, scorer):
    add_method(world, setup="echo first; echo needs a licence from a shop >&2; exit 3")
    with pytest.raises(MissingError, match="m: its environment could not be made: needs a licence from a shop"):
        run(world, scorer)
    assert list(world.roots.results.glob("*/m/*.json")) == []


def test_a_case_that_is_not_built_names_the_command(world, scorer, own_corpus):
    own_corpus()
    (world.case("two").folder).rename(world.roots.corpus / "elsewhere")
    add_method(world)
    with pytest.raises(MissingError, match="fidopt build toy two"):
        run(world, scorer)


def test_progress_ends_at_the_number_of_cases(world, scorer):
    add_method(world)
    steps = []
    run(world, scorer, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_threads_are_the_methods_own_but_never_more_than_the_machine_states(world):
    from fidopt.runner import methods

    here = results.describe("here", hostnames=()).model_copy(update={"threads": 4})
    for asked, given in ((None, 4), (2, 2), (64, 4)):
        world.method("m", "true", threads=asked)
        assert threads_for(methods.find("m", world.roots).method, here) == given
