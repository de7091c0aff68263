"""A case scored by KonfAI: every metric against a truth by hand or a direct computation."""

import sys
import threading
import time
import warnings

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows
import yaml

import blocks
from blocks.execute import compute
from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt.errors import InputError, UsageError
from fidopt.resources import packaged_share
from fidopt.scoring.evaluation import score_case
from fidopt.scoring.evaluator import console

pytest.importorskip("konfai", reason="KonfAI is not installed")

SHIFT = (3.0, -4.0, 2.0)


def _constant(grid: Grid, vector: tuple[float, ...]) -> DisplacementField:
    vectors = np.empty((grid.ndim, *grid.shape), dtype=np.float32)
    vectors[:] = np.array(vector[: grid.ndim]).reshape(-1, *(1,) * grid.ndim)
    return DisplacementField(grid, vectors)


def _wavy(grid: Grid) -> DisplacementField:
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"))
    waves = [1.5 * np.sin(index[c] / 3.0) * np.cos(index[-1] / 4.0) for c in range(grid.ndim)]
    return DisplacementField(grid, np.stack(waves).astype(np.float32))


def _itk(array: np.ndarray, grid: Grid, *, vector: bool = False) -> sitk.Image:
    image = sitk.GetImageFromArray(np.moveaxis(array, 0, -1) if vector else array, isVector=vector)
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)
    return image


