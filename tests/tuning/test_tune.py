"""``fidopt tune`` as a person calls it, on real development cases, with a small real method that takes settings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fidopt.cli import main
from fidopt.corpus import dataset
from fidopt.resources import roots as folders
from fidopt.runner import methods
from tests.runs.conftest import method_document

pytest.importorskip("konfai", reason="KonfAI is not installed")

JSON = ("--machine", "here", "--json")
CASES = ("hippocampus_mr/008_045", "hippocampus_mr/023_036")
#: ITK's demons on images brought onto one grid; its settings are the iterations and the width of the smoothing.
DEMONS = """
import json, os, sys
import SimpleITK as sitk
fixed, moving = (sitk.ReadImage(path, sitk.sitkFloat32) for path in sys.argv[1:3])
settings = json.loads(os.environ["FIDOPT_SETTINGS"])
demons = sitk.DemonsRegistrationFilter()
demons.SetNumberOfThreads(1)
demons.SetNumberOfIterations(settings.get("iterations", 1))
demons.SetStandardDeviations(settings.get("sigma", 1.5))
matched = sitk.HistogramMatching(sitk.Resample(moving, fixed), fixed)
sitk.WriteImage(sitk.Cast(demons.Execute(fixed, matched), sitk.sitkVectorFloat32), sys.argv[3] + "/DVF.nii.gz")
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, shared_data) -> Path:
    """Return a corpus with two development cases of the hippocampus, built once."""
    root = tmp_path_factory.mktemp("corpus")
    archives = str(shared_data("hippocampus_mr").parent)
    names = [case.partition("/")[2] for case in CASES]
    words = ["build", "hippocampus_mr", *names, "--development", "--corpus", str(root), "--archives", archives]
    assert main(words) == 0
    return root


@pytest.fixture
def here(tmp_path, corpus, monkeypatch) -> Path:
    """Return a working folder with the method ``little`` and a grid of its settings."""
    for variable in ("SHARE", "CORPUS", "ARCHIVES", "RESULTS", "MACHINE", "ENVS"):
        monkeypatch.delenv(f"FIDOPT_{variable}", raising=False)
    monkeypatch.setenv("FIDOPT_SHARE", str(tmp_path / "share"))
    monkeypatch.setenv("FIDOPT_CORPUS", str(corpus))
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    monkeypatch.chdir(tmp_path)
    method("little", DEMONS, "run.py", tmp_path / "share")
    (tmp_path / "grid.yml").write_text("grid: {iterations: [1, 40]}\n")
    return tmp_path


def method(name: str, code: str, script: str, share: Path, **changes) -> None:
    folder = share / "methods" / name
    folder.mkdir(parents=True)
    (folder / "method.json").write_text(json.dumps(method_document(name, dimensions=[3], **changes), indent=2))
    (folder / "setup.sh").write_text('mkdir -p "$FIDOPT_ENV"\n')
    (folder / "run.sh").write_text(f'exec {sys.executable} "$(dirname "$0")/{script}" "$@"\n')
    (folder / script).write_text(code)


def tune(capsys, *words: str, code: int = 0, name: str = "little") -> dict:
    assert main(["tune", name, "hippocampus", *words, *JSON]) == code
    return json.loads(capsys.readouterr().out)


def test_settings_are_compared_written_and_never_run_twice(here, capsys):
    assert main(["tune", "little", "hippocampus", "--settings", "grid.yml", "--write", "forty", *JSON]) == 0
    captured = capsys.readouterr()
    assert "L2R_HippocampusMR is left out: it has no development cases" in captured.err
    first = json.loads(captured.out)
    assert (first["ran"], first["kept"], first["failed"]) == (6, 0, 0)
    assert first["cases"] == list(CASES)
    assert list(first["settings"]) == ["defaults", "iterations=1", "iterations=40"]
    result = first["datasets"]["hippocampus_mr"]
    assert result["metric"] == "dice"
    by_name = {one["name"]: one for one in result["settings"]}
    # One iteration is the default; forty bring the labels together.
    assert by_name["iterations=1"]["against"]["cases"] == dict.fromkeys(result["cases"], 0.0)
    held = by_name["iterations=40"]["against"]
    assert held["better"] == 2
    assert held["difference"] > 0.02
    assert held["low"] < held["difference"] < held["high"]
    assert {one["name"]: one["same"] for one in first["overall"]}["iterations=1"] is True
    assert first["best"] == "iterations=40"

    rows = sorted((here / "tuning").rglob("*.json"))
    assert len(rows) == 7  # six rows and the machine
    assert not (here / "results").exists()
    assert not list((here / "tuning").rglob("*.png"))
    row = json.loads(next(path for path in rows if path.name != "machine.json").read_text())
    assert (row["method"], row["dataset"]) == ("little", "hippocampus_mr")
    assert 1 <= row["at_once"] <= (os.cpu_count() or 1)
    assert row["row"]["method_version"] == "1"

    variant = methods.find("little@forty", folders()).method.variants["forty"]
    assert (variant.tier, variant.datasets, variant.tuned_on) == (2, ("hippocampus_mr",), CASES)
    assert variant.settings == {"iterations": 40}
    assert "fidopt tune little hippocampus" in variant.source
    assert "the best of 3 settings" in variant.source
    assert "hippocampus_mr: dice +0." in variant.source

    # The same again runs nothing, though method.json has changed; another setting runs alone, and a torn row again.
    assert tune(capsys, "--settings", "grid.yml")["ran"] == 0
    (here / "grid.yml").write_text("grid: {iterations: [1, 40, 5]}\n")
    next(path for path in rows if path.name != "machine.json").write_text("{")
    assert (again := tune(capsys, "--settings", "grid.yml"))["ran"] == 3
    assert again["kept"] == 5
    # Other code makes every row anew.
    (here / "share" / "methods" / "little" / "run.py").write_text(DEMONS + "# changed\n")
    assert tune(capsys, CASES[0], "--settings", "grid.yml")["ran"] == 4


