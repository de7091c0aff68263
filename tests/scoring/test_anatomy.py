"""The anatomy that a synthesis keeps: a segmentation method looks at both images; where it cannot, it is said why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from fidopt import corpus, resources
from fidopt.errors import MissingError
from fidopt.resources import packaged_share
from fidopt.runner import environment, methods
from fidopt.scoring.output_submission import Outputs
from tests.scoring.made import GRID, describe, store, write_output

pytest.importorskip("konfai", reason="KonfAI is not installed")

BONE = (slice(2, 6), slice(3, 8), slice(3, 8))
#: Calls what is above 50 a bone and what is above 20 a muscle.
SEGMENTS = """
import json, sys
import numpy as np, SimpleITK as sitk
image = sitk.ReadImage(sys.argv[1])
values = sitk.GetArrayViewFromImage(image)
labels = sitk.GetImageFromArray(np.where(values > 50, 3, np.where(values > 20, 5, 0)).astype(np.uint8))
labels.CopyInformation(image)
sitk.WriteImage(labels, sys.argv[2] + "/labels.nii.gz")
json.dump({"3": "bone", "5": "muscle"}, open(sys.argv[2] + "/labels.json", "w"))
"""
METHOD = {
    "name": "finder",
    "version": "1",
    "licence": {"code": "MIT"},
    "tasks": ["segmentation"],
    "dimensions": [3],
    "modalities": ["ct"],
    "reference": "-",
}


@pytest.fixture
def score(tmp_path, monkeypatch):
    """Return a function from how the method is set up and run to the row of a shifted image, and what was said."""

    def _score(run=SEGMENTS, setup='mkdir -p "$FIDOPT_ENV"', **changes):
        monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
        describe(tmp_path / "share", "synthesis", geometry="finder")
        folder = tmp_path / "share" / "methods" / "finder"
        folder.mkdir(parents=True)
        (folder / "method.json").write_text(json.dumps(METHOD | changes))
        (folder / "setup.sh").write_text(setup)
        (folder / "find.py").write_text(run)
        (folder / "run.sh").write_text(f'exec {sys.executable} "$(dirname "$0")/find.py" "$1" "$2"')
        target, image = np.zeros((2, *GRID.shape), np.float32)
        target[BONE] = 80
        image[BONE[0], BONE[1], 4:9] = 80
        target[9:11, 3:8, 3:8] = 30
        store(tmp_path / "corpus" / "made" / "one" / "truth" / "target.ome.zarr", target)
        roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
        dataset = corpus.dataset("made", roots)
        path, said = write_output(tmp_path / "outputs" / "one", image), []
        return Outputs(dataset, roots, say=said.append).score(corpus.case(dataset, "one", roots), path), said

    return _score


def test_what_the_method_finds_in_both_images_is_compared_structure_by_structure(score):
    row, _ = score()
    assert row.error is None
    assert row.labels["dice_geometry"] == {"1": pytest.approx(2 * 80 / 200), "2": 0.0}
    assert row.metrics["dice_geometry"] == pytest.approx(0.4)
    assert row.labels["hd95_geometry"] == {"1": pytest.approx(1.0), "2": None}
    assert row.metrics["hd95_geometry"] == pytest.approx(1.0)
    assert row.metrics["mae"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"setup": "echo needs its weights, and they could not be had >&2; exit 1"}, "needs its weights, and they"),
        ({"run": "raise SystemExit('no such model')"}, "finder did not segment the image: no such model"),
        ({"tasks": ["registration"]}, "truth.geometry names finder, which does registration"),
        ({"run": SEGMENTS.replace('"5": "muscle"', '"6": "muscle"')}, "does not name: [5]"),
        ({"run": SEGMENTS.replace("labels.CopyInformation(image)", "")}, "on another grid than its image's"),
    ],
)
def test_where_it_cannot_look_the_errors_are_scored_and_one_line_says_why(score, words, message):
    row, said = score(**words)
    assert row.error is None
    assert (row.metrics["dice_geometry"], row.metrics["hd95_geometry"]) == (None, None)
    assert message in row.reasons["dice_geometry"]
    assert "\n" not in row.reasons["dice_geometry"]
    assert row.metrics["mae"] > 0
    assert sum("the anatomy is not compared" in one for one in said) == 1


PORT = """#!{python}
import sys
from pathlib import Path
import SimpleITK as sitk
words = sys.argv[1:]
assert words[0] == "infer" and words[1].endswith("apps/total") and words[2] == "-i" and words[4:6] == ["-o", "Output"]
assert words[6:] == ["--cpu", "2"], words
image = sitk.ReadImage(words[3])
Path("Output").mkdir()
sitk.WriteImage(sitk.Cast(image > 50, sitk.sitkUInt8) * 7, "Output/Segmentation.mha")
"""
HUB = """
from types import SimpleNamespace
def get_app_repository_info(app, force_update):
    entries = {0: SimpleNamespace(name="background"), 7: SimpleNamespace(name="Kidney Left")}
    return SimpleNamespace(get_terminology=lambda: entries)
"""


def test_the_port_s_adapter_writes_its_label_map_and_the_app_s_own_names(tmp_path):
    env = tmp_path / "env"
    (env / "bin").mkdir(parents=True)
    (env / "apps" / "total").mkdir(parents=True)
    (env / "bin" / "python").symlink_to(sys.executable)
    (env / "bin" / "konfai-apps").write_text(PORT.format(python=sys.executable))
    (env / "bin" / "konfai-apps").chmod(0o755)
    (tmp_path / "konfai_apps").mkdir()
    (tmp_path / "konfai_apps" / "app_repository.py").write_text(HUB)
    values = np.zeros(GRID.shape, np.float32)
    values[BONE] = 80
    image = write_output(tmp_path / "in", values)
    for name in ("out", "work"):
        (tmp_path / name).mkdir()
    told = {"FIDOPT_ENV": str(env), "FIDOPT_DEVICE": "cpu", "FIDOPT_THREADS": "2", "PYTHONPATH": str(tmp_path)}
    script = packaged_share() / "methods" / "totalsegmentator_konfai" / "run.sh"
    assert os.access(script, os.X_OK)
    packages = str(Path(np.__file__).parents[1])
    told["PYTHONPATH"] += os.pathsep + packages
    subprocess.run([script, image, tmp_path / "out"], env={**os.environ, **told}, cwd=tmp_path / "work", check=True)
    labels = sitk.ReadImage(str(tmp_path / "out" / "labels.nii.gz"))
    np.testing.assert_array_equal(sitk.GetArrayViewFromImage(labels), np.where(values > 50, 7, 0))
    assert labels.GetOrigin() == pytest.approx(sitk.ReadImage(str(image)).GetOrigin(), abs=1e-6)
    assert json.loads((tmp_path / "out" / "labels.json").read_text()) == {"7": "kidney_left"}


def test_the_port_without_its_models_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    monkeypatch.setenv("FIDOPT_TOTALSEGMENTATOR_APPS", str(tmp_path / "nowhere"))
    roots = resources.roots()
    chosen = methods.find("totalsegmentator_konfai", roots)
    with pytest.raises(MissingError, match="needs its models, and FIDOPT_TOTALSEGMENTATOR_APPS names") as caught:
        environment.ensure(chosen.method, chosen.folder, roots, say=print)
    assert "\n" not in str(caught.value)