def _resampled(labels: np.ndarray, moving: Grid, field: DisplacementField) -> np.ndarray:
    """Return a moving label map as SimpleITK reads it through a field."""
    vectors = _itk(np.asarray(field.vectors[:], dtype=np.float64), field.grid, vector=True)
    transform = sitk.DisplacementFieldTransform(vectors)
    reference = _itk(np.zeros(field.grid.shape, dtype=np.uint8), field.grid)
    return sitk.GetArrayFromImage(sitk.Resample(_itk(labels, moving), reference, transform, sitk.sitkNearestNeighbor))


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_field_that_a_pair_was_made_with_scores_better_than_none(make_case, grids, ndim):
    case = make_case(ndim, shift=SHIFT)
    before, after = score_case(case, None), score_case(case, _constant(grids(ndim)[0], SHIFT))
    assert before.metrics["dice"] < 0.6 < 0.8 < after.metrics["dice"]
    assert after.metrics["hd95"] < before.metrics["hd95"]
    assert (after.metrics["sdlogj"], after.metrics["folds"], after.metrics["labels_lost"]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("ndim", [2, 3])
def test_dice_and_distances_are_those_of_a_direct_computation(make_case, grids, truth, ndim):
    case, (here, there) = make_case(ndim, shift=SHIFT), grids(ndim)
    field = _wavy(here)
    fixed = truth(here, np.zeros(ndim))
    warped = _resampled(truth(there, np.array(SHIFT[:ndim])), there, field)
    scores = score_case(case, field)
    surface_distance = pytest.importorskip("surface_distance")
    for label in (1, 614454277):
        a, b = fixed == label, warped == label
        dice = 2 * (a & b).sum() / (a.sum() + b.sum())
        assert scores.labels["dice"][str(label)] == pytest.approx(dice, abs=1e-9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            distances = surface_distance.compute_surface_distances(a, b, here.spacing[::-1])
        expected = surface_distance.compute_robust_hausdorff(distances, 95)
        assert scores.labels["hd95"][str(label)] == pytest.approx(expected, abs=1e-9)
    for metric in ("dice", "hd95"):
        assert scores.metrics[metric] == pytest.approx(np.mean(list(scores.labels[metric].values())), abs=1e-12)


def test_regularity_is_that_of_a_direct_computation(make_case, grids, truth):
    mask = (truth(grids()[0], np.zeros(3)) == 1).astype(np.uint8)
    case, (grid, _) = make_case(masks={"fixed_mask": mask}), grids()
    field = _wavy(grid)
    index_units = np.tensordot(grid.inverse_matrix, np.asarray(field.vectors[:], dtype=np.float64), axes=1)
    gradient = np.stack([np.stack(np.gradient(c)[::-1]) for c in index_units])
    det = np.linalg.det(np.moveaxis(gradient, (0, 1), (-2, -1)) + np.eye(3))
    logarithm = np.log(np.clip(det + 3, 1e-9, 1e9))
    inner = (slice(2, -2),) * 3
    body = truth(grid, np.zeros(3)) != 0  # the picture is dark outside the two bodies
    metrics = score_case(case, field).metrics
    for name, where in (("", np.ones(grid.shape, dtype=bool)), ("_body", body), ("_mask", mask == 1)):
        assert metrics[f"sdlogj{name}"] == pytest.approx(logarithm[inner][where[inner]].std(), abs=1e-9)
        assert metrics[f"folds{name}"] == pytest.approx((det <= 0)[where].mean(), abs=1e-12)


def test_landmark_errors_are_read_through_the_field_linearly(make_case, grids):
    grid = grids()[0]
    random = np.random.default_rng(1)
    fixed = grid.world(random.uniform(0, np.array(grid.shape) - 1, (40, 3)))
    moving = fixed + random.normal(size=fixed.shape)
    case = make_case(points={"fixed_landmarks": fixed, "moving_landmarks": moving})
    field = _wavy(grid)
    vectors = _itk(np.asarray(field.vectors[:], dtype=np.float64), grid, vector=True)
    transform = sitk.DisplacementFieldTransform(vectors)
    errors = [np.linalg.norm(np.array(transform.TransformPoint(p)) - q) for p, q in zip(fixed, moving, strict=True)]
    scores = score_case(case, field)
    assert scores.landmarks["tre"] == pytest.approx(errors, abs=1e-9)
    assert scores.metrics["tre"] == pytest.approx(np.mean(errors), abs=1e-9)
    assert scores.metrics["tre_p95"] == pytest.approx(np.percentile(errors, 95), abs=1e-9)
    size = np.array(grid.shape[::-1]) * np.array(grid.spacing)
    assert scores.metrics["rtre"] == pytest.approx(np.mean(errors) / np.linalg.norm(size), abs=1e-12)


def test_one_landmark_is_enough_and_a_second_set_has_its_own_metric(make_case, grids):
    point = grids()[0].world([[3.0, 4.0, 5.0]])
    case = make_case(
        points={
            "fixed_landmarks": point,
            "moving_landmarks": point + np.array([0.0, 3.0, 4.0]),
            "fixed_landmarks_keypoints": point,
            "moving_landmarks_keypoints": point + np.array([0.0, 0.0, 2.0]),
        }
    )
    metrics = score_case(case, None).metrics
    assert (metrics["tre"], metrics["tre_p95"], metrics["tre_keypoints"]) == pytest.approx((5.0, 5.0, 2.0))


def test_a_label_the_warp_erased_counts_zero(make_case, grids):
    grid = grids()[0]
    case = make_case()
    scores = score_case(case, _constant(grid, (500.0, 0.0, 0.0)))
    assert (scores.metrics["dice"], scores.metrics["labels_lost"]) == (0.0, 2.0)
    assert scores.labels["dice"] == {"1": 0.0, "614454277": 0.0}
    assert scores.metrics["hd95"] is None
    assert scores.labels["hd95"] == {"1": None, "614454277": None}
    assert "kept none" in scores.reasons["hd95"]


def test_a_label_that_one_image_never_had_is_left_out(make_case, grids, truth):
    here, there = grids()
    fixed, moving = truth(here, np.zeros(3)), truth(there, np.zeros(3))
    moving = np.where(moving == 1, 0, moving)
    scores = score_case(make_case(maps={"fixed_labels": fixed, "moving_labels": moving}), None)
    assert list(scores.labels["dice"]) == ["614454277"]
    assert scores.metrics["labels_lost"] == 0.0


def test_labels_that_the_descriptor_does_not_name_are_left_out(make_case, grids):
    scores = score_case(make_case(truth={"labels": {"1": "ball"}}), None)
    assert list(scores.labels["dice"]) == ["1"]
    scores = score_case(make_case(truth={"labels": {}}, name="case02"), None)
    assert list(scores.labels["dice"]) == ["1", "614454277"]


def test_two_maps_without_a_common_label_have_no_dice_and_a_reason(make_case, grids):
    here, there = grids()
    maps = {"fixed_labels": np.ones(here.shape, np.uint8), "moving_labels": np.zeros(there.shape, np.uint8)}
    scores = score_case(make_case(maps=maps), None)
    assert (scores.metrics["dice"], scores.metrics["hd95"]) == (None, None)
    assert "no label in common" in scores.reasons["dice"]
    assert scores.reasons.keys() == {"dice", "hd95"}


def test_another_set_of_labels_is_scored_under_its_name(make_case, grids, truth):
    here, there = grids()
    lungs = {"fixed_labels_lungs": truth(here, np.zeros(3)) == 1, "moving_labels_lungs": truth(there, np.zeros(3)) == 1}
    metrics = score_case(make_case(maps=lungs, other_labels=["lungs"]), None).metrics
    assert metrics["dice_lungs"] > 0.8
    assert metrics["hd95_lungs"] < 3.0
    assert not {"dice", "hd95", "labels_lost"} & metrics.keys()


@pytest.mark.parametrize("side", ["fixed", "moving"])
def test_a_region_to_ignore_counts_in_neither_map(make_case, grids, truth, side):
    grid = grids()[0 if side == "fixed" else 1]
    ball = (truth(grid, np.zeros(3)) == 1).astype(np.uint8)
    whole = score_case(make_case(), None)
    without_ball = score_case(make_case(masks={f"{side}_ignore": ball}, name="case02"), None)
    assert without_ball.labels["dice"].keys() <= {"1", "614454277"}
    assert without_ball.labels["dice"]["614454277"] == whole.labels["dice"]["614454277"]
    assert without_ball.labels["dice"].get("1", 0.0) == 0.0


def test_landmarks_alone_can_be_scored(make_case, grids):
    grid = grids()[0]
    point = grid.world([[3.0, 4.0, 5.0]])
    case = make_case(
        images=False,
        maps={},
        masks={"fixed_mask": np.ones(grid.shape, np.uint8)},
        points={"fixed_landmarks": point, "moving_landmarks": point + np.array([3.0, 4.0, 0.0])},
    )
    metrics = score_case(case, None).metrics
    assert metrics["tre"] == pytest.approx(5.0)
    assert "sdlogj_body" not in metrics
    assert metrics["sdlogj_mask"] == 0.0


@pytest.mark.parametrize("unit", ["um", "px", "m"])
def test_distances_stay_in_the_datasets_own_unit(make_case, grids, unit):
    millimetres = score_case(make_case(2, shift=SHIFT), _wavy(grids(2)[0]))
    other = score_case(make_case(2, shift=SHIFT, unit=unit, name="case02"), _wavy(grids(2)[0]))
    assert other.metrics == millimetres.metrics


def test_no_registration_is_the_zero_field_to_the_bit(make_case, grids):
    grid = grids()[0]
    case = make_case(shift=SHIFT)
    zero = DisplacementField(grid, np.zeros((3, *grid.shape), dtype=np.float32))
    assert score_case(case, None) == score_case(case, zero)


def test_konfais_own_resample_and_dice_agree(make_case, grids, truth, tmp_path):
    from konfai import api

    grid, there = grids()
    maps = {"fixed_labels": truth(grid, np.zeros(3)), "moving_labels": truth(there, np.array(SHIFT))}
    # Its Dice counts in a table as long as the largest label.
    maps = {name: np.where(labels > 1, 2, labels).astype(np.uint8) for name, labels in maps.items()}
    case = make_case(maps=maps, truth={"labels": {"1": "ball", "2": "box"}})
    field = _wavy(grid)
    root = tmp_path / "konfai"
    (root / "case01").mkdir(parents=True)
    blocks.write_image(root / "case01" / "Field.ome.zarr", blocks.image_of(field.vectors, grid), levels=False)
    for side, store in zip(("Fixed", "Moving"), case.label_sets()[""], strict=True):
        (root / "case01" / f"{side}.ome.zarr").symlink_to(store)
    resample = {
        "Resample": {
            "reference": "{case}",
            "reference_group": "Fixed",
            "field_group": "Field",
            "interpolation": "nearest",
        }
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = api.evaluate(
            "parity",
            [f"{root}:omezarr"],
            {"Moving": {"Fixed": {"Dice": {"labels": [1, 2]}}}},
            transforms={"Moving": resample},
            evaluations_dir=tmp_path / "evaluations",
            quiet=True,
        )
    theirs = {label: result.metrics["TRAIN"]["case"][f"Moving:Fixed:Dice:{label}"]["case01"] for label in "12"}
    assert score_case(case, field).labels["dice"] == pytest.approx(theirs, abs=1e-6)


def test_each_criterion_sees_its_own_arguments(make_case, grids, tmp_path):
    case, field = make_case(shift=SHIFT), _wavy(grids()[0])
    usual = score_case(case, field)
    document = yaml.safe_load((packaged_share() / "evaluation" / "registration.yml").read_text())
    labels = document["labels"]["WarpedLabels"]["FixedLabels;MovingLabels"]
    labels["fidopt:scoring:criteria:HD95"] |= {"percent": 40.0, "labels": [1]}
    labels["fidopt:scoring:criteria:LabelsLost"] |= {"labels": [7]}
    document["field"]["Field"]["Field"]["fidopt:scoring:criteria:SDlogJ"] |= {"margin": 4, "offset": 1.0}
    document["field_body"]["Field"]["FixedImage"]["fidopt:scoring:criteria:Folds"] |= {"inside": "everywhere"}
    template = tmp_path / "registration.yml"
    template.write_text(yaml.safe_dump(document))
    changed = score_case(case, field, template=template)
    assert changed.labels["dice"] == usual.labels["dice"]
    assert list(changed.labels["hd95"]) == ["1"]
    assert changed.labels["hd95"]["1"] < usual.labels["hd95"]["1"]
    assert changed.metrics["sdlogj"] != usual.metrics["sdlogj"]
    assert changed.metrics["sdlogj_body"] == usual.metrics["sdlogj_body"]
    assert changed.metrics["folds_body"] == changed.metrics["folds"]
    resolved = yaml.safe_load(changed.evaluation)["Evaluator"]
    kept = resolved["metrics"]["WarpedLabels"]["targets_criterions"]["FixedLabels;MovingLabels"]["criterions_loader"]
    assert kept["fidopt:scoring:criteria:HD95"] == {"labels": [1], "percent": 40.0}


def test_scoring_twice_gives_the_same_and_says_nothing(make_case, grids, capfd, tmp_path):
    case, field = make_case(shift=SHIFT), _wavy(grids()[0])
    workdir = tmp_path / "work"
    workdir.mkdir()
    first, second = (score_case(case, field, workdir=workdir) for _ in range(2))
    assert first == second
    assert str(workdir) not in first.evaluation
    assert list(workdir.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_label_map_on_another_grid_is_refused(make_case, grids):
    case = make_case()
    grid = grids()[0]
    elsewhere = Grid(grid.shape, grid.spacing, (0.0, 0.0, 0.0), grid.direction)
    labels = blocks.image_of(np.ones(grid.shape, np.uint8), elsewhere, kind="labels")
    blocks.write_image(case.label_sets()[""][0], labels, overwrite=True)
    with pytest.raises(InputError, match=r"fixed_labels\.ome\.zarr: does not lie on the fixed grid of tiny/case01"):
        score_case(case, None)


def test_a_case_of_another_task_is_refused(make_case):
    case = make_case(
        task="segmentation", modalities={"image": "ct"}, images=False, truth={"labels": {"1": "a"}}, maps={}
    )
    with pytest.raises(UsageError, match="segmentation dataset"):
        score_case(case, None)


def test_the_warped_labels_are_simpleitks(make_case, grids, truth):
    here, there = grids()
    field = _wavy(here)
    labels = truth(there, np.zeros(3))
    image = blocks.image_of(labels, there, kind="labels")
    warped = np.asarray(compute(blocks.warp(image, field, here, interpolation="nearest")))
    assert (warped == _resampled(labels, there, field)).all()


def test_what_is_said_while_another_thread_evaluates_reaches_the_console(make_case, capsys):
    case, own = make_case(shift=SHIFT), sys.stderr
    evaluating = threading.Thread(target=score_case, args=(case, None))
    evaluating.start()
    while sys.stderr is own:
        assert evaluating.is_alive(), "KonfAI no longer takes the console: this lock has no use any more"
        time.sleep(0.0002)
    with console():
        sys.stderr.write("said meanwhile\n")
    evaluating.join()
    assert "said meanwhile" in capsys.readouterr().err
