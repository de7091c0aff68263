"""A dataset that is described and not filled is shown, and nothing is made of it."""

from __future__ import annotations

import json

import pytest

from fidopt import cli, corpus, resources

OPEN = {
    "name": "sketch",
    "title": "Described, not filled",
    "to_fill": ["source", "cases", "citation"],
    "dimension": 3,
    "unit": "mm",
    "modalities": {"fixed": "ct", "moving": "ct"},
    "spdx": "CC0-1.0",
    "citation": None,
    "source": None,
    "cases": None,
    "draw": {"seed": 1, "count": 10},
    "truth": {"grade": "expert", "by": "a", "checked": "b", "limits": "c"},
}


@pytest.fixture
def share(tmp_path):
    folder = tmp_path / "share" / "datasets" / "sketch"
    folder.mkdir(parents=True)
    (folder / "dataset.json").write_text(json.dumps(OPEN))
    (folder / "pool.json").write_text(json.dumps({"cases": {"a": {"source": "s", "subjects": ["x"]}}}))
    (tmp_path / "fields").mkdir()
    return tmp_path / "share"


@pytest.mark.parametrize(
    "words",
    [
        ["build", "sketch"],
        ["verify", "sketch"],
        ["align", "sketch"],
        ["run", "identity", "sketch"],
        ["score", "mine", "sketch", "--fields", "fields"],
        ["draw", "sketch"],
        ["table", "sketch"],
    ],
    ids=lambda words: words[0],
)
def test_what_needs_a_filled_dataset_names_what_is_open(share, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*words, "--share", str(share)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fidopt: sketch is described and not filled yet: its dataset.json leaves open source")
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("corpus/**"))


def test_it_is_listed_with_the_others(share):
    found = {dataset.name: dataset for dataset in corpus.datasets(resources.roots(share=share))}
    assert found["sketch"].to_fill == ("source", "cases", "citation")
    assert found["sketch"].cases == {}


def test_draw_needs_what_it_does_not_fill_itself(share, capsys):
    path = share / "datasets" / "sketch" / "dataset.json"
    filled = {"source": {"url": "u", "files": {"a": "sha256:" + "0" * 64}}, "citation": "c"}
    path.write_text(json.dumps(OPEN | filled | {"to_fill": ["cases", "development"]}))
    assert cli.main(["draw", "sketch", "--share", str(share), "--write"]) == 0
    written = json.loads(path.read_text())
    assert (list(written["cases"]), written["to_fill"]) == (["a"], ["development"])
    capsys.readouterr()
    assert cli.main(["build", "sketch", "--share", str(share)]) == 2
    assert "leaves open development" in capsys.readouterr().err
