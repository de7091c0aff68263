"""The honest baselines of segmentation and synthesis, run as the contract has it around this Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from fidopt.check.scenes import scenes
from fidopt.resources import packaged_share

SCENE = next(scene for scene in scenes((3,)) if scene.name == "two_grids")


def environment(folder: Path) -> Path:
    python = folder / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"')
    python.chmod(0o755)
    return folder / "env"


def image_of(array: np.ndarray, grid) -> sitk.Image:
    image = sitk.GetImageFromArray(array)
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)
    return image


def run(name: str, env: Path, image: Path, out: Path) -> None:
    out.mkdir()
    told = {"FIDOPT_ENV": str(env), "FIDOPT_THREADS": "1", "FIDOPT_SEED": "0"}
    script = packaged_share() / "methods" / name / "run.sh"
    done = subprocess.run(
        ["bash", str(script), str(image), str(out)],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_histogram_is_matched_rank_for_rank_by_hand():
    spec = spec_from_file_location("h", packaged_share() / "methods" / "histogram_match" / "synthesise.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Ranks 1/6, 1/2, 5/6 of quantiles that run from 0 to 60; two equal values share the middle of theirs.
    quantiles = np.array([0.0, 30.0, 60.0])
    np.testing.assert_allclose(module.matched(np.array([5, -7, 100]), quantiles), [30, 10, 50])
    np.testing.assert_allclose(module.matched(np.array([1, 1, 2, 3]), quantiles), [15, 15, 37.5, 52.5])
    np.testing.assert_allclose(module.matched(np.array([4, 4]), quantiles), [30, 30])


def test_an_image_turned_dark_for_bright_gets_its_greys_back_in_order(tmp_path):
    grey = SCENE.images()["fixed"]
    env = environment(tmp_path)
    reference, source = tmp_path / "reference.nii.gz", tmp_path / "source.nii.gz"
    sitk.WriteImage(image_of(2 * grey - 1000, SCENE.fixed), str(reference))
    sitk.WriteImage(image_of(np.sqrt(grey), SCENE.fixed), str(source))
    quantiles = packaged_share() / "methods" / "histogram_match" / "quantiles.py"
    subprocess.run([sys.executable, str(quantiles), str(reference), str(env / "quantiles.json")], check=True)
    run("histogram_match", env, source, tmp_path / "out")
    made = sitk.ReadImage(str(tmp_path / "out" / "image.nii.gz"))
    inside = SCENE.inside()
    assert np.abs(sitk.GetArrayFromImage(made) - (2 * grey - 1000))[inside].mean() < 2
    np.testing.assert_allclose(made.GetOrigin(), SCENE.fixed.origin, atol=1e-4)
    np.testing.assert_allclose(made.GetDirection(), SCENE.fixed.direction, atol=1e-6)


def test_the_labels_of_a_moved_atlas_are_carried_to_the_image(tmp_path):
    images = SCENE.images()
    env = environment(tmp_path)
    (env / "atlas").mkdir()
    # The brighter half of the body as a label: what has to be found is where it lies.
    truth, labels = ((images[side] > 140).astype(np.uint8) for side in ("fixed", "moving"))
    sitk.WriteImage(image_of(images["moving"], SCENE.moving), str(env / "atlas" / "image.nii.gz"))
    sitk.WriteImage(image_of(labels, SCENE.moving), str(env / "atlas" / "labels.nii.gz"))
    (env / "atlas" / "labels.json").write_text(json.dumps({"1": "bright"}))
    sitk.WriteImage(image_of(images["fixed"], SCENE.fixed), str(tmp_path / "image.nii.gz"))
    run("atlas_labels", env, tmp_path / "image.nii.gz", tmp_path / "out")
    made = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "out" / "labels.nii.gz")))
    assert json.loads((tmp_path / "out" / "labels.json").read_text()) == {"1": "bright"}
    unmoved = sitk.Resample(
        image_of(labels, SCENE.moving), image_of(truth, SCENE.fixed), sitk.Transform(), sitk.sitkNearestNeighbor, 0
    )
    assert dice(made, truth) > 0.85 > dice(sitk.GetArrayFromImage(unmoved), truth)


def dice(one: np.ndarray, two: np.ndarray) -> float:
    return float(2 * ((one == 1) & (two == 1)).sum() / ((one == 1).sum() + (two == 1).sum()))


@pytest.mark.parametrize(
    ("name", "variable"),
    [("histogram_match", "FIDOPT_HISTOGRAM_REFERENCE"), ("atlas_labels", "FIDOPT_ATLAS_LABELS")],
)
def test_what_a_baseline_rests_on_is_asked_for_in_one_line(name, variable, tmp_path):
    share = packaged_share() / "methods"
    told = {"FIDOPT_ENV": str(tmp_path / "env"), "FIDOPT_PYTHON": sys.executable}
    told["FIDOPT_INSTALL"] = str(share / "install.sh")
    for more in ({}, {variable: str(tmp_path / "nowhere")}):
        done = subprocess.run(
            ["bash", str(share / name / "setup.sh")],
            env={"PATH": os.environ["PATH"], **told, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert variable in done.stderr
        assert done.stderr.count("\n") == 1
