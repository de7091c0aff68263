"""``fidopt setup`` as a person or a program calls it."""

from __future__ import annotations

import json

import pytest

from fidopt.cli import main

METHOD = {
    "version": "1",
    "licence": {"code": "MIT", "weights": None},
    "tasks": ["registration"],
    "dimensions": [3],
    "modalities": ["*"],
    "reference": "the tests",
}


@pytest.fixture
def methods(tmp_path, monkeypatch):
    monkeypatch.setenv("FIDOPT_SHARE", str(tmp_path / "share"))
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    scripts = {"good": 'mkdir -p "$FIDOPT_ENV"', "dear": "echo dear needs a key in FIDOPT_DEAR_KEY >&2; exit 1"}
    for name, script in scripts.items():
        folder = tmp_path / "share" / "methods" / name
        folder.mkdir(parents=True)
        (folder / "method.json").write_text(json.dumps(METHOD | {"name": name}))
        (folder / "setup.sh").write_text(script + "\n")
    return tmp_path


def test_an_environment_is_made_and_found_again(methods, capsys):
    assert main(["setup", "good"]) == 0
    out = capsys.readouterr()
    assert out.out == f"good: ready in {methods}/envs/good\n"
    assert "making" in out.err
    assert main(["setup", "good", "--json"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out) == {"environments": {"good": f"{methods}/envs/good"}, "missing": {}}
    assert out.err == ""


def test_one_that_cannot_be_had_says_what_it_needs(methods, capsys):
    assert main(["setup", "dear"]) == 2
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("fidopt: dear: its environment could not be made: dear needs a key")


def test_all_makes_what_it_can_and_answers_no(methods, monkeypatch, capsys):
    # Of the packaged methods only identity, which needs nothing from a package index.
    monkeypatch.setattr("fidopt.resources.packaged_share", lambda: methods / "share")
    assert main(["setup", "all", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert set(document["environments"]) == {"good"}
    assert "FIDOPT_DEAR_KEY" in document["missing"]["dear"]


def test_only_the_folder_that_is_used_is_an_option(capsys):
    assert main(["setup", "--help"]) == 0
    page = capsys.readouterr().out
    assert "--share" in page
    assert not any(option in page for option in ("--corpus", "--archives", "--results"))


def test_an_unknown_method_lists_those_there_are(methods, capsys):
    assert main(["setup", "nothing"]) == 2
    assert "good" in capsys.readouterr().err
