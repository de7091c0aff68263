"""Adapters of tools that cannot be had here, run around a stand-in that writes a known motion as the tool would.

What each stand-in writes follows the tool's own source; NOTES.md of each method says which.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fidopt import resources
from fidopt.check.scenes import scenes
from fidopt.check.synthetic import build_case, judge_file
from fidopt.resources import packaged_share
from fidopt.runner import methods
from fidopt.runner.staging import stage

SCENE = next(scene for scene in scenes((3,)) if scene.name == "two_grids")
#: Of a stand-in: the motion in voxels along an image's axes, and the image's size, x first.
STEPS = f"""
import sys
from pathlib import Path
import nibabel, numpy as np
import SimpleITK as sitk
motion = np.array({SCENE.motion})
words = dict(zip(sys.argv[1:-1], sys.argv[2:]))
def steps(path):
    image = sitk.ReadImage(str(path))
    matrix = np.reshape(image.GetDirection(), (3, 3)) * np.array(image.GetSpacing())
    return np.linalg.inv(matrix) @ motion, image.GetSize()
def saved(values, path):
    nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), np.eye(4)), str(path))
"""
DEEDS = """
step, size = steps(words["-F"])
assert sitk.ReadImage(words["-M"]).GetSize() == size
assert np.ptp(sitk.ReadImage(words["-F"]).GetSpacing()) < 1e-3
coarse = [n // 4 for n in size]
volumes = [np.full(coarse[::-1], value, "<f4") for value in step[[1, 0, 2]]]
np.stack(volumes).tofile(words["-O"] + "_displacements.dat")
"""
UNIGRADICON = """
assert words["--fixed_modality"] == "ct"
assert Path("network_weights").is_dir()
assert ("--fixed_segmentation" in words) == LUNGS
whole = sitk.CompositeTransform(3)
whole.AddTransform(sitk.TranslationTransform(3, motion.tolist()))
sitk.WriteTransform(whole, words["--transform_out"])
"""
CORRFIELD = """
step, size = steps(words["-F"])
assert sitk.ReadImage(words["-m"]).GetSize() == size
saved(np.broadcast_to(step, (1, *size, 3)), words["-O"] + ".nii.gz")
"""
ANATOMIX = """
step, size = steps(words["--fixed"])
assert sitk.ReadImage(words["--moving"]).GetSize() == size
assert words["--fixed_minclip"] == "-450"
saved(np.broadcast_to(step, (*size, 3)), Path(words["--result_path"]) / "disp_moving_g2_hw1_l0.75.nii.gz")
"""
IMPACT = """
assert sys.argv[1:3] == ["register", "FireANTs_SyN"]
image = sitk.ReadImage(words["-f"])
field = sitk.Compose([sitk.Image(image.GetSize(), sitk.sitkFloat64) + float(v) for v in motion])
field.CopyInformation(image)
folder = Path(words["-o"]) / "P000"
folder.mkdir(parents=True)
transform = sitk.DisplacementFieldTransform(sitk.Cast(field, sitk.sitkVectorFloat64))
sitk.WriteTransform(transform, str(folder / "Transform.h5"))
"""
STANDINS = {
    "deeds": ("deedsBCV", DEEDS, {}),
    "unigradicon": ("bin/unigradicon-register", "LUNGS = False" + UNIGRADICON, {}),
    "multigradicon": ("bin/unigradicon-register", "LUNGS = False" + UNIGRADICON, {}),
    "unigradicon_lungmask": ("bin/unigradicon-register", "LUNGS = True" + UNIGRADICON, {}),
    "multigradicon_lungmask": ("bin/unigradicon-register", "LUNGS = True" + UNIGRADICON, {}),
    "corrfield": ("source/corrfield.py", CORRFIELD, {}),
    "anatomix_convexadam": (
        "source/anatomix/registration/run_convex_adam_with_network_feats.py",
        ANATOMIX,
        {},
    ),
    "impact_reg": ("bin/impact-reg-konfai", IMPACT, {"preset": "FireANTs_SyN"}),
}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Return the pair on two grids, as it is built."""
    return build_case(SCENE, "ct", tmp_path_factory.mktemp("pair") / "two_grids")


def made(folder: Path, program: str, code: str) -> Path:
    """Return an environment whose Python is this one and whose tool is a stand-in."""
    for name, text in (("bin/python", f'exec {sys.executable} "$@"'), (program, STEPS + code)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        start = "#!/bin/sh\n" if name == "bin/python" else f"#!{sys.executable}\n"
        path.write_text(start + text)
        path.chmod(0o755)
    (folder / "network_weights").mkdir()
    return folder


def run(name: str, case, folder: Path, settings: dict, *, masks: bool = True) -> subprocess.CompletedProcess:
    method = methods.find(name, resources.roots()).method
    program, code, _ = STANDINS[name]
    where = made(folder / "env", program, code)
    for part in ("inputs", "output", "work"):
        (folder / part).mkdir()
    inputs = stage(case, method, folder / "inputs")
    told = {
        "FIDOPT_ENV": str(where),
        "FIDOPT_THREADS": "1",
        "FIDOPT_SEED": "0",
        "FIDOPT_DEVICE": "cpu",
        "FIDOPT_DIMENSION": "3",
        "FIDOPT_SETTINGS": json.dumps(settings),
        "FIDOPT_FIXED_MODALITY": "ct",
        "FIDOPT_MOVING_MODALITY": "ct",
        **({f"FIDOPT_{role.upper()}": str(path) for role, path in inputs.masks.items()} if masks else {}),
    }
    words = ["bash", str(packaged_share() / "methods" / name / "run.sh"), str(inputs.fixed), str(inputs.moving)]
    return subprocess.run(
        [*words, str(folder / "output")],
        cwd=folder / "work",
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", STANDINS)
def test_what_a_tool_writes_becomes_the_field_of_the_contract(name, case, tmp_path):
    done = run(name, case, tmp_path, STANDINS[name][2])
    assert done.returncode == 0, done.stderr[-2000:]
    finding = judge_file(tmp_path / "output" / "DVF.nii.gz", case, SCENE)
    assert finding.state == "right", finding
    assert finding.residual < 1e-3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("corrfield", "fixed lung mask"),
        ("unigradicon_lungmask", "both lung masks"),
        ("multigradicon_lungmask", "both lung masks"),
    ],
)
def test_a_method_of_lungs_says_that_their_masks_are_missing(name, case, tmp_path, said):
    done = run(name, case, tmp_path, {}, masks=False)
    assert done.returncode != 0
    assert said in done.stderr


def test_impact_reg_without_a_preset_says_how_to_name_one(case, tmp_path):
    done = run("impact_reg", case, tmp_path, {})
    assert done.returncode != 0
    assert "impact_reg@PRESET" in done.stderr


def setup(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    share = packaged_share() / "methods"
    told = {
        "FIDOPT_ENV": str(folder / "env"),
        "FIDOPT_PYTHON": sys.executable,
        "FIDOPT_UV": "",
        "FIDOPT_INSTALL": str(share / "install.sh"),
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FIDOPT_")}
    return subprocess.run(
        ["bash", str(share / name / "setup.sh")],
        env={**kept, **told, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("deeds", "FIDOPT_DEEDS_BIN"),
        ("corrfield", "FIDOPT_CORRFIELD_SOURCE"),
        ("anatomix_convexadam", "FIDOPT_ANATOMIX_SOURCE"),
    ],
)
def test_what_cannot_be_had_is_said_in_one_line_with_the_variable_that_names_it(name, variable, tmp_path):
    for variables in ({}, {variable: str(tmp_path / "nowhere")}):
        done = setup(name, tmp_path, **variables)
        assert done.returncode != 0
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert f"{name} needs " in done.stderr
        assert variable in done.stderr
        assert not (tmp_path / "env").exists()


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("unigradicon", "FIDOPT_UNIGRADICON_WEIGHTS"),
        ("multigradicon_lungmask", "FIDOPT_MULTIGRADICON_WEIGHTS"),
        ("impact_reg", "FIDOPT_IMPACTREG_PRESETS"),
    ],
)
def test_a_variable_that_names_nothing_is_refused_before_anything_is_installed(name, variable, tmp_path):
    done = setup(name, tmp_path, **{variable: str(tmp_path / "nowhere")})
    assert done.returncode != 0
    assert variable in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "env").exists()


def test_deeds_reads_its_control_points_as_the_program_does(tmp_path):
    # Index times control points over voxels, the last one holding: by hand along one axis of 10 voxels and 2 points.
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("deeds_register", packaged_share() / "methods" / "deeds" / "register.py")
    register = module_from_spec(spec)
    spec.loader.exec_module(register)
    at = np.arange(10) * (2 / 10)
    read = register.stretched(np.array([[[[1.0]], [[3.0]]]]), 1, at)[0, :, 0, 0]
    np.testing.assert_allclose(read, [1, 1.4, 1.8, 2.2, 2.6, 3, 3, 3, 3, 3])
