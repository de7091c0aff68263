"""``fidopt table`` as a person or a program calls it."""

from __future__ import annotations

import json

import pytest

import fidopt
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


@pytest.fixture
def track(rows):
    """Give the two datasets a track, and the eyes official figures and a published table."""
    folder = rows / "share" / "datasets"
    entry = {"title": "Two senses", "datasets": ["ears", "eyes"], "truth": "expert", "apart": None}
    (folder / "tracks.json").write_text(json.dumps({"senses": entry}))
    entries = [{"method": "Winner", "tre": 0.5}, {"method": "no registration", "tre": 6.0, "dice": 0.25}]
    (folder / "eyes" / "published.json").write_text(json.dumps({"source": "their page", "rows": entries}))

    def official(**changes):
        cases = {"one": {"tre": 5.00005}, "two": {"tre": 5.0}}
        document = {"source": "theirs", "config": "c.json", "cases": cases, "mean": {"tre": 5.00002}} | changes
        (folder / "eyes" / "official_zero.json").write_text(json.dumps(document))

    return official


def test_a_track_is_who_is_ranked_on_all_its_datasets_and_their_boards(track, rows, capsys):
    assert main(["table", "senses"]) == 0
    out = capsys.readouterr().out
    assert "Two senses (track senses)" in out
    assert "demons is not ranked" not in out
    assert out.index("track senses") < out.index("(ears") < out.index("(eyes") < out.index("Winner")
    assert main(["table", "senses", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["dataset"] for one in document["boards"]] == document["track"]["boards"] == ["ears", "eyes"]
    (line,) = document["track"]["lines"]
    assert (line["method"], line["rank"], line["place"], line["places"]) == ("demons", 1.0, 1, [1.0, 1.0])
    (rows / "results" / "host" / "demons" / "ears.json").unlink()
    assert main(["table", "senses"]) == 0
    out = capsys.readouterr().out
    assert "No line is ranked on 2 datasets: ears, eyes." in out
    assert "mean of the places" not in out
    assert main(["table", "senses", "--json"]) == 0
    track = json.loads(capsys.readouterr().out)["track"]
    assert track["lines"] == []
    assert track["notes"] == ["truth: expert", "demons is not ranked: it stands on 1 of 2 datasets' rankings"]
    assert main(["table", "senses", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_tracks_boards_are_one_data_frame(track, rows):
    frame = fidopt.board("senses", results=rows / "results", share=rows / "share")
    assert list(frame["dataset"]) == ["ears", "ears", "eyes", "eyes"]


def test_a_challenges_table_stands_below_its_board_and_is_ranked_with_nobody(track, capsys):
    assert main(["table", "eyes"]) == 0
    out = capsys.readouterr().out
    assert out.index("identity: not ranked") < out.index("never ranked with eyes's lines") < out.index("Winner")
    assert "their page" in out
    assert main(["table", "--json"]) == 0
    ears, eyes = json.loads(capsys.readouterr().out)["boards"]
    assert ears["published"] is None
    assert eyes["published"]["rows"][0] == {"method": "Winner", "metrics": {"tre": 0.5}}
    assert [line["method"] for line in eyes["lines"]] == ["demons", "identity"]


def test_the_zero_field_is_compared_with_the_organisers_figures(track, capsys):
    track()
    assert main(["table", "--parity"]) == 0
    out = capsys.readouterr().out
    assert "-5.00e-05" in out
    assert "unexplained" not in out
    assert main(["table", "senses", "--parity", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["parity"]
    assert (found["dataset"], found["holds"], found["tolerance"]) == ("eyes", True, 1e-4)
    assert [figure["case"] for figure in found["figures"]] == ["one", "two", "mean"]
    assert main(["table", "eyes", "--parity", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_difference_that_nobody_explains_is_code_one(track, capsys):
    track(mean={"tre": 5.00002, "hd95": 3.0})
    assert main(["table", "eyes", "--parity"]) == 1
    assert "there is no such value in the rows" in capsys.readouterr().out
    track(cases={"one": {"tre": 5.0002}})
    assert main(["table", "eyes", "--parity"]) == 1
    assert "no, unexplained" in capsys.readouterr().out
    track(cases={"three": {"tre": 5.0}})
    assert main(["table", "eyes", "--parity"]) == 1
    capsys.readouterr()
    track(cases={"one": {"tre": 5.0002}}, differs={"tre": "they count otherwise"})
    assert main(["table", "eyes", "--parity"]) == 0
    assert "no: they count otherwise" in capsys.readouterr().out


def test_what_cannot_be_compared_is_said(track, rows, capsys):
    for words, said in (
        (["ears", "--parity"], "ears has no official_zero.json to compare with"),
        (["eyes", "--parity", "--latex"], "leave --latex out"),
        (["sense"], "did you mean 'senses'?"),
    ):
        assert main(["table", *words]) == 2
        out = capsys.readouterr()
        assert (out.out, out.err.count("\n")) == ("", 1)
        assert said in out.err
    track()
    (rows / "results" / "host" / "identity" / "eyes.json").unlink()
    for words, said in ((["eyes"], "fidopt score identity eyes --fields DIR --voxels"), ([], "no rows of identity on")):
        assert main(["table", *words, "--parity"]) == 2
        assert said in capsys.readouterr().err


def test_the_zero_fields_of_lungct_are_the_organisers_to_a_ten_thousandth(tmp_path, monkeypatch, shared_data, capsys):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    archive = shared_data("lungct_points")
    for variable, folder in (("ARCHIVES", archive.parent), ("CORPUS", tmp_path / "c"), ("RESULTS", tmp_path / "r")):
        monkeypatch.setenv(f"FIDOPT_{variable}", str(folder))
    assert main(["build", "lungct_points"]) == 0
    words = ["identity", "lungct_points", "--fields", str(archive / "zero_field"), "--voxels", "--machine", "here"]
    assert main(["score", *words]) == 0
    capsys.readouterr()
    assert main(["table", "lung_points", "--parity", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["parity"]
    assert len(found["figures"]) == 8
    assert max(abs(figure["difference"]) for figure in found["figures"]) <= 1e-4
    assert main(["table", "lungct_points"]) == 0
    assert "LapIRNv2" in capsys.readouterr().out


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
