"""The evaluation file: its blocks, filled for what a case has."""

from pathlib import Path

import pytest
import yaml

from fidopt.errors import InputError
from fidopt.resources import packaged_share
from fidopt.scoring.plan import Registration, Segmentation, Synthesis, plan, read_blocks

pytest.importorskip("konfai", reason="KonfAI is not installed")

TEMPLATE = packaged_share() / "evaluation" / "registration.yml"
ALL = Registration(label_sets=("", "lungs"), landmark_sets=("", "keypoints"), labels=(1, 2), image=True, mask=True)


def _changed(tmp_path: Path, change) -> Path:
    document = yaml.safe_load(TEMPLATE.read_text())
    change(document)
    path = tmp_path / "registration.yml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_case_with_everything_takes_every_block_and_every_metric_has_a_place():
    asked = plan(TEMPLATE, ALL)
    found = " ".join(sorted(asked.results.values()))
    assert found == (
        "dice dice_lungs folds folds_body folds_mask hd95 hd95_lungs labels_lost sdlogj sdlogj_body sdlogj_mask "
        "tre tre_keypoints tre_p95"
    )
    assert {"FixedImage", "FixedMask", "WarpedLabels_lungs", "MovingLandmarks_keypoints"} <= asked.groups


def test_a_case_takes_only_the_blocks_its_truth_has():
    asked = plan(TEMPLATE, Registration((), ("",), (), image=False, mask=False))
    assert set(asked.results.values()) == {"tre", "tre_p95", "sdlogj", "folds"}
    assert asked.groups == {"DisplacedLandmarks", "MovingLandmarks", "Field"}


def test_the_blocks_are_filled_with_the_descriptors_values():
    labels = plan(TEMPLATE, ALL).metrics["WarpedLabels"]["FixedLabels;MovingLabels"]
    assert labels["fidopt:scoring:criteria:Dice"] == {"labels": [1, 2]}
    unnamed = plan(TEMPLATE, Registration(("",), (), (), image=False, mask=False)).metrics["WarpedLabels"]
    assert unnamed["FixedLabels;MovingLabels"]["fidopt:scoring:criteria:Dice"] == {"labels": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("field"), "field: the block is missing"),
        (lambda d: d.update(volume={}), "volume: unknown block"),
        (
            lambda d: d["landmarks"]["DisplacedLandmarks"]["MovingLandmarks"].update({"MAE": {}}),
            r"landmarks\.DisplacedLandmarks\.MovingLandmarks\.MAE: this block's criteria are TRE",
        ),
        (
            lambda d: d["field"]["Field"]["Field"]["fidopt:scoring:criteria:SDlogJ"].update(crop=2),
            r"SDlogJ\.crop: unknown argument; SDlogJ takes inside, margin, offset",
        ),
        (
            lambda d: d["field"]["Field"]["Field"]["fidopt:scoring:criteria:SDlogJ"].pop("margin"),
            r"SDlogJ\.margin: is missing",
        ),
        (
            lambda d: d["field"]["Field"].update({"Field": {"fidopt.scoring.criteria:SDlogJ": {}}}),
            "written with colons throughout",
        ),
    ],
)
def test_a_key_that_does_not_exist_is_an_error_that_names_it(tmp_path, change, message):
    path = _changed(tmp_path, change)
    with pytest.raises(InputError, match=message) as caught:
        read_blocks(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_yaml_is_refused(tmp_path):
    path = tmp_path / "registration.yml"
    path.write_text("labels: [")
    with pytest.raises(InputError, match="YAML"):
        read_blocks(path)


@pytest.mark.parametrize("task", ["segmentation", "synthesis"])
def test_the_other_tasks_files_are_sound_and_take_no_block_of_a_registration(task, tmp_path):
    template = TEMPLATE.with_name(f"{task}.yml")
    assert read_blocks(template, task)
    with pytest.raises(InputError, match="labels: unknown block"):
        read_blocks(TEMPLATE, task)
    document = yaml.safe_load(template.read_text())
    document.popitem()
    path = tmp_path / f"{task}.yml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(InputError, match="the block is missing"):
        read_blocks(path, task)


def test_a_segmentation_is_filled_with_its_structures_and_their_tolerances_in_one_order():
    asked = plan(TEMPLATE.with_name("segmentation.yml"), Segmentation({4: 2.0, 1: 0.5}))
    criteria = asked.metrics["OutputLabels"]["TruthLabels"]
    surface = criteria["fidopt:scoring:structure_criteria:SurfaceDice"]
    assert surface == {"labels": [4, 1], "tolerances": [2.0, 0.5]}
    found = " ".join(sorted(asked.results.values()))
    assert found == "dice hd95 structures structures_invented structures_produced surface_dice"


def test_a_synthesis_is_asked_for_its_anatomy_only_where_it_was_looked_for():
    template = TEMPLATE.with_name("synthesis.yml")
    assert set(plan(template, Synthesis(100.0)).results.values()) == {"mae", "psnr", "ssim"}
    asked = plan(template, Synthesis(100.0, (1, 2)))
    assert set(asked.results.values()) == {"mae", "psnr", "ssim", "dice_geometry", "hd95_geometry"}
    assert asked.groups == {"OutputImage", "TargetImage", "Mask", "OutputAnatomy", "TargetAnatomy"}
