"""CONTRIBUTING's example of a method that is added from a shipped one works as it is printed there."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from pathlib import Path

import pytest

from fidopt.cli import main
from fidopt.resources import packaged_share

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Adding a method") : PAGE.index("## Code")]
EXAMPLE = SECTION[SECTION.index("### A method in five lines") :]
COMMANDS = [line.removeprefix("    $ ") for line in EXAMPLE.splitlines() if line.startswith("    $ ")]
#: The most lines that a person changes in the copied folder.
MOST_LINES = 10


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    """Return the folder of the new method, made by the example's own commands."""
    shutil.copytree(packaged_share() / "methods" / "demons", tmp_path / "methods" / "demons")
    words = [command for command in COMMANDS if not command.startswith("fidopt")]
    subprocess.run(["bash", "-euc", "\n".join(words)], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIDOPT_SHARE", "mine")
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    return tmp_path / "mine" / "methods" / "diffeomorphic"


def changed(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.iterdir()):
        before = packaged_share() / "methods" / "demons" / path.name
        lines = difflib.ndiff(before.read_text().splitlines(), path.read_text().splitlines())
        found += [f"{path.name}: {line}" for line in lines if line.startswith("+ ")]
    return found


def test_the_example_changes_few_lines(mine):
    lines = changed(mine)
    assert 3 <= len(lines) <= MOST_LINES, lines


@pytest.mark.slow
def test_the_example_passes_the_check_as_it_is_printed(mine, capsys):
    code = main(["check", "diffeomorphic"])
    said = capsys.readouterr()
    if "could not be had" in said.err:
        pytest.skip(f"no package index: {said.err}")
    assert code == 0, said
    printed = [line.strip() for line in EXAMPLE.splitlines() if line.startswith("    diffeomorphic: ")]
    # The last digits of the distances may be another machine's.
    heads = [line.split(" finds ")[0] for line in printed]
    assert [line.split(" finds ")[0] for line in said.out.splitlines()] == heads


def test_the_methods_that_are_named_to_be_copied_are_there():
    named = {word for line in SECTION.splitlines() if line.startswith("| ") for word in line.split("`")[1::2]}
    folders = {path.name for path in (packaged_share() / "methods").iterdir() if path.is_dir()}
    assert len(named & folders) >= 10
    assert {word for word in named if not word.startswith("run.sh")} <= folders
