"""``fidopt build``: exit codes, and what it prints."""

from __future__ import annotations

import hashlib
import json

import pytest

from fidopt.cli import main
from fidopt.images.landmarks import write_landmarks

PREPARE = """
import shutil, sys
from pathlib import Path
source, target, *cases = sys.argv[1:]
for case in cases:
    truth = Path(target) / case / "truth"
    truth.mkdir(parents=True)
    for side in ("fixed", "moving"):
        shutil.copyfile(Path(source) / "points.csv", truth / f"{side}_landmarks.csv")
"""


@pytest.fixture
def places(tmp_path):
    """A share with a dataset of points alone, its archive, and the options that name them."""
    share, archive = tmp_path / "share" / "datasets" / "dots", tmp_path / "archives" / "dots"
    share.mkdir(parents=True)
    archive.mkdir(parents=True)
    write_landmarks(archive / "points.csv", [[1.0, 2.0], [3.0, 4.5]])
    digest = "sha256:" + hashlib.sha256((archive / "points.csv").read_bytes()).hexdigest()
    document = {
        "name": "dots",
        "title": "Points alone",
        "dimension": 2,
        "unit": "px",
        "modalities": {"fixed": "photo", "moving": "photo"},
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "https://example.org/dots", "files": {"points.csv": digest}},
        "cases": {name: {"source": "tests", "subjects": ["a"]} for name in ("one", "two")},
        "truth": {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l"},
    }
    (share / "dataset.json").write_text(json.dumps(document))
    (share / "prepare.py").write_text(PREPARE)
    options = {"share": tmp_path / "share", "corpus": tmp_path / "corpus", "archives": tmp_path / "archives"}
    return tmp_path, [word for name, path in options.items() for word in (f"--{name}", str(path))]


def test_a_build_says_where_its_cases_are_and_whether_they_are_recorded(places, capsys):
    folder, options = places
    assert main(["build", "dots", *options]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "dots/one: built; no checksums are recorded",
        "dots/two: built; no checksums are recorded",
        f"in {folder / 'corpus' / 'dots'}",
    ]
    assert err == ""


def test_a_build_records_checksums_where_it_may_and_the_next_one_compares(places, capsys):
    folder, options = places
    assert main(["build", "dots", "--record", *options]) == 0
    recorded = json.loads((folder / "share" / "datasets" / "dots" / "checksums.json").read_text())
    assert recorded["cases"]["two"]["truth/fixed_landmarks.csv"].startswith("sha256:")
    capsys.readouterr()
    assert main(["build", "dots", "one", "--json", *options]) == 0
    document = json.loads(capsys.readouterr().out)
    case = {"case": "one", "folder": str(folder / "corpus" / "dots" / "one"), "done": "kept", "recorded": "match"}
    assert document == {"dataset": "dots", "cases": [case], "own_seed": False}
    assert main(["build", "dots", "one", "--record", *options]) == 0
    assert "checksums of 1 case recorded in" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "dot"], "there is no 'dot' in"),
        (["build", "dots", "three"], "dots has no case 'three'; its cases are: one, two"),
        (["build"], "DATASET"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(places, capsys, words, message):
    assert main([*words, *places[1]]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fidopt: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_changed_provider_file_is_named(places, capsys):
    folder, options = places
    (folder / "archives" / "dots" / "points.csv").write_text("x,y\n0,0\n")
    assert main(["build", "dots", *options]) == 2
    assert "points.csv): expected sha256:" in capsys.readouterr().err


def test_development_cases_are_built_and_recorded_apart(places, capsys):
    folder, options = places
    described = folder / "share" / "datasets" / "dots" / "dataset.json"
    assert main(["build", "dots", "--development", *options]) == 2
    assert (
        "dots has no development cases; `fidopt draw dots --development 10` sets some aside" in capsys.readouterr().err
    )
    document = json.loads(described.read_text())
    del document["cases"]["two"]
    described.write_text(json.dumps(document | {"development": ["two"]}))
    assert main(["build", "dots", "--development", "--record", *options]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "dots/two: built; its checksums are those recorded"
    recorded = described.with_name("checksums_development.json")
    assert err == f"checksums of 1 case recorded in {recorded}\n"
    assert list(json.loads(recorded.read_text())["cases"]) == ["two"]
    assert not described.with_name("checksums.json").exists()
    assert main(["build", "dots", "two", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["cases"][0]["recorded"] == "match"
    assert main(["verify", "dots", "two", *options]) == 0
    assert capsys.readouterr().out == "dots: two: every file as recorded with the dataset\n"
    assert main(["build", "dots", "--development", "one", *options]) == 2
    assert "dots has no development case 'one'; they are: two" in capsys.readouterr().err
    assert main(["run", "identity", "dots", "two", *options, "--results", str(folder / "results")]) == 2
    assert "dots/two is a development case; its test cases are: one" in capsys.readouterr().err


def test_a_build_to_other_bytes_than_recorded_is_explained_by_verify(places, capsys):
    folder, options = places
    assert main(["build", "dots", "--record", *options]) == 0
    recorded = folder / "share" / "datasets" / "dots" / "checksums.json"
    document = json.loads(recorded.read_text())
    document["cases"]["one"]["truth/fixed_landmarks.csv"] = "sha256:" + "0" * 64
    document["built_with"][0]["libraries"]["numpy"] = "1.0"
    recorded.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["build", "dots", *options]) == 0
    assert "its checksums are not those recorded; `fidopt verify` says what is known" in capsys.readouterr().out
    assert main(["verify", "dots", "--json", *options]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["datasets"][0]["differences"]
    assert difference["problem"] == "rebuilt"
    assert difference["why"].startswith("it was built with numpy ")
    assert difference["why"].endswith("(recorded with 1.0)")
