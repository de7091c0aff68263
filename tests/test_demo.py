from __future__ import annotations

import json
from pathlib import Path

import pytest

from fidopt import cli, demo, resources, results


@pytest.mark.slow
def test_the_demo_ranks_a_method_above_no_registration_on_both_datasets(tmp_path, capsys):
    assert cli.main(["demo", "--dir", str(tmp_path / "demo"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [board["dataset"] for board in document["boards"]] == ["retina", "brain"]
    for board in document["boards"]:
        lines = {line["method"]: line for line in board["lines"]}
        assert lines["identity"]["place"] is None
        assert all(line["failures"] == 0 for line in lines.values())
        best = board["lines"][0]
        assert best["place"] == 1
        assert best["metrics"]["tre"]["change"] > 0
        assert best["metrics"]["dice"]["change"] > 0
    assert document["shards"] > 1
    assert document["dashboard"].startswith("http://127.0.0.1:")
    again = cli.main(["demo", "--dir", str(tmp_path / "demo"), "--json"])
    assert again == 0
    boards = json.loads(capsys.readouterr().out)["boards"]
    assert boards == document["boards"]


def test_a_demo_whose_runs_failed_says_so_and_answers_no(tmp_path, monkeypatch, capsys):
    outcome = demo.Outcome((), (), 3, tmp_path / "warped.ome.zarr", "http://127.0.0.1:8787", 10**6, 8, 1.0)
    monkeypatch.setattr(demo, "demo", lambda *_args, **_options: outcome)
    assert cli.main(["demo", "--dir", str(tmp_path)]) == 1
    out = capsys.readouterr()
    assert "Pictures" not in out.out
    assert "3 runs failed" in out.err


@pytest.mark.parametrize("given", ["demo", "absolute", "../elsewhere"])
def test_the_last_lines_name_every_path_from_the_current_folder(given, tmp_path, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    inside = given != "../elsewhere"
    directory = tmp_path / "here" / "demo" if given == "absolute" else Path(given)
    monkeypatch.setattr(demo, "demo", lambda folder, **_options: _outcome(folder))
    assert cli.main(["demo", "--dir", str(directory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = "demo" if inside else "../elsewhere"
    assert lines == [
        "Done in 31 s; warped, with the coarser levels: 22 million voxels in 8 shards",
        f"pictures  {begin}/results/node-0123456789ab/demons/brain.previews/contrast/, before.png and after.png",
        f"rows      {begin}/results/",
        f"volume    fidopt info {begin}/warped.ome.zarr --preview brain.png",
    ]
    assert not inside or max(map(len, lines)) <= 100


def _outcome(folder):
    mine = demo.roots_in(folder, resources.roots())
    pictures = results.Line(mine.results, "node-0123456789ab", "demons", "brain").previews("contrast")
    return demo.Outcome((), (pictures,), 0, folder / "warped.ome.zarr", "http://127.0.0.1:8787", 22 * 10**6, 8, 31.0)
