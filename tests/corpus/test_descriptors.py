"""Descriptors are read strictly, and all that is wrong with a file is said at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from fidopt.descriptors.base import dump, load, parse
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import DescriptorError

SHIPPED = sorted((Path(__file__).parents[2] / "datasets").glob("*/dataset.json"))
DIGEST = "sha256:" + "0" * 64
LEGACY = {"transform": "affine", "from": "the labels' centres", "left": {"dice": [0.34, 0.3, 0.38]}, "note": None}


@pytest.fixture
def sound(described):
    return described(source={"url": "u", "files": {"a.mha": DIGEST}})


def problems(document, **changes):
    with pytest.raises(DescriptorError) as caught:
        parse(Dataset, json.dumps(document | changes), where="dataset.json")
    return caught.value.problems


def test_a_sound_descriptor_is_read_whole(sound):
    read = parse(Dataset, json.dumps({"$schema": "dataset.schema.json", **sound}), where="dataset.json")
    assert (read.name, read.dimension, read.warp, read.alignment.mode) == ("tiny", 3, False, "as-delivered")
    assert read.truth.tolerance_mm == 1.0
    assert "$schema" not in json.loads(dump(read))
    assert parse(Dataset, dump(read), where="again") == parse(Dataset, json.dumps(sound), where="dataset.json")


def test_the_file_the_key_and_the_value_are_named(sound, tmp_path, monkeypatch):
    path = tmp_path / "datasets" / "lung_ct" / "dataset.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(sound | {"truth": sound["truth"] | {"tolerance_mm": -1}}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DescriptorError) as caught:
        load(Dataset, path)
    assert str(caught.value) == "datasets/lung_ct/dataset.json: truth.tolerance_mm: must be positive, got -1"


def test_a_file_with_ten_faults_reports_ten(sound):
    del sound["citation"]
    found = problems(
        sound,
        name="two words",
        task="registraton",
        larg=False,
        unranked=["dice", "dice"],
        spdx="CC-BY 4.0",
        alignment={"mode": "elastix-rigid", "legacy": LEGACY | {"left": {"dice": [0.3, 0.4, None]}}},
        cases={"one": {"source": "s", "learn2reg": "1_1", "subjects": []}},
        truth=sound["truth"] | {"tolerance_mm": {"liver": 1}, "checkd": "by nobody"},
    )
    keys = [problem.split(": ")[1] for problem in found]
    assert sorted(keys) == sorted(
        [
            "name",
            "task",
            "spdx",
            "cases.one.learn2reg",
            "cases.one.subjects",
            "truth.checkd",
            "unranked",
            "larg",
            # What keys have to do with each other is said beside it, inside a part as well.
            "citation",
            "truth.tolerance_mm.liver",
            "alignment.legacy.left.dice",
        ]
    )


def test_what_keys_have_to_do_with_each_other_is_said_wherever_their_own_values_are_sound(sound):
    clash = {"development": ["one"], "unit": "um", "warp": True, "truth": sound["truth"] | {"grade": "expert"}}
    alone = problems(sound, **clash)
    assert [problem.split(": ")[1] for problem in alone] == ["unit", "development", "truth.grade"]
    beside = problems(sound, **clash, title=3, masks="none", checks={"people": 1})
    assert set(alone) < set(beside)
    # Nothing is said of a value that is unsound by itself: neither that a unit is wrong for it, nor that it is missing.
    other = problems(sound, **(clash | {"dimension": "3", "cases": 7}))
    assert [problem.split(": ")[1] for problem in other] == ["dimension", "cases", "truth.grade"]
    half = problems(sound, **(clash | {"cases": {"one": 7}}))
    assert "dataset.json: development: one is a test case too" in half


def test_an_unknown_key_is_refused_with_the_one_that_was_meant(sound):
    assert problems(sound, larg=True) == ("dataset.json: larg: unknown key; did you mean 'large'?",)
    truth = sound["truth"] | {"Grade": "expert"}
    assert problems(sound, truth=truth) == ("dataset.json: truth.Grade: unknown key; did you mean 'grade'?",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, // no\n "b": 2}', "is not JSON"),
        ('{"fidopt": "1", "cases": {}, "fidopt": "2"}', "fidopt: is given twice"),
        ('{"fidopt": NaN, "cases": {}}', "NaN is not a JSON number"),
        ("[]", "must be an object"),
        ("", "is not JSON"),
    ],
)
def test_what_is_not_plain_json_is_refused(text, why):
    with pytest.raises(DescriptorError, match=why):
        parse(Checksums, text, where="checksums.json")


@pytest.mark.parametrize("value", [1, 0, "true", None])
def test_no_value_is_taken_for_one_of_another_type(sound, value):
    assert problems(sound, warp=value)[0].startswith("dataset.json: warp: must be true or false, got ")


def test_a_dimension_is_a_whole_number(sound):
    (found,) = problems(sound, dimension=3.0)
    assert found == "dataset.json: dimension: must be a whole number, got 3.0"


def test_development_cases_stand_beside_the_test_cases(sound):
    beside = parse(Dataset, json.dumps({**sound, "development": ["dev01"]}), where="dataset.json")
    assert beside.development == ("dev01",)
    test_case = next(iter(sound["cases"]))
    (found,) = problems(sound, development=[test_case])
    assert f"development: {test_case} is a test case too" in found


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "a/./b", "", "a\\b"])
def test_a_file_name_that_leads_out_of_its_folder_is_refused(sound, name):
    (found,) = problems(sound, source={"url": "u", "files": {name: DIGEST}})
    assert "must be a path inside its folder" in found


def test_keys_that_contradict_each_other_are_said_together(sound):
    found = problems(
        sound,
        unit="um",
        modalities={"image": "ct"},
        masks=["mask"],
        development=["one"],
        source=sound["source"] | {"packages": {"b": {"distribution": "d", "path": "p/b"}}},
    )
    assert [problem.split(": ")[1] for problem in found] == [
        "modalities",
        "masks",
        "unit",
        "development",
        "source.packages.b",
    ]


def test_a_tolerance_may_be_one_a_structure(sound):
    truth = sound["truth"] | {"labels": {"1": "liver", "2": "aorta"}, "tolerance_mm": {"liver": 2, "aorta": 1.5}}
    read = parse(Dataset, json.dumps(sound | {"truth": truth}), where="f")
    assert read.truth.tolerance_mm == {"liver": 2.0, "aorta": 1.5}
    (found,) = problems(sound, truth=truth | {"tolerance_mm": {"liver": 0}})
    assert found == 'dataset.json: truth.tolerance_mm: must be positive for every structure, got {"liver": 0}'
    (found,) = problems(sound, truth=truth | {"tolerance_mm": {"lung": 1}})
    assert found == "dataset.json: truth.tolerance_mm.lung: is not one of the structures of truth.labels"


def test_what_is_left_to_fill_may_be_null_and_nothing_else(sound):
    open_ = {"source": None, "cases": None, "citation": None, "development": None}
    read = parse(Dataset, json.dumps(sound | open_ | {"to_fill": ["source", "cases", "citation"]}), where="f")
    assert (read.source.url, read.cases, read.citation, read.development) == (None, {}, None, ())
    assert parse(Dataset, dump(read), where="f") == read
    found = problems(sound, **open_)
    assert [problem.split(": ")[1] for problem in found] == ["citation", "source.url", "source.files", "cases"]
    assert "unless to_fill names source" in found[1]
    (found,) = problems(sound, to_fill=["title"])
    assert "to_fill.0: must be 'source', 'cases'" in found
    (found,) = problems(sound, to_fill=["citation"])
    assert found == "dataset.json: to_fill: names citation, which is filled; take it out"


def test_a_legacy_alignment_says_what_it_left(sound):
    alignment = {"mode": "elastix-rigid", "legacy": LEGACY}
    dataset = parse(Dataset, json.dumps(sound | {"alignment": alignment}), where="f")
    read = dataset.alignment.legacy
    assert (read.transform, read.computed_from, read.left.dice) == ("affine", "the labels' centres", (0.34, 0.3, 0.38))
    assert json.loads(dump(dataset))["alignment"]["legacy"]["from"] == "the labels' centres"
    left = {"dice": [0.34, 0.4, None], "tre": [2.0, None, 1.0], "hd95": [-1.0, None, None]}
    found = problems(sound, alignment=alignment | {"legacy": LEGACY | {"left": left}})
    assert [problem.split(": ")[1] for problem in found] == [
        "alignment.legacy.left.hd95.0",
        "alignment.legacy.left.dice",
        "alignment.legacy.left.tre",
    ]


def test_a_check_that_is_missed_is_explained(sound):
    checks = {"people": True, "dense": False, "room": True, "date": "2026-10-11"}
    (found,) = problems(sound, checks=checks)
    assert found == "dataset.json: checks.reason: must say why a check is missed"
    (found,) = problems(sound, checks=checks | {"reason": "one pair", "date": "2026-13-11"})
    assert found == 'dataset.json: checks.date: must be a day like 2026-11-30, got "2026-13-11"'


def test_a_descriptor_does_not_change_after_reading(sound):
    read = parse(Dataset, json.dumps(sound), where="dataset.json")
    with pytest.raises(ValidationError):
        read.name = "other"


def test_a_file_that_is_absent_or_binary_is_one_sentence(tmp_path):
    binary = tmp_path / "checksums.json"
    binary.write_bytes(b"\xff\xfe\x00")
    absent = tmp_path / "absent.json"
    wrong = {
        binary: "checksums.json: cannot be read as UTF-8 text: ",
        absent: "absent.json: there is no such file$",
        tmp_path: ": is a folder, where a file is expected$",
    }
    for path, said in wrong.items():
        with pytest.raises(DescriptorError, match=said):
            load(Checksums, path)


def test_one_digest_stands_for_all_checksums_in_any_order():
    one = Checksums(fidopt="1", cases={"a": {"x": DIGEST, "y": DIGEST}, "b": {"x": DIGEST}})
    two = Checksums(fidopt="2", cases={"b": {"x": DIGEST}, "a": {"y": DIGEST, "x": DIGEST}})
    other = Checksums(fidopt="1", cases={"a": {"x": DIGEST, "y": DIGEST.replace("0", "1")}, "b": {"x": DIGEST}})
    assert one.digest == two.digest
    assert one.digest != other.digest


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "datasets").glob("*/dataset.json")), ids=lambda p: p.parent.name
)
def test_every_dataset_that_ships_is_sound(path):
    assert load(Dataset, path).name == path.parent.name
