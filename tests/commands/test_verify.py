"""``fidopt verify``: exit code 1 and the file's name when anything differs."""

from __future__ import annotations

import hashlib
import json

import pytest

from fidopt.cli import main

PREPARE = """
import sys
from pathlib import Path
source, target, *cases = sys.argv[1:]
for case in cases:
    truth = Path(target) / case / "truth"
    truth.mkdir(parents=True)
    for side in ("fixed", "moving"):
        (truth / f"{side}_landmarks.csv").write_bytes((Path(source) / "points.csv").read_bytes())
"""


@pytest.fixture
def places(tmp_path):
    """A built dataset of points alone, and the options that name its folders."""
    share, archive = tmp_path / "share" / "datasets" / "dots", tmp_path / "archives" / "dots"
    share.mkdir(parents=True)
    archive.mkdir(parents=True)
    points = b"x,y\n1.0,2.0\n3.0,4.5\n"
    (archive / "points.csv").write_bytes(points)
    document = {
        "name": "dots",
        "title": "Points alone",
        "dimension": 2,
        "unit": "px",
        "modalities": {"fixed": "photo", "moving": "photo"},
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "u", "files": {"points.csv": "sha256:" + hashlib.sha256(points).hexdigest()}},
        "cases": {"one": {"source": "tests", "subjects": ["a"]}},
        "truth": {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l"},
    }
    (share / "dataset.json").write_text(json.dumps(document))
    (share / "prepare.py").write_text(PREPARE)
    options = [
        f"--share={tmp_path / 'share'}",
        f"--corpus={tmp_path / 'corpus'}",
        f"--archives={tmp_path / 'archives'}",
    ]
    assert main(["build", "dots", *options]) == 0
    return tmp_path / "corpus" / "dots" / "one", options


def test_an_intact_corpus_is_exit_code_zero(places, capsys):
    _, options = places
    capsys.readouterr()
    assert main(["verify", "dots", *options]) == 0
    assert capsys.readouterr() == (
        "dots: one: every file as built here (no checksums are recorded with the dataset)\n",
        "",
    )
    assert main(["build", "dots", "--record", *options]) == 0
    capsys.readouterr()
    assert main(["verify", *options]) == 0
    assert capsys.readouterr().out == "dots: one: every file as recorded with the dataset\n"


def test_a_truncated_landmark_file_is_exit_code_one_and_named(places, capsys):
    folder, options = places
    path = folder / "truth" / "moving_landmarks.csv"
    path.write_text(path.read_text()[:-2])
    capsys.readouterr()
    assert main(["verify", "dots", *options]) == 1
    out, err = capsys.readouterr()
    assert out == "dots: one: 1 difference\n"
    assert err.startswith(f"{path} differs from its checksum")


def test_a_link_to_nothing_and_an_empty_folder_are_named(places, capsys):
    folder, options = places
    (folder / "gone").symlink_to(folder / "nowhere")
    (folder / "truth" / "empty").mkdir()
    capsys.readouterr()
    assert main(["verify", "dots", *options]) == 1
    err = capsys.readouterr().err
    assert f"{folder}/gone is not part of the case" in err
    assert f"{folder}/truth/empty is not part of the case" in err


def test_json_lists_every_difference_and_nothing_else_is_printed(places, capsys):
    folder, options = places
    (folder / "stray").write_text("")
    (folder / "truth" / "fixed_landmarks.csv").unlink()
    capsys.readouterr()
    assert main(["verify", "--json", *options]) == 1
    out, err = capsys.readouterr()
    (document,) = json.loads(out)["datasets"]
    assert err == ""
    assert document == {
        "dataset": "dots",
        "cases": ["one"],
        "against": "built",
        "differences": [
            {"case": "one", "path": "stray", "problem": "extra"},
            {"case": "one", "path": "truth/fixed_landmarks.csv", "problem": "missing"},
        ],
    }


def test_nothing_built_is_wrong_use(places, capsys, tmp_path):
    share, _, archives = places[1]
    capsys.readouterr()
    assert main(["verify", "dots", share, archives, f"--corpus={tmp_path / 'empty'}"]) == 2
    assert "no case is built in" in capsys.readouterr().err
    assert main(["verify", share, archives, f"--corpus={tmp_path / 'empty'}"]) == 2
    assert "no dataset is built in" in capsys.readouterr().err
