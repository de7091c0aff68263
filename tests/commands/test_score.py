"""``fidopt score`` as a person or a program calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

import blocks
from blocks.grid import Grid
from fidopt.cli import main
from fidopt.images.landmarks import write_landmarks
from fidopt.images.nifti import write_field

pytest.importorskip("konfai", reason="KonfAI is not installed")

GRID = Grid.of((9, 10, 11), spacing=(1.0, 1.5, 2.0))


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Path:
    """Return a working folder with one built case of points and a fixed mask."""
    truth = {"grade": "expert", "by": "us", "checked": "by us", "limits": "none", "labels": {}}
    document = {
        "name": "points",
        "title": "Points",
        "task": "registration",
        "dimension": 3,
        "unit": "mm",
        "modalities": {"fixed": "ct", "moving": "ct"},
        "masks": ["fixed_mask"],
        "spdx": "CC0-1.0",
        "citation": "-",
        "source": {"url": "-", "files": {"x": "sha256:" + "0" * 64}},
        "cases": {"one": {"source": "-", "learn2reg": "0007_0008", "subjects": ["a", "a"]}},
        "truth": truth,
    }
    folder = tmp_path / "share" / "datasets" / "points"
    folder.mkdir(parents=True)
    (folder / "dataset.json").write_text(json.dumps(document))
    case = tmp_path / "corpus" / "points" / "one"
    (case / "truth").mkdir(parents=True)
    mask = blocks.image_of(np.ones(GRID.shape, np.uint8), GRID, kind="labels")
    blocks.write_image(case / "fixed_mask.ome.zarr", mask)
    fixed = GRID.world([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    write_landmarks(case / "truth" / "fixed_landmarks.csv", fixed)
    write_landmarks(case / "truth" / "moving_landmarks.csv", fixed + np.array([3.0, 4.0, 0.0]))
    monkeypatch.chdir(tmp_path)
    for variable in ("SHARE", "CORPUS", "ARCHIVES", "RESULTS", "MACHINE"):
        monkeypatch.delenv(f"FIDOPT_{variable}", raising=False)
    return tmp_path


def _field(path: Path, vector: tuple[float, float, float]) -> None:
    vectors = np.empty((3, *GRID.shape), dtype=np.float32)
    vectors[:] = np.array(vector).reshape(3, 1, 1, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_field(path, vectors, GRID)


def _learn2reg(path: Path, vector: tuple[float, float, float]) -> None:
    import nibabel

    voxels = np.empty((*GRID.shape[::-1], 3), dtype=np.float32)
    voxels[:] = vector
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels, np.eye(4)), path)


def _score(*words: str) -> int:
    return main(["score", *words, "--share", "share", "--machine", "here"])


def test_json_is_the_only_thing_on_stdout(corpus, capsys):
    _field(corpus / "fields" / "one" / "DVF.nii.gz", (3.0, 0.0, 0.0))
    assert _score("mine", "points", "--fields", "fields", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"]["one"]["metrics"]["tre"] == pytest.approx(4.0)
    assert document["rows"]["one"]["landmarks"]["tre"] == {"count": 2, "mean": 4.0, "median": 4.0}
    assert document["mean"]["tre"] == pytest.approx(4.0)
    assert Path(document["file"]).is_file()


def test_a_person_gets_a_table_and_where_the_rows_are(corpus, capsys):
    _field(corpus / "fields" / "one" / "DVF.nii.gz", (3.0, 0.0, 0.0))
    assert _score("mine", "points", "--fields", "fields") == 0
    printed = capsys.readouterr().out
    assert "tre" in printed
    assert "results/here/mine/points.json" in printed


def test_learn2regs_fields_are_read_by_their_numbers_in_voxels(corpus, capsys):
    _learn2reg(corpus / "fields" / "disp_0007_0008.nii.gz", (3.0, 2.0, 0.0))
    assert _score("mine", "points", "--fields", "fields", "--voxels", "--json") == 0
    row = json.loads(capsys.readouterr().out)["rows"]["one"]
    assert row["error"] is None
    assert row["metrics"]["tre"] == pytest.approx(1.0)


def test_learn2regs_fields_without_voxels_fail_and_say_so(corpus, capsys):
    _learn2reg(corpus / "fields" / "disp_0007_0008.nii.gz", (0.0, 0.0, 0.0))
    assert _score("mine", "points", "--fields", "fields", "--json") == 0
    captured = capsys.readouterr()
    row = json.loads(captured.out)["rows"]["one"]
    assert "--voxels" in row["error"]["reason"]
    assert row["metrics"]["tre"] == pytest.approx(5.0)
    assert "counts as the unregistered pair" in captured.err


def _ants(folder: Path) -> None:
    """Write a warp by 3, 0, 0 and an affine by 0, 4, 0 under ANTs' names, and the inverse warp that ANTs writes too."""
    _field(folder / "out_1Warp.nii.gz", (3.0, 0.0, 0.0))
    _field(folder / "out_1InverseWarp.nii.gz", (-3.0, 0.0, 0.0))
    sitk.WriteTransform(
        sitk.AffineTransform([1.0, 0, 0, 0, 1, 0, 0, 0, 1], [0.0, 4.0, 0.0]), str(folder / "out_0GenericAffine.mat")
    )


