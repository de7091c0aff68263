"""``fidopt run`` as a person or a program calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import blocks
from blocks.grid import Grid
from fidopt.cli import main
from fidopt.images.landmarks import write_landmarks
from fidopt.images.nifti import write_field

GRID = Grid.of((9, 10, 11), spacing=(1.0, 1.5, 2.0))
DATASET = {
    "name": "toy",
    "title": "A toy",
    "dimension": 3,
    "unit": "mm",
    "modalities": {"fixed": "ct", "moving": "ct"},
    "spdx": "CC0-1.0",
    "citation": "-",
    "source": {"url": "-", "files": {"x": "sha256:" + "0" * 64}},
    "cases": {name: {"source": "-", "learn2reg": None, "subjects": ["a", "a"]} for name in ("one", "two")},
    "truth": {"grade": "expert", "by": "us", "checked": "by us", "limits": "none", "labels": {}},
}
METHOD = {
    "name": "shift",
    "version": "1",
    "licence": {"code": "MIT", "weights": None},
    "tasks": ["registration"],
    "dimensions": [3],
    "modalities": ["*"],
    "threads": 1,
    "timeout_s": 30,
    "reference": "the tests",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with a built dataset whose truth is 2 mm along x, and a method that gives just that."""
    monkeypatch.chdir(tmp_path)
    for name in ("FIDOPT_SHARE", "FIDOPT_CORPUS", "FIDOPT_RESULTS", "FIDOPT_MACHINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIDOPT_SHARE", str(tmp_path / "share"))
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    dataset, method = tmp_path / "share" / "datasets" / "toy", tmp_path / "share" / "methods" / "shift"
    for folder in (dataset, method):
        folder.mkdir(parents=True)
    (dataset / "dataset.json").write_text(json.dumps(DATASET))
    points = GRID.world(np.array([[3.0, 4, 5], [5, 5, 5], [4, 6, 3]]))
    for name in DATASET["cases"]:
        case = tmp_path / "corpus" / "toy" / name
        (case / "truth").mkdir(parents=True)
        for side, offset in (("fixed", 0.0), ("moving", 2.0)):
            image = blocks.image_of(np.arange(990, dtype=np.int16).reshape(GRID.shape), GRID)
            blocks.write_image(case / f"{side}.ome.zarr", image)
            write_landmarks(case / "truth" / f"{side}_landmarks.csv", points + np.array([offset, 0, 0]))
    vectors = np.zeros((3, *GRID.shape), dtype=np.float32)
    vectors[0] = 2.0
    write_field(method / "field.nii.gz", vectors, GRID)
    (method / "method.json").write_text(json.dumps(METHOD))
    (method / "setup.sh").write_text('mkdir -p "$FIDOPT_ENV"\n')
    (method / "run.sh").write_text('cp "$(dirname "$0")/field.nii.gz" "$3/DVF.nii.gz"\n')
    return tmp_path


def test_a_method_runs_scores_and_is_on_the_board(toy, capsys):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    assert main(["run", "shift", "toy", "--json", "--machine", "host"]) == 0
    out = capsys.readouterr()
    document = json.loads(out.out)
    assert (document["done"], document["failed"], document["kept"]) == (["one", "two"], [], [])
    rows = json.loads(Path(document["file"]).read_text())["rows"]
    assert rows["one"]["metrics"]["tre"] == pytest.approx(0, abs=1e-6)
    assert "making its environment" in out.err
    assert main(["run", "shift", "toy", "one", "--machine", "host"]) == 0
    assert "1 had a row already" in capsys.readouterr().out
    assert main(["table", "toy", "--json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)["boards"]
    assert board["lines"][0]["method"] == "shift"
    assert board["lines"][0]["time_s"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nothing", "toy"], "there is no 'nothing'"),
        (["run", "shift", "nowhere"], "there is no 'nowhere'"),
        (["run", "shift", "toy", "three"], "no case 'three'"),
        (["run", "shift", "toy", "--again", "some"], "--again"),
        (["run", "shift", "toy", "--machine", "../x"], "--machine"),
    ],
)
def test_wrong_use_is_one_line(toy, capsys, words, said):
    assert main(words) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert said in out.err
    assert out.err.count("\n") == 1


def test_a_dataset_without_images_is_refused_for_running(toy, capsys):
    for name in DATASET["cases"]:
        (toy / "corpus" / "toy" / name / "moving.ome.zarr").rename(toy / name)
    assert main(["run", "shift", "toy"]) == 2
    assert "no images to register" in capsys.readouterr().err


def test_an_interrupted_run_leaves_nothing_behind(toy):
    method = toy / "share" / "methods" / "shift"
    (method / "run.sh").write_text(f"setsid sleep 60 & touch {toy}/started; sleep 60\n")
    code = "import sys; from fidopt.cli import main; sys.exit(main(['run', 'shift', 'toy']))"
    environment = {**os.environ, "TMPDIR": str(toy / "tmp")}
    (toy / "tmp").mkdir()
    running = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    while not (toy / "started").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(2)
    running.communicate(timeout=20)
    assert running.returncode == 130
    assert list((toy / "tmp").iterdir()) == []
    assert list((toy / "results").glob("*/shift/*.json")) == []
