from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fidopt.cli import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> dict[str, str]:
    """Unpack the wheel elsewhere, as an installer does, and return an environment that imports it from there."""
    site = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-compile",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run([*command, "--disable-pip-version-check"], check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(site)}


def _run(code: str, environment: dict[str, str], tmp_path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_wheel_holds_the_descriptors_and_nothing_that_was_built(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "fidopt/_share/datasets/brain/dataset.json" in names
    lists = ("tracks", "families", "structures", "screening")
    assert {f"fidopt/_share/datasets/{name}.json" for name in lists} <= set(names)
    assert "fidopt/_share/methods/demons/run.sh" in names
    assert "fidopt/_share/evaluation/registration.yml" in names
    assert {f"fidopt/_share/deploy/{name}.yml" for name in ("local", "ssh", "slurm", "kubernetes")} <= set(names)
    assert not [name for name in names if "__pycache__" in name or ".ome.zarr" in name or name.startswith("tests")]


def test_run_scripts_stay_executable_in_the_wheel(wheel):
    scripts = [info for info in zipfile.ZipFile(wheel).infolist() if info.filename.endswith(("run.sh", "setup.sh"))]
    assert scripts
    assert all(info.external_attr >> 16 & 0o100 for info in scripts)


def test_an_installed_wheel_finds_its_own_deploy_files(installed, tmp_path):
    code = "from fidopt.cluster import deployment as d; print(d('deploy/local.yml').dashboard, d('slurm').kind)"
    assert _run(code, installed, tmp_path).split() == ["127.0.0.1:8787", "slurm"]


def test_an_installed_wheel_finds_its_own_descriptors(installed, tmp_path):
    code = "import fidopt.resources as r; print(r.__file__); print(r.packaged_share() / 'datasets' / 'brain')"
    module, brain = _run(code, installed, tmp_path).split()
    assert Path(module).is_relative_to(installed["PYTHONPATH"])
    assert Path(brain).is_relative_to(installed["PYTHONPATH"])
    assert (Path(brain) / "dataset.json").is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_an_installed_wheel_has_help(name, installed, tmp_path):
    code = f"import sys; from fidopt.cli import main; sys.exit(main([{name!r}, '--help']))"
    assert f"fidopt {name}" in _run(code, installed, tmp_path)


def test_whoever_can_score_has_what_the_evaluator_reads_stores_with(wheel):
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    needed = [line for line in archive.read(name).decode().splitlines() if line.endswith("extra == 'score'")]
    assert any(line.startswith("Requires-Dist: konfai[omezarr]") for line in needed)
