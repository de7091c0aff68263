"""``fidopt field``: transforms as one displacement field."""

from __future__ import annotations

import json

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of
from fidopt.cli import main
from fidopt.images.fields import read_field
from fidopt.images.landmarks import read_landmark_pair
from fidopt.images.readers import read_image


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder, the current one, with a fixed store and two transforms of ITK and elastix."""
    monkeypatch.chdir(tmp_path)
    write_image("fixed.ome.zarr", image_of(np.zeros((3, 4, 5), np.uint8), Grid.of((3, 4, 5))))
    sitk.WriteTransform(sitk.TranslationTransform(3, (1, 0, -2)), "shift.tfm")
    text = '(Transform "TranslationTransform")\n(TransformParameters 0 3 0)\n(FixedImageDimension 3)\n'
    (tmp_path / "elastix.txt").write_text(text)
    return tmp_path


def test_a_chain_of_itk_and_elastix_becomes_one_field(folder, capsys):
    assert main(["field", "shift.tfm", "elastix.txt", "DVF.nii.gz", "--like", "fixed.ome.zarr"]) == 0
    assert capsys.readouterr().out == "DVF.nii.gz: a field of 3 x 3 x 4 x 5, written\n"
    field = read_field("DVF.nii.gz")
    assert [np.unique(component).tolist() for component in field.vectors] == [[1], [3], [-2]]


def test_the_same_again_is_done_and_another_is_exit_code_two(folder, capsys):
    words = ["field", "shift.tfm", "DVF.ome.zarr", "--like", "fixed.ome.zarr", "--json"]
    states = []
    for _ in range(2):
        assert main(words) == 0
        states.append(json.loads(capsys.readouterr().out)["state"])
    assert states == ["written", "there already"]
    assert main(["field", "elastix.txt", *words[2:]]) == 2
    assert "is another field" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["DVF.nii.gz", "DVF.ome.zarr", "DVF.mha"])
def test_a_displacement_that_no_float32_holds_is_refused_before_anything_is_written(folder, capsys, out):
    sitk.WriteTransform(sitk.TranslationTransform(3, (0, -1e39, 0)), "far.tfm")
    before = sorted(path.name for path in folder.iterdir())
    assert main(["field", "elastix.txt", "far.tfm", out, "--like", "fixed.ome.zarr"]) == 2
    err = capsys.readouterr().err
    assert "displacements of up to 1e+39 are more than the float32 of a field holds" in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_displacement_that_a_float32_just_holds_is_written(folder):
    sitk.WriteTransform(sitk.TranslationTransform(3, (0, 3e38, 0)), "far.tfm")
    assert main(["field", "far.tfm", "DVF.nii.gz", "--like", "fixed.ome.zarr"]) == 0
    assert np.isfinite(read_field("DVF.nii.gz").vectors).all()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["field", "shift.tfm", "--like", "fixed.ome.zarr"], "field expects at least one TRANSFORM"),
        (["field", "shift.tfm", "DVF.nii.gz"], "--like"),
        (["field", "fixed.ome.zarr", "DVF.nii.gz", "--like", "fixed.ome.zarr"], "has 3 components"),
        (["field", "shift.tfm", "DVF.png", "--like", "fixed.ome.zarr"], "a field is written as"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(folder, capsys, words, why):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1
    assert not (folder / "DVF.nii.gz").exists()


@pytest.mark.parametrize("case", ["d2_dispvect.nii.gz", "d2_noint.nii.gz", "d2_l2r_4d.nii.gz", "d9_nan.nii.gz"])
def test_the_shared_fields_that_are_not_right_are_refused(folder, capsys, shared_case, case):
    assert main(["field", str(shared_case(case)), "DVF.nii.gz", "--like", "fixed.ome.zarr"]) == 2
    assert case in capsys.readouterr().err


def test_elastix_s_result_on_the_lung_as_a_field_gives_its_known_error(folder, shared_data):
    data = shared_data("lung_ct")
    fixed, moving = data / "3DCT_lung_baseline.mha", data / "3DCT_lung_followup.mha"
    assert main(["field", str(data / "stored_bspline.txt"), "DVF.nii.gz", "--like", str(fixed)]) == 0
    from blocks.image import grid_of

    points, pairs = read_landmark_pair(data / "baseline_landmarks.txt", data / "followup_landmarks.txt", ndim=3)
    inside = grid_of(read_image(fixed)).inside(points) & grid_of(read_image(moving)).inside(pairs)
    error = np.linalg.norm(read_field("DVF.nii.gz").points(points) - pairs, axis=1)[inside]
    assert error.mean() == pytest.approx(1.58758, abs=5e-4)
    assert np.median(error) == pytest.approx(1.10047, abs=5e-4)


def test_a_tool_before_the_file_says_what_its_numbers_mean_and_another_tool_s_is_another_field(folder, capsys):
    np.savetxt("affine.txt", [[1.0, 0, 0, 2], [0, 1, 0, 5], [0, 0, 1, 7], [0, 0, 0, 1]])
    np.savez("steps.npz", np.broadcast_to(np.array([1.0, 0, -1]).reshape(3, 1, 1, 1), (3, 5, 4, 3)))
    words = ["niftyreg:affine.txt", "learn2reg:steps.npz", "DVF.ome.zarr", "--like", "fixed.ome.zarr", "--json"]
    assert main(["field", *words]) == 0
    field = read_field("DVF.ome.zarr")
    # Along RAS, x and y of the matrix are the other way; where that leaves the image there are no steps.
    assert [float(np.asarray(field.vectors)[k, 0, 0, 0]) for k in range(3)] == [-2, -5, 7]
    assert main(["field", "inverse:niftyreg:affine.txt", "back.nii.gz", "--like", "fixed.ome.zarr"]) == 0
    assert [np.unique(component).tolist() for component in read_field("back.nii.gz").vectors] == [[2], [5], [-7]]
    capsys.readouterr()
    assert main(["field", "affine.txt", "none.nii.gz", "--like", "fixed.ome.zarr"]) == 2
    assert "greedy:FILE or niftyreg:FILE" in capsys.readouterr().err
