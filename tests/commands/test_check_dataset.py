"""``fidopt check-dataset``: each check with its number, exit codes, and what is written."""

from __future__ import annotations

import json

import pytest

from fidopt.cli import main

LEFT = {"dice": [0.26, 0.16, 0.35], "tre": None, "hd95": None}
ENTRY = {"source": "tests", "learn2reg": None, "subjects": ["a", "b"]}


@pytest.fixture
def places(tmp_path):
    """Return a function that describes a dataset, and the options that name its folders."""
    folder = tmp_path / "share" / "datasets" / "dots"
    folder.mkdir(parents=True)
    document = {
        "name": "dots",
        "title": "Ten pairs",
        "task": "synthesis",
        "dimension": 3,
        "unit": "mm",
        "modalities": {"source": "mr", "target": "ct"},
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "u", "files": {"f": "sha256:" + "0" * 64}},
        "cases": {f"case{n}": ENTRY for n in range(10)},
        "truth": {"grade": "provider", "by": "b", "checked": "c", "limits": "l", "dynamic_range": 100.0},
    }

    def write(**changes):
        (folder / "dataset.json").write_text(json.dumps(document | changes, indent=2) + "\n")
        return folder / "dataset.json"

    options = [f"--{name}={tmp_path / name}" for name in ("share", "corpus", "archives", "results")]
    return write, options


def test_a_dataset_that_passes_is_exit_code_zero_with_a_line_a_check(places, capsys):
    write, options = places
    write()
    assert main(["check-dataset", "dots", *options]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "dots: people passes  the truth is graded provider: people acquired the target",
        "dots: dense  passes  10 test cases, every voxel of their targets scored",
        "dots: room   passes  without a method nothing is produced and nothing scored",
    ]
    assert err == ""


def test_a_dataset_that_misses_one_is_exit_code_one_with_the_reason(places, capsys):
    write, options = places
    write(cases={f"case{n}": ENTRY for n in range(9)}, spdx="CC-BY-NC-4.0")
    assert main(["check-dataset", "dots", *options]) == 1
    out = capsys.readouterr().out
    assert "dots: dense  misses  9 test cases, 10 are needed" in out
    assert "dots: ranked apart: it misses dense" in out
    assert "dots: ranked apart: its licence is no open licence that allows commercial use (CC-BY-NC-4.0)" in out


def test_json_has_each_check_and_nothing_else_is_printed(places, capsys):
    write, options = places
    write(
        task="registration",
        modalities={"fixed": "ct", "moving": "ct"},
        truth={"grade": "expert", "by": "b", "checked": "c", "limits": "l"},
        alignment={"legacy": {"transform": "rigid", "from": "labels", "left": LEFT, "note": None}},
    )
    assert main(["check-dataset", "dots", "--json", *options]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert {name: one["passed"] for name, one in document["checks"].items()} == {
        "people": True,
        "dense": None,
        "room": True,
    }
    assert document["checks"]["room"]["figures"]["dice"] == 0.26
    assert (document["passed"], document["apart"], document["main_tracks"]) == (False, [], [])


def test_write_puts_the_answers_into_the_descriptor_and_leaves_the_rest(places, capsys):
    write, options = places
    path = write(cases={f"case{n}": ENTRY for n in range(9)})
    before = json.loads(path.read_text())
    assert main(["check-dataset", "dots", "--write", *options]) == 1
    after = json.loads(path.read_text())
    checks = after.pop("checks")
    assert after == before
    assert checks.pop("date")
    assert checks == {
        "people": True,
        "dense": False,
        "room": True,
        "reason": "9 test cases, 10 are needed, every voxel of their targets scored",
    }
    assert f"checks written into {path}" in capsys.readouterr().err
    assert main(["check-dataset", "dots", *options]) == 1


def test_answers_that_the_descriptor_has_otherwise_are_named(places, capsys):
    write, options = places
    write(checks={"people": True, "dense": False, "room": True, "reason": "nine cases", "date": "2026-10-11"})
    assert main(["check-dataset", "dots", *options]) == 0
    said = "dots: its dataset.json of 2026-10-11 says otherwise of dense; --write mends it"
    assert said in capsys.readouterr().out
    assert main(["check-dataset", "dots", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["recorded"]["reason"] == "nine cases"
    assert main(["check-dataset", "dots", "--write", *options]) == 0
    assert main(["check-dataset", "dots", *options]) == 0
    assert said not in capsys.readouterr().out


def test_write_refuses_what_cannot_be_told_yet(places, capsys):
    write, options = places
    path = write(
        task="registration",
        modalities={"fixed": "ct", "moving": "ct"},
        truth={"grade": "expert", "by": "b", "checked": "c", "limits": "l"},
    )
    before = path.read_bytes()
    assert main(["check-dataset", "dots", "--write", *options]) == 2
    assert "nothing is written before every check can be told" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_name_that_is_no_dataset_is_wrong_use(places, capsys):
    _, options = places
    assert main(["check-dataset", "dot", *options]) == 2
    assert "there is no 'dot'" in capsys.readouterr().err
