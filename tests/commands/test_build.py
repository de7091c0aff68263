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
    assert document == {"dataset": "dots", "cases": [case]}
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
