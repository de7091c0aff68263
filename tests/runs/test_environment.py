from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from fidopt.errors import MissingError
from fidopt.runner import environment, methods

COUNT = 'mkdir -p "$FIDOPT_ENV"; echo made >> "$(dirname "$0")/count"\n'


def ensure(world, name="m"):
    chosen = methods.find(name, world.roots)
    return environment.ensure(chosen.method, chosen.folder, world.roots, say=world.say)


def made(folder):
    return len((folder / "count").read_text().splitlines())


def test_an_environment_is_made_once_and_used_again(world):
    folder = world.method("m", "true", setup=COUNT)
    where = ensure(world)
    assert where == (world.roots.environments / "m").resolve()
    assert ensure(world) == where
    assert made(folder) == 1
    assert len(world.told) == 1


def test_it_is_made_anew_only_when_its_pin_changes(world):
    folder = world.method("m", "true", setup=COUNT)
    where = ensure(world)
    (where / "left").touch()
    world.method("m", "echo another run.sh", setup=COUNT, timeout_s=5)
    ensure(world)
    assert made(folder) == 1
    world.method("m", "true", setup=COUNT, version="2")
    ensure(world)
    assert made(folder) == 2
    assert not (where / "left").exists()
    (folder / "requirements.txt").write_text("a==1\n")
    ensure(world)
    assert made(folder) == 3
    world.method("m", "true", setup=COUNT + "# more\n", version="2")
    ensure(world)
    assert made(folder) == 4


def test_one_whose_python_is_gone_is_made_anew(world):
    link = 'mkdir -p "$FIDOPT_ENV/bin"; ln -sf "$(dirname "$0")/python" "$FIDOPT_ENV/bin/python"; '
    folder = world.method("m", "true", setup=link + COUNT)
    (folder / "python").touch()
    ensure(world)
    ensure(world)
    assert made(folder) == 1
    (folder / "python").unlink()
    ensure(world)
    assert made(folder) == 2


def test_one_that_failed_halfway_is_not_taken_for_made(world):
    folder = world.method("m", "true", setup=COUNT + 'touch "$FIDOPT_ENV/half"; echo needs a shop >&2; exit 1')
    for _ in range(2):
        with pytest.raises(
            MissingError, match=r"m: its environment could not be made: needs a shop \(all of it: .*log"
        ):
            ensure(world)
    assert made(folder) == 2
    assert not (world.roots.environments / "m").exists()


def test_setup_is_told_where_and_with_which_python(world, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    world.method("m", "true", setup='mkdir -p "$FIDOPT_ENV"; env > "$FIDOPT_ENV/env"')
    lines = (ensure(world) / "env").read_text().splitlines()
    assert f"FIDOPT_PYTHON={sys.executable}" in lines
    told = dict(line.split("=", 1) for line in lines if line.startswith("FIDOPT_"))
    assert Path(told["FIDOPT_INSTALL"]).is_file()
    assert not told["FIDOPT_UV"] or os.access(told["FIDOPT_UV"], os.X_OK)
    assert not any(line.startswith("PYTHON") for line in lines)


def test_environments_lie_where_the_variable_says(monkeypatch, tmp_path):
    from fidopt import resources

    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path))
    assert resources.roots().environments == tmp_path


@pytest.mark.skipif(not shutil.which("bash"), reason="setup.sh needs bash")
def test_the_shipped_methods_have_all_their_files():
    from fidopt.resources import roots

    found = methods.known(roots())
    assert {chosen.name for chosen in found} >= {"identity", "demons", "elastix"}
    for chosen in found:
        for name in ("setup.sh", "run.sh"):
            assert os.access(chosen.folder / name, os.X_OK), f"{chosen.folder / name} has no run bit"
        assert (chosen.folder / "NOTES.md").is_file()
        listed = chosen.folder / "requirements.txt"
        assert not listed.exists() or "--hash=sha256:" in listed.read_text()