def _niftyreg(folder: Path) -> None:
    import nibabel

    _field(folder / "DVF.nii.gz", (-3.0, -4.0, 0.0))
    image = nibabel.load(folder / "DVF.nii.gz")
    image.header.set_intent(1007, name="NREG_TRANS")
    image.header["intent_p1"] = 1
    nibabel.save(nibabel.Nifti1Image(image.get_fdata().astype(np.float32), None, image.header), folder / "DVF.nii.gz")


def _konfai(folder: Path) -> None:
    folder.mkdir(parents=True)
    sitk.WriteTransform(sitk.TranslationTransform(3, (3.0, 4.0, 0.0)), str(folder / "Transform.h5"))


def _elastix(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, (shift, before) in enumerate(((0, "NoInitialTransform"), (4, "TransformParameters.0.txt"))):
        words = ['(Transform "TranslationTransform")', f"(TransformParameters {3 - 3 * number} {shift} 0)"]
        words += [f'(InitialTransformParameterFileName "{before}")', '(HowToCombineTransforms "Compose")']
        words += ["(FixedImageDimension 3)", "(MovingImageDimension 3)"]
        (folder / f"TransformParameters.{number}.txt").write_text("\n".join(words))


@pytest.mark.parametrize("tool", [_ants, _niftyreg, _konfai, _elastix], ids=lambda f: f.__name__[1:])
def test_a_tool_s_own_files_are_scored_by_its_convention(corpus, capsys, tool):
    tool(corpus / "fields" / "one")
    name = tool.__name__[1:]
    assert _score("mine", "points", "--fields", "fields", "--convention", name, "--json") == 0
    row = json.loads(capsys.readouterr().out)["rows"]["one"]
    assert row["error"] is None
    assert row["metrics"]["tre"] == pytest.approx(0, abs=1e-5)


def test_two_files_of_one_name_are_refused_in_the_row(corpus, capsys):
    _ants(corpus / "fields" / "one")
    _field(corpus / "fields" / "one" / "other_1Warp.nii.gz", (3.0, 0.0, 0.0))
    assert _score("mine", "points", "--fields", "fields", "--convention", "ants", "--json") == 0
    reason = json.loads(capsys.readouterr().out)["rows"]["one"]["error"]["reason"]
    assert "several files of ANTs's (other_1Warp.nii.gz, out_1Warp.nii.gz); keep one" in reason


def test_a_field_that_covers_a_part_of_the_fixed_image_is_refused_in_the_row(corpus, capsys):
    small = Grid.of((4, 4, 4), spacing=GRID.spacing)
    (corpus / "fields" / "one").mkdir(parents=True)
    write_field(corpus / "fields" / "one" / "DVF.nii.gz", np.zeros((3, *small.shape), np.float32), small)
    assert _score("mine", "points", "--fields", "fields", "--convention", "itk", "--json") == 0
    assert "uncovered" in json.loads(capsys.readouterr().out)["rows"]["one"]["error"]["reason"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine", "points", "--fields", "fields", "--convention", "nyftireg"], "did you mean 'niftyreg'?"),
        (["mine", "points", "--fields", "fields", "--convention", "ants", "--voxels"], "leave one of them out"),
        (["mine", "nothing", "--fields", "fields"], "nothing"),
        (["mine", "points", "two", "--fields", "fields"], "no case 'two'"),
        (["mine", "points", "--fields", "elsewhere"], "holds no field"),
        (["mine", "points"], "--fields"),
    ],
)
def test_wrong_use_is_one_line_and_code_two(corpus, capsys, words, message):
    _field(corpus / "fields" / "one" / "DVF.nii.gz", (3.0, 0.0, 0.0))
    assert _score(*words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "points is a registration dataset: name the folder of its displacement fields, --fields DIR"),
        (("--outputs", "made"), "name the folder of its displacement fields, --fields DIR"),
        (("--fields", "a", "--outputs", "b"), "--fields DIR, and no other"),
    ],
)
def test_the_folder_that_the_task_needs_is_named_and_no_other(corpus, capsys, words, message):
    assert _score("mine", "points", *words) == 2
    assert message in capsys.readouterr().err


def test_a_folder_of_label_maps_is_scored_by_name_and_shown(corpus, capsys, monkeypatch):
    from tests.scoring.made import LABELS, boxes, describe, store, write_output

    describe(corpus / "share", "segmentation", cases={"one": {"source": "-", "subjects": ["a"]}})
    truth = boxes(a=(1, slice(2, 6), slice(2, 6), slice(2, 6)))
    store(corpus / "corpus" / "made" / "one" / "truth" / "labels.ome.zarr", truth, labels=True)
    write_output(corpus / "outputs" / "one", truth, LABELS)
    assert _score("mine", "made", "--outputs", "outputs") == 0
    printed = capsys.readouterr()
    assert "surface_dice" in printed.out
    assert "structures_produced" in printed.out
    assert _score("mine", "made", "--fields", "outputs") == 2
    assert "made is a segmentation dataset: name the folder of its label maps" in capsys.readouterr().err
    assert _score("mine", "made", "--outputs", "outputs", "--voxels") == 2
    assert "--voxels is said of displacement fields" in capsys.readouterr().err


def test_the_help_names_every_convention(capsys):
    from fidopt.images.conventions import CONTRACT, CONVENTIONS

    assert main(["score", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name in set(CONVENTIONS) - {CONTRACT.name}:
        assert name in said.replace("- ", "-"), name
