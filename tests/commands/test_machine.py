"""``fidopt machine`` as a person or a program calls it."""

from __future__ import annotations

import json

import pytest

from fidopt import resources
from fidopt.cli import main


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.delenv("FIDOPT_MACHINE", raising=False)
    monkeypatch.setenv("FIDOPT_RESULTS", str(tmp_path / "results"))


def test_a_machine_is_made_once_and_shown(tmp_path, capsys):
    assert main(["machine", "--json"]) == 0
    out = capsys.readouterr()
    document = json.loads(out.out)
    assert set(document) == {"name", "hostnames", "cpu", "cores", "ram_gib", "gpu", "threads"}
    assert document["hostnames"] == [resources.hostname()]
    path = tmp_path / "results" / document["name"] / "machine.json"
    assert json.loads(path.read_text()) == document
    assert out.err.count("\n") == 1
    assert main(["machine"]) == 0
    out = capsys.readouterr()
    assert document["name"] in out.out
    assert out.err == ""


def test_a_name_of_ones_own(tmp_path, capsys):
    assert main(["machine", "--name", "lab", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "lab"
    assert (tmp_path / "results" / "lab" / "machine.json").is_file()


def test_only_the_folder_that_is_used_is_an_option(tmp_path, capsys):
    assert main(["machine", "--help"]) == 0
    page = capsys.readouterr().out
    assert not any(option in page for option in ("--corpus", "--archives", "--share"))
    assert main(["machine", "--results", str(tmp_path / "elsewhere")]) == 0
    assert len(list((tmp_path / "elsewhere").glob("*/machine.json"))) == 1


def test_a_damaged_machine_json_is_named(tmp_path, capsys):
    folder = tmp_path / "results" / "lab"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text('{"name": "lab", "cores": "two"}')
    assert main(["machine"]) == 2
    said = capsys.readouterr().err
    assert "machine.json: cores: must be a whole number" in said
    assert "machine.json: cpu: is missing" in said
