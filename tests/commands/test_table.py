"""``fidopt table`` as a person or a program calls it."""

from __future__ import annotations

import json

import pytest

from fidopt import resources, results
from fidopt.cli import main
from fidopt.results import Line

DATASET = {
    "title": "A toy",
    "dimension": 2,
    "unit": "px",
    "modalities": {"fixed": "photo", "moving": "photo"},
    "spdx": "CC0-1.0",
    "citation": "-",
    "source": {"url": "-", "files": {"x": "sha256:" + "0" * 64}},
    "cases": {name: {"source": "-", "learn2reg": None, "subjects": ["a", "a"]} for name in ("one", "two")},
    "truth": {"grade": "expert", "by": "us", "checked": "by us", "limits": "none", "labels": {}},
}


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setenv("FIDOPT_SHARE", str(tmp_path / "share"))
    monkeypatch.setenv("FIDOPT_RESULTS", str(tmp_path / "results"))
    for name in ("eyes", "ears"):
        folder = tmp_path / "share" / "datasets" / name
        folder.mkdir(parents=True)
        (folder / "dataset.json").write_text(json.dumps(DATASET | {"name": name}))
        for method, tre in (("identity", 5.0), ("demons", 1.0)):
            for case in DATASET["cases"]:
                row = results.new_row({"tre": tre, "sdlogj": 0.1}, time_s=2.0, peak_ram_mib=7, method_version="1")
                line = Line(tmp_path / "results", "host", method, name)
                results.add_row(line, case, row, checksums="sha256:" + "ab" * 32)
    results.machine_here(resources.roots(), name="host")
    return tmp_path


def test_one_board_or_all_that_have_rows(rows, capsys):
    assert main(["table", "eyes"]) == 0
    out = capsys.readouterr()
    assert "A toy (eyes, 2 cases)" in out.out
    assert "ears" not in out.out
    assert out.err == ""
    assert main(["table"]) == 0
    both = capsys.readouterr().out
    assert both.index("(ears") < both.index("(eyes")


def test_json_is_one_document(rows, capsys):
    assert main(["table", "--json"]) == 0
    boards = json.loads(capsys.readouterr().out)["boards"]
    assert [board["dataset"] for board in boards] == ["ears", "eyes"]
    first = boards[0]["lines"][0]
    assert (first["method"], first["place"], first["metrics"]["tre"]["change"]) == ("demons", 1, 4.0)
    assert boards[0]["lines"][1]["unranked"] == "the zero field is the reference"


def test_csv_and_latex(rows, capsys):
    assert main(["table", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("dataset,place,")
    assert main(["table", "eyes", "--latex"]) == 0
    assert r"\begin{tabular}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [(["table", "noses"], "noses"), (["table", "--csv", "--latex"], "exclude each other")],
)
def test_wrong_use_is_one_line(rows, capsys, words, said):
    assert main(words) == 2
    out = capsys.readouterr()
    assert (out.out, out.err.count("\n")) == ("", 1)
    assert said in out.err


def test_no_rows_at_all_names_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FIDOPT_RESULTS", str(tmp_path))
    assert main(["table"]) == 2
    assert "fidopt run METHOD DATASET" in capsys.readouterr().err
