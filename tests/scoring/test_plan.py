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