def test_a_person_gets_a_table_and_where_the_rows_are(here, capsys):
    words = ["tune", "little", "hippocampus", CASES[0], "--settings", "grid.yml", "--machine", "here"]
    assert main(words) == 0
    captured = capsys.readouterr()
    for said in ("little on 1 development case of hippocampus_mr", "higher Dice is better", "iterations=40", "3 run"):
        assert said in captured.out
    for head in ("HD95 mm", "SDlogJ", "folds %", "time s"):
        assert head in captured.out
    assert "best by mean rank: iterations=40, of 3 settings; other cases will show less" in captured.out
    assert "failed counts" not in captured.out
    assert "iterations=1 gives what the defaults give" in captured.err
    assert f"rows in {here / 'tuning' / 'here' / 'little'}" in captured.out


def test_no_variant_is_written_where_the_defaults_are_not_beaten(here, capsys):
    (here / "grid.yml").write_text("settings: {still: {iterations: 1, sigma: 1.5}}\n")
    found = tune(capsys, CASES[0], "--settings", "grid.yml", "--write", "never", code=1)
    assert found["variant"] is None
    assert "never" not in (here / "share" / "methods" / "little" / "method.json").read_text()


def test_a_failure_is_a_row_and_runs_again_when_asked(here, capsys):
    broken = 'import os, sys; sys.exit("broken" if "40" in os.environ["FIDOPT_SETTINGS"] else 0)\n'
    (here / "share" / "methods" / "little" / "run.py").write_text(broken + DEMONS.replace("40", "41"))
    assert main(["tune", "little", "hippocampus", CASES[0], "--settings", "grid.yml", "--machine", "here"]) == 0
    captured = capsys.readouterr()
    assert "iterations=40: failed (run): run.sh ended with exit code 1; the last it printed: broken" in captured.err
    # Nothing is known of settings whose every case failed, nor does the best of them promise anything.
    assert "gives what the defaults give" not in captured.err
    assert "a case that failed counts as if nothing had been done" in captured.out
    assert "best by mean rank: defaults, of 3 settings\n" in captured.out
    found = tune(capsys, CASES[0], "--settings", "grid.yml")
    assert (found["ran"], found["failed"]) == (0, 3)  # what ended well wrote no field
    assert tune(capsys, CASES[0], "--settings", "grid.yml")["ran"] == 0
    assert tune(capsys, CASES[0], "--settings", "grid.yml", "--again", "failed")["ran"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("little", "hippocampus", "--settings", "none.yml"), "none.yml"),
        (("little", "hippo", "--settings", "grid.yml"), "did you mean 'hippocampus'?"),
        (("litle", "hippocampus", "--settings", "grid.yml"), "did you mean 'little'?"),
        (("little", "hippocampus", "--settings", "grid.yml", "--tuning", "results/x"), "where no row of tuning may be"),
        (("little", "lung", "--settings", "grid.yml"), "has no built development case"),
    ],
)
def test_wrong_use_is_one_line_and_code_two(here, capsys, words, said):
    assert main(["tune", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err.splitlines()[-1]
    assert not list((here / "tuning").rglob("*.json"))


def test_a_test_case_is_refused(here, capsys):
    name = next(iter(dataset("hippocampus_mr", folders()).cases))
    assert main(["tune", "little", "hippocampus", f"hippocampus_mr/{name}", "--settings", "grid.yml"]) == 2
    assert "is a test case: settings are chosen on development cases alone" in capsys.readouterr().err


def test_an_interrupted_run_ends_what_it_started_and_writes_no_row(here):
    waits = 'import os, sys, time; open(os.environ["TOLD"], "a").write(f"{os.getpid()}\\n"); time.sleep(60)\n'
    method("slow", f"# FIDOPT_SETTINGS\n{waits}", "run.py", here / "share")
    told = {**os.environ, "TOLD": str(here / "pids"), "PYTHONPATH": os.pathsep.join(sys.path)}
    start = "import sys; from fidopt.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", start, "tune", "slow", "hippocampus", "--settings", "grid.yml", "--machine", "h"]
    with (here / "said").open("w") as said:
        going = subprocess.Popen(words, env=told, stdout=said, stderr=said, start_new_session=True)
        until = time.monotonic() + 90
        while not (here / "pids").exists() and time.monotonic() < until and going.poll() is None:
            time.sleep(0.1)
        going.send_signal(signal.SIGINT)
        assert going.wait(30) == 130, (here / "said").read_text()
    assert not [pid for pid in (here / "pids").read_text().split() if psutil.pid_exists(int(pid))]
    assert not [path for path in (here / "tuning").rglob("*.json") if path.name != "machine.json"]


@pytest.mark.slow
def test_the_workers_of_a_cluster_make_the_rows_that_one_process_makes(here, capsys):
    shutil.copytree(here / "share", here / "other")
    alone = tune(capsys, "--settings", "grid.yml")
    there = tune(capsys, "--settings", "grid.yml", "--tuning", "far", "--cluster", "local.yml")
    assert (there["ran"], there["failed"]) == (6, 0)
    for document in (alone, there):
        for one in document["datasets"]["hippocampus_mr"]["settings"]:
            del one["time_s"]
    assert alone["datasets"] == there["datasets"]
    assert alone["overall"] == there["overall"]
