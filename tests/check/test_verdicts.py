"""fidopt check as it is called: methods that write fields of every kind, and the verdicts kept beside them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest

from fidopt import resources
from fidopt.check import judging, keeping
from fidopt.check.readings import Reading
from fidopt.check.scenes import Scene, scenes
from fidopt.check.synthetic import build_case, judge_file
from fidopt.cli import main
from fidopt.descriptors.base import load
from fidopt.descriptors.verdicts import Verdicts
from fidopt.images.nifti import write_field
from fidopt.runner import methods

SCENES = {scene.name: scene for scene in scenes((2, 3))}
METHOD = {
    "version": "1",
    "licence": {"code": "MIT", "weights": None},
    "tasks": ["registration"],
    "dimensions": [3],
    "modalities": ["mr"],
    "threads": 1,
    "timeout_s": 60,
    "reference": "the tests",
}


def constant(scene: Scene, motion=None) -> np.ndarray:
    vectors = np.empty((scene.ndim, *scene.fixed.shape))
    vectors[:] = np.reshape(scene.motion if motion is None else motion, (-1, *[1] * scene.ndim))
    return vectors


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return build_case(SCENES["one_grid"], "ct", tmp_path_factory.mktemp("pair") / "one_grid")


def rewritten(path: Path, *, intent: int, axes=None, affine=None) -> Path:
    """Write a field's file again with another intent, its array's axes in another order, or another geometry."""
    image = nibabel.load(path)
    values = np.asarray(image.dataobj)
    values = values if axes is None else axes(values)
    made = nibabel.Nifti1Image(values, image.affine if affine is None else affine)
    made.header["intent_code"] = intent
    nibabel.save(made, path)
    return path


def test_a_file_of_the_contract_is_right(case, tmp_path):
    scene = SCENES["one_grid"]
    write_field(tmp_path / "DVF.nii.gz", constant(scene), scene.fixed)
    assert judge_file(tmp_path / "DVF.nii.gz", case, scene).state == "right"


@pytest.mark.parametrize(
    ("signs", "intent", "axes", "said"),
    [
        # As ITK's convention of intent 1006 has it: the numbers themselves are RAS.
        ((-1, -1, 1), 1006, None, "under intent 1007 instead of 1006, with x and y negated (RAS, not LPS)"),
        ((1, 1, 1), 1006, None, "under intent 1007 instead of 1006, as written"),
        ((1, 1, 1), 0, None, "under intent 1007 instead of 0, as written"),
        ((1, 1, 1), 0, lambda v: v.reshape(40, 36, 34, 3), "under intent 1007 instead of 0, as written"),
        ((1, 1, 1), 0, lambda v: v.reshape(40, 36, 34, 3).transpose(2, 1, 0, 3), "with the array's axes as x, y, z"),
        ((1, 1, 1), 0, lambda v: v.reshape(40, 36, 34, 3).transpose(3, 0, 1, 2), "with the components as the last"),
    ],
)
def test_a_file_that_is_refused_is_told_what_its_numbers_mean(case, tmp_path, signs, intent, axes, said):
    scene = SCENES["one_grid"]
    path = tmp_path / "DVF.nii.gz"
    write_field(path, constant(scene, np.array(scene.motion) * signs), scene.fixed)
    finding = judge_file(rewritten(path, intent=intent, axes=axes), case, scene)
    assert finding.state == "refused"
    assert any(said in words for words in finding.conventions), finding


def test_a_file_without_the_fixed_images_geometry_is_refused_and_still_read(case, tmp_path):
    scene = SCENES["one_grid"]
    path = tmp_path / "DVF.nii.gz"
    write_field(path, constant(scene), scene.fixed)
    finding = judge_file(rewritten(path, intent=1007, affine=np.eye(4)), case, scene)
    assert finding.state == "refused"
    assert "another grid" in finding.said
    assert finding.conventions == ("as written",)


def test_numbers_that_mean_nothing_are_refused_without_a_guess(case, tmp_path):
    scene = SCENES["one_grid"]
    path = tmp_path / "DVF.nii.gz"
    write_field(path, np.random.default_rng(0).normal(0, 5, (3, *scene.fixed.shape)), scene.fixed)
    finding = judge_file(rewritten(path, intent=0), case, scene)
    assert (finding.state, finding.conventions) == ("refused", ())


@pytest.fixture
def share(tmp_path, monkeypatch) -> Path:
    for name in ("FIDOPT_CORPUS", "FIDOPT_RESULTS", "FIDOPT_MACHINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIDOPT_SHARE", str(tmp_path / "share"))
    monkeypatch.setenv("FIDOPT_ENVS", str(tmp_path / "envs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "share"


def method(share: Path, name: str, run: str, **changes) -> Path:
    folder = share / "methods" / name
    folder.mkdir(parents=True)
    (folder / "method.json").write_text(json.dumps({"name": name, **METHOD, **changes}))
    (folder / "setup.sh").write_text('mkdir -p "$FIDOPT_ENV"\n')
    (folder / "run.sh").write_text("set -eu\n" + run)
    for scene in SCENES.values():
        write_field(folder / f"{scene.name}.nii.gz", constant(scene), scene.fixed)
    return folder


#: Picks the field by the moving image's size: the first of the two volumes' grids is the fixed one's.
PICK = """
if cmp -s <(zcat "$1" | head -c 348 | tail -c +41 | head -c 8) <(zcat "$2" | head -c 348 | tail -c +41 | head -c 8)
then cp "$(dirname "$0")/one_grid.nii.gz" "$3/DVF.nii.gz"
else cp "$(dirname "$0")/OTHER.nii.gz" "$3/DVF.nii.gz"
fi
"""


def test_a_method_that_is_right_passes_and_its_verdicts_are_kept_beside_it(share, capsys):
    folder = method(share, "good", PICK.replace("OTHER", "two_grids"))
    assert main(["check", "good", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["passed"]
    kept = load(Verdicts, folder / "check.json").lines["good"]
    assert [(name, verdict.state) for name, verdict in kept.pairs.items()] == [
        ("one_grid", "right"),
        ("two_grids", "right"),
    ]
    (folder / "run.sh").write_text("exit 1\n")
    assert keeping.read(methods.find("good", resources.roots())) is None


def test_a_copied_folders_verdicts_are_not_the_copys(share):
    folder = method(share, "good", 'cp "$(dirname "$0")/colour.nii.gz" "$3/DVF.nii.gz"\n', dimensions=[2])
    assert main(["check", "good"]) == 0
    copy = Path(shutil.copytree(folder, share / "methods" / "copy"))
    (copy / "method.json").write_text((folder / "method.json").read_text().replace("good", "copy"))
    assert keeping.read(methods.find("copy", resources.roots())) is None
    assert main(["check", "copy"]) == 0
    assert list(load(Verdicts, copy / "check.json").lines) == ["copy"]


def test_a_verdict_of_an_earlier_check_does_not_stand(share, monkeypatch):
    method(share, "good", 'cp "$(dirname "$0")/colour.nii.gz" "$3/DVF.nii.gz"\n', dimensions=[2])
    assert main(["check", "good"]) == 0
    assert keeping.read(methods.find("good", resources.roots())) is not None
    monkeypatch.setattr(keeping, "CHECK", keeping.CHECK + 1)
    assert keeping.read(methods.find("good", resources.roots())) is None


def test_pairs_and_judgement_are_those_that_the_number_of_the_check_stands_for():
    digest = hashlib.sha256(f"{judging.NEAR} {judging.FAR}".encode())
    for scene in SCENES.values():
        digest.update(f"{scene.name} {scene.motion}".encode())
        digest.update(np.packbits(scene.inside()).tobytes())
        for grid in (scene.fixed, scene.moving):
            digest.update(f"{grid.shape} {np.round(grid.matrix, 5) + 0} {np.round(grid.origin, 5) + 0}".encode())
    assert (keeping.CHECK, digest.hexdigest()[:16]) == (3, "c5e38704fbb1591f"), "the check changed: raise CHECK"


def test_a_field_that_is_right_on_one_grid_only_is_caught(share, capsys):
    # What a tool that reads voxels and no headers gives: the step between indices, taken along the fixed axes.
    folder = method(share, "blind", PICK.replace("OTHER", "blind"))
    scene = SCENES["two_grids"]
    index = np.stack(np.meshgrid(*[np.arange(n) for n in scene.fixed.shape], indexing="ij"), axis=-1)
    points = scene.fixed.world(index)
    steps = scene.moving.index(points + np.array(scene.motion)) - index
    vectors = (steps[..., ::-1] @ scene.fixed.matrix.T).transpose(3, 0, 1, 2)
    write_field(folder / "blind.nii.gz", vectors, scene.fixed)
    assert main(["check", "blind"]) == 1
    said = capsys.readouterr().out
    assert "right on the same grid only" in said
    assert "its header was not read" in said


def test_a_convention_that_is_right_for_one_motion_by_chance_is_named_by_the_other(share, capsys):
    reading = Reading((-1, 1, -1), (1, 0, 2), "turned twice")
    folder = method(share, "lucky", PICK.replace("OTHER", "two_grids"))
    for name in ("one_grid", "two_grids"):
        pair = SCENES[name].pair()
        numbers = reading.numbers(np.array([SCENES[name].motion]), pair)[0]
        write_field(folder / f"{name}.nii.gz", constant(SCENES[name], numbers), SCENES[name].fixed)
    assert main(["check", "lucky"]) == 1
    said = capsys.readouterr().out
    assert "one_grid   passes" in said
    assert f"right by chance on one of two motions: the other is found only read {reading.words}" in said


def test_a_method_that_fails_or_writes_zeros_does_not_pass(share, capsys):
    method(share, "broken", "echo the tool says why; exit 3\n", dimensions=[2])
    assert main(["check", "broken"]) == 1
    out = capsys.readouterr()
    assert "exit code 3" in out.out
    assert "the tool says why" in out.err
    folder = method(share, "lazy", 'cp "$(dirname "$0")/colour.nii.gz" "$3/DVF.nii.gz"\n', dimensions=[2])
    write_field(folder / "colour.nii.gz", 0 * constant(SCENES["colour"]), SCENES["colour"].fixed)
    assert main(["check", "lazy"]) == 1
    assert "no convention can be told" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "nothing"], "there is no 'nothing'"),
        (["check", "map"], "no field to check"),
        (["check", "half"], "has no run.sh"),
        (["check", "half@fine"], "no variant"),
        (["check", "half", "--on", "lung_ct"], "--on"),
    ],
)
def test_wrong_use_is_one_line(share, capsys, words, said):
    method(share, "map", "true\n", tasks=["segmentation"])
    (method(share, "half", "true\n") / "run.sh").unlink()
    assert main(words) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert said in out.err
    assert out.err.count("\n") == 1


def test_the_installed_package_keeps_no_verdict(share, monkeypatch, tmp_path, capsys):
    method(share, "good", "true\n")
    packaged = tmp_path / "site" / "_share"
    packaged.parent.mkdir()
    share.rename(packaged)
    monkeypatch.setattr("fidopt.check.keeping.packaged_share", lambda: packaged)
    monkeypatch.setenv("FIDOPT_SHARE", str(packaged))
    assert main(["check", "good"]) == 2
    assert "part of the installed package" in capsys.readouterr().err
