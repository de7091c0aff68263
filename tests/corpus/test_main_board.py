"""The three checks of a main leaderboard, with numbers counted by hand."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import nibabel
import numpy as np
import pytest

from fidopt import building, corpus, results
from fidopt.building import apart
from fidopt.building.density import Density
from fidopt.building.main_board import Unregistered, dense, findings, people, room
from fidopt.building.recipe import provide_recipe
from fidopt.descriptors.base import parse
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import MissingError, UsageError
from fidopt.results import Line

TRUTH = {"grade": "expert", "by": "b", "checked": "c", "limits": "l", "labels": {"3": "bright"}}
ENTRY = {"source": "tests", "learn2reg": None, "subjects": ["a", "b"]}


@pytest.fixture
def dataset(described):
    """Return a function that reads a descriptor of so many cases, with changes."""

    def make(count=12, **changes):
        source = {"url": "u", "files": {"f": "sha256:" + "0" * 64}}
        cases = {f"case{n:02}": ENTRY for n in range(count)}
        return parse(Dataset, json.dumps(described(source=source, cases=cases, truth=TRUTH) | changes), where="d")

    return make


def truth(**changes):
    return {"truth": TRUTH | changes}


@pytest.mark.parametrize(
    ("grade", "passed"),
    [("expert", True), ("semi-automatic", True), ("automatic", False), ("synthetic", False), ("provider", False)],
)
def test_people_made_or_verified_what_is_graded_expert_or_semi_automatic(dataset, grade, passed):
    found = people(dataset(**truth(grade=grade)))
    assert found.passed is passed
    assert found.said.startswith(f"the truth is graded {grade}: people ")
    assert found.said.endswith("on both images")


def test_a_grade_that_nobody_confirmed_is_open(dataset):
    assert people(dataset(to_fill=["truth.grade"])).passed is None


def test_the_target_of_a_synthesis_is_an_image_somebody_acquired(dataset):
    changes = {"task": "synthesis", "modalities": {"source": "mr", "target": "ct"}}
    found = people(dataset(**changes, **truth(grade="provider", labels={}, dynamic_range=100.0)))
    assert (found.passed, "people acquired the target" in found.said) == (True, True)
    assert not people(dataset(**changes, **truth(grade="synthetic", labels={}, dynamic_range=100.0))).passed


def test_the_structures_of_a_segmentation_are_scored_where_they_are(dataset):
    changes = {"task": "segmentation", "modalities": {"image": "mr"}}
    found = dense(dataset(10, **changes), [])
    assert (found.passed, found.said) == (True, "10 test cases, each structure where it is scored")
    assert not dense(dataset(9, **changes), []).passed


def case(pairs=None, covered=None):
    return Density("one", pairs, covered, None if covered is None else 4)


@pytest.mark.parametrize(
    ("count", "found", "passed"),
    [
        (10, [case(10)] * 10, True),
        (9, [case(10)] * 9, False),
        (10, [case(9)] * 10, False),
        # Half of the cases have ten pairs: the median of 4 and 10 is 7.
        (10, [case(4)] * 5 + [case(10)] * 5, False),
        (10, [case(4)] * 4 + [case(10)] * 6, True),
        # Cases without any count as having none.
        (10, [case(None)] * 6 + [case(100)] * 4, False),
        (10, [case(covered=0.34)] * 10, True),
        (10, [case(covered=0.32)] * 10, False),
        (10, [case(4, 0.5)] * 10, True),
        (10, [case(40, 0.01)] * 10, True),
        (10, [case()] * 10, False),
    ],
)
def test_a_dense_truth_has_ten_cases_with_ten_pairs_or_labels_over_a_third_of_the_body(dataset, count, found, passed):
    assert dense(dataset(count), found).passed is passed


def test_the_numbers_of_a_dense_truth_are_said(dataset):
    found = dense(dataset(10), [case(12, 0.25)] * 10)
    assert found.said == (
        "10 test cases; 12 landmark pairs in the median case (10 are needed); the labels' box covers 25.0% of the "
        "body in the median case (33% are needed)"
    )
    assert found.figures == {"cases": 10, "pairs": 12.0, "covered": 0.25, "structures": 4.0}


def test_before_a_dataset_is_built_too_few_cases_are_known_to_be_too_few(dataset):
    assert dense(dataset(9), []).passed is False
    assert dense(dataset(10), []).passed is None
    open_cases = dataset(0, to_fill=["cases"], draw={"seed": 1, "count": 10})
    assert dense(open_cases, []).said.startswith("10 test cases; ")
    assert dense(dataset(0, to_fill=["cases"]), []).passed is None


@pytest.mark.parametrize(
    ("means", "changes", "passed"),
    [
        ({"dice": 0.79}, {}, True),
        ({"dice": 0.8}, {}, False),
        ({"dice": 0.9, "tre": 2.9}, {"error_mm": 1.0}, False),
        ({"dice": 0.9, "tre": 3.0}, {"error_mm": 1.0}, True),
        ({"tre": 3.0}, {"error_mm": 1.1}, False),
        # Half the voxel's diagonal, 2, stands for an error that is not known.
        ({"tre": 6.1}, {}, True),
        ({"tre": 5.9}, {}, False),
    ],
)
def test_room_is_a_dice_under_0_8_or_an_error_three_times_the_truth_s_own(dataset, means, changes, passed):
    assert room(dataset(**truth(**changes)), Unregistered(means, "made", 2.0)).passed is passed


def test_a_known_deformation_is_exact_so_that_any_error_leaves_room(dataset):
    made = dataset(warp=True, **truth(grade="synthetic"))
    found = room(made, Unregistered({"tre": 0.5}, "made", 2.0))
    assert found.passed
    assert "a truth that is exact" in found.said


def test_an_error_in_millimetres_is_told_in_the_dataset_s_unit(dataset):
    made = dataset(dimension=2, unit="um", **truth(error_mm=0.01))
    found = room(made, Unregistered({"tre": 25.0}, "made", 0.5))
    assert found.figures["error"] == pytest.approx(10.0)
    assert found.said == (
        "unregistered (made) the pairs have a landmark error of 25 um, 2.5 times the truth's own error of 10 "
        "(3 are needed)"
    )
    assert found.passed is False


def test_what_older_builds_left_is_the_line_of_what_is_not_built(dataset, tmp_path, make):
    _, roots = make({"one-fixed.nii.gz": b""})
    left = {"dice": [0.26, 0.16, 0.35], "tre": [6.0, 2.0, 9.0]}
    legacy = {"transform": "rigid", "from": "labels", "left": left, "note": None}
    made = dataset(alignment={"mode": "as-delivered", "legacy": legacy}, unranked=["tre"])
    found = findings(made, roots)[2]
    assert (found.passed, found.figures["dice"], found.figures["tre"]) == (True, 0.26, None)
    assert "as recorded of an older build's alignment" in found.said
    assert findings(dataset(), roots)[2].passed is None


def volume(voxels):
    image = nibabel.Nifti1Image(voxels, np.diag([1.0, 1.0, 1.0, 1.0]))
    return gzip.compress(image.to_bytes(), mtime=0)


@pytest.fixture
def built(make):
    """A dataset of ten cases whose labels overlap by half, with twelve pairs two voxels apart."""
    files = {}
    for n in range(10):
        for side, shift in (("fixed", 0), ("moving", 4)):
            image = np.zeros((24, 20, 20), np.int16)
            image[4 + shift : 12 + shift, 4:16, 4:16] = 400 + n
            files[f"c{n}-{side}.nii.gz"] = volume(image)
            files[f"c{n}-truth-{side}_labels.nii.gz"] = volume((image > 0).astype(np.uint8) * 3)
            points = "".join(f"{-5 - shift / 2},{-4 - k / 2},8\n" for k in range(12))
            files[f"c{n}-truth-{side}_landmarks.csv"] = f"x,y,z\n{points}".encode()
    dataset, roots = make(files, truth=TRUTH, modalities={"fixed": "mr", "moving": "mr"})
    building.build(dataset, roots=roots)
    return dataset, roots


def test_the_unregistered_pairs_are_scored_as_the_scorer_scores_them(built):
    pytest.importorskip("konfai")
    dataset, roots = built
    found = {one.name: one for one in findings(dataset, roots)}
    assert [one.passed for one in found.values()] == [True, True, True]
    assert found["room"].figures["dice"] == pytest.approx(0.5)
    assert found["room"].figures["tre"] == pytest.approx(2.0)
    assert found["room"].figures["error"] == pytest.approx(3**0.5 / 2)
    assert found["dense"].figures["pairs"] == 12
    assert found["dense"].figures["covered"] > 0.9
    assert "scored as the field that moves nothing" in found["room"].said


def test_rows_of_the_zero_field_are_taken_where_they_are_of_the_same_files(built, tmp_path, monkeypatch):
    dataset, roots = built
    roots = type(roots)(**(vars(roots) | {"results": tmp_path / "results"}))
    machine = results.machine_here(roots, name="here")
    line = Line(roots.results, machine.name, "identity", "tiny")
    digest = results.corpus_digest(dataset, roots)
    monkeypatch.setattr("fidopt.scoring.evaluation.score_case", None)
    for name in dataset.cases:
        results.add_row(line, name, results.new_row({"dice": 0.9, "tre": 1.0}), checksums=digest)
    found = findings(dataset, roots)[2]
    assert found.passed is False
    assert "in the rows of identity" in found.said
    assert found.figures["dice"] == pytest.approx(0.9)
    script = corpus.dataset_folder("tiny", roots) / "prepare.py"
    text = script.read_text()
    script.write_text(text + "# changed")
    with pytest.raises(MissingError, match=r"tiny/c0 was built from other inputs .*: fidopt build tiny c0 --overwrite"):
        findings(dataset, roots)
    script.write_text(text)
    # Rows of other files say nothing of these.
    points = corpus.case(dataset, "c0", roots).truth / "fixed_landmarks.csv"
    points.write_text(points.read_text() + "-5.0,-4.0,8.5\n")
    with pytest.raises(TypeError, match="not callable"):
        findings(dataset, roots)


def test_the_reasons_of_a_dataset_that_stands_apart_are_named(make, dataset):
    _, roots = make({"one-fixed.nii.gz": b""}, recipe=None)
    made = dataset(9, registration="rigid", spdx="CC-BY-NC-4.0", **truth(grade="automatic"))
    said = apart.reasons(made, findings(made, roots), roots)
    assert said == [
        "it misses people and dense",
        "its licence is no open licence that allows commercial use (CC-BY-NC-4.0)",
        "a rigid object is registered, whose images no alignment brings together: a track of its own",
    ]


def test_a_deformation_that_everybody_or_one_machine_alone_can_draw_again_is_a_reason(make, dataset, tmp_path):
    _, roots = make({"one-fixed.nii.gz": b""})
    roots = replace(roots, private=tmp_path / "private")
    made = dataset(name="tiny", warp=True, **truth(grade="synthetic"))
    assert apart.reasons(made, [], roots) == []
    provide_recipe(made, roots)
    own = "its known deformation is drawn from a seed of this machine's own: nobody else's rows compare"
    assert apart.reasons(made, [], roots) == [own]
    (corpus.dataset_folder("tiny", roots) / "warp.json").write_text("{}")
    public = "its known deformation is drawn from a seed that everybody can read"
    assert apart.reasons(made, [], roots) == [public]


def test_a_reason_that_a_person_wrote_stays_while_the_same_checks_are_missed(dataset):
    found = (people(dataset(9)), dense(dataset(9), [case(20)] * 9), room(dataset(9), Unregistered({"dice": 0.5}, "x")))
    fresh = apart.checks(dataset(9), found)
    assert (fresh.people, fresh.dense, fresh.room) == (True, False, True)
    assert fresh.reason.startswith("9 test cases, 10 are needed; 20 landmark pairs")
    before = {"people": True, "dense": False, "room": True, "reason": "its provider has nine", "date": "2026-10-11"}
    assert apart.checks(dataset(9, checks=before), found).reason == "its provider has nine"
    other = before | {"dense": True, "room": False}
    assert apart.checks(dataset(9, checks=other), found).reason == fresh.reason


def test_an_open_check_is_not_written(dataset):
    found = (people(dataset()), dense(dataset(), []), room(dataset(), None))
    with pytest.raises(UsageError, match=r"nothing is written before every check can be told \(dense: 12 test cases"):
        apart.checks(dataset(), found)
