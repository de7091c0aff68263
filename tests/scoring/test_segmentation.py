"""Segmentations: structures met by name, scored by the protocol's rules, and outputs that cannot be scored."""

from __future__ import annotations

import gzip
import json
import warnings

import numpy as np
import pytest
import yaml
from scipy import ndimage

from blocks.grid import Grid
from fidopt import corpus, resources, score
from fidopt.errors import OutputError, UsageError
from fidopt.results import read_rows
from fidopt.scoring.output_submission import Outputs, score_outputs
from fidopt.scoring.outputs import read_output
from fidopt.scoring.structures import Names
from tests.scoring.made import GRID, LABELS, boxes, describe, store, write_output

pytest.importorskip("konfai", reason="KonfAI is not installed")
surface_distance = pytest.importorskip("surface_distance", reason="surface-distance is not installed")

LIVER = (slice(2, 8), slice(2, 9), slice(2, 8))
LEFT, RIGHT = (slice(9, 12), slice(2, 6), slice(9, 13)), (slice(9, 12), slice(10, 15), slice(9, 13))
GULLET = (slice(1, 5), slice(11, 14), slice(10, 12))
TRUTH = boxes(a=(1, *LIVER), b=(4, *LEFT), c=(4, *RIGHT))


@pytest.fixture
def made(tmp_path):
    """Return a function that builds the case ``one`` of a truth, and gives the dataset and the folders."""

    def _made(truth=TRUTH, **changes):
        describe(tmp_path / "share", "segmentation", **changes)
        unit = changes.get("unit", "mm")
        store(tmp_path / "corpus" / "made" / "one" / "truth" / "labels.ome.zarr", truth, labels=True, unit=unit)
        roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
        return corpus.dataset("made", roots), roots

    return _made


@pytest.fixture
def scored(made, tmp_path):
    """Return a function from a truth, an output and its names to the row, and what was said."""

    def _scored(output, names=None, *, truth=TRUTH, **changes):
        dataset, roots = made(truth, **changes)
        said = []
        path = write_output(tmp_path / "outputs" / "one", output, names)
        row = Outputs(dataset, roots, say=said.append).score(corpus.case(dataset, "one", roots), path)
        return row, said

    return _scored


def test_a_structure_s_dice_and_distance_are_those_worked_out_by_hand(scored):
    output = boxes(a=(1, *LIVER[:2], slice(2, 7)), b=(4, *LEFT), c=(4, *RIGHT))
    row, _ = scored(output, LABELS)
    assert row.error is None
    assert row.labels["dice"] == {"1": pytest.approx(10 / 11), "4": 1.0}
    # One face of the box lies a voxel, 1 mm along x, inside; it is more than a twentieth of the surface.
    assert row.labels["hd95"] == {"1": pytest.approx(1.0), "4": 0.0}
    assert row.metrics["dice"] == pytest.approx((10 / 11 + 1) / 2)
    assert row.metrics["hd95"] == pytest.approx(0.5)
    assert (row.metrics["structures"], row.metrics["structures_produced"]) == (2, 2)


def test_a_structure_s_distances_and_the_voxels_of_a_case_are_measured_once(scored, monkeypatch):
    from blocks.kernels import overlap, surface

    calls = []
    for module, name in ((surface, "surface_distances"), (overlap, "partial")):
        real = getattr(module, name)

        def once(*given, real=real, name=name, **named):
            calls.append((name, named.get("label")))
            return real(*given, **named)

        monkeypatch.setattr(module, name, once)
    row, _ = scored(boxes(a=(1, *LIVER), b=(4, *LEFT)), LABELS)
    assert row.metrics["hd95"] > 0
    assert row.metrics["surface_dice"] < 1
    assert sorted(calls, key=str) == [("partial", None), ("surface_distances", 1), ("surface_distances", 4)]


def test_a_missed_structure_has_a_dice_of_zero_and_no_distance(scored):
    row, _ = scored(boxes(a=(1, *LIVER)), LABELS)
    assert row.labels["dice"] == {"1": 1.0, "4": 0.0}
    assert row.labels["surface_dice"] == {"1": 1.0, "4": 0.0}
    assert row.labels["hd95"] == {"1": 0.0, "4": None}
    assert (row.metrics["dice"], row.metrics["surface_dice"], row.metrics["hd95"]) == (0.5, 0.5, 0.0)
    assert (row.metrics["structures"], row.metrics["structures_produced"]) == (2, 1)


def test_a_structure_that_the_truth_lacks_is_left_out_unless_it_is_invented(scored):
    without, _ = scored(TRUTH, LABELS)
    assert without.metrics["dice"] == 1.0
    assert "9" not in without.labels["dice"]
    invented = TRUTH.copy()
    invented[GULLET] = 9
    row, _ = scored(invented, LABELS)
    assert row.labels["dice"] == {"1": 1.0, "4": 1.0, "9": 0.0}
    assert row.metrics["dice"] == pytest.approx(2 / 3)
    assert row.metrics["surface_dice"] == pytest.approx(2 / 3)
    assert row.labels["hd95"]["9"] is None
    assert row.metrics["structures_invented"] == 1
    assert row.metrics["structures_produced"] == 2


def test_an_empty_truth_and_an_empty_map_leave_nothing_to_score_and_say_so(scored):
    row, _ = scored(np.zeros(GRID.shape, np.uint8), {}, truth=np.zeros(GRID.shape, np.uint8))
    assert row.error is None
    assert (row.metrics["dice"], row.metrics["hd95"], row.metrics["surface_dice"]) == (None, None, None)
    assert "neither the truth nor the output" in row.reasons["dice"]
    assert row.metrics["structures"] == 0


def test_names_meet_through_synonyms_unions_and_any_spelling(scored):
    output = boxes(a=(7, *LIVER), b=(2, *LEFT), c=(3, *RIGHT), d=(5, *GULLET))
    truth = TRUTH.copy()
    truth[GULLET] = 9
    names = {"7": " LIVER", "2": "left-kidney", "3": "kidney right", "5": "oesophagus"}
    row, said = scored(output, names, truth=truth)
    assert row.labels["dice"] == {"1": 1.0, "4": 1.0, "9": 1.0}
    assert said == []


def test_one_kidney_of_two_is_part_of_the_kidneys(scored):
    row, _ = scored(boxes(a=(7, *LIVER), b=(2, *LEFT)), {"7": "liver", "2": "kidney_left"})
    left, both = 3 * 4 * 4, 3 * 4 * 4 + 3 * 5 * 4
    assert row.labels["dice"]["4"] == pytest.approx(2 * left / (left + both))


def test_a_whole_is_not_its_parts(scored):
    labels = {"1": "kidney_left", "2": "kidney_right", "3": "liver"}
    truth = boxes(a=(3, *LIVER), b=(1, *LEFT), c=(2, *RIGHT))
    output = boxes(a=(3, *LIVER), b=(5, *LEFT), c=(5, *RIGHT))
    row, said = scored(output, {"5": "kidneys", "3": "liver"}, truth=truth, labels=labels)
    assert row.labels["dice"] == {"1": 0.0, "2": 0.0, "3": 1.0}
    assert said == ["'kidneys' is no structure of made and is left out"]


def test_structures_that_the_dataset_does_not_name_are_left_out_and_said(scored):
    output = TRUTH.copy()
    output[GULLET] = 5
    row, said = scored(output, {"1": "liver", "4": "kidneys", "5": "spleen"})
    assert row.labels["dice"] == {"1": 1.0, "4": 1.0}
    assert said == ["'spleen' is no structure of made and is left out"]


def test_without_names_the_values_are_the_dataset_s_and_it_is_said(scored):
    row, said = scored(TRUTH)
    assert row.metrics["dice"] == 1.0
    assert len(said) == 1
    assert "there is no labels.json: the values are taken as made's own (1 liver, 4 kidneys, 9 esophagus)" in said[0]


def test_one_file_of_names_serves_all_cases(made, tmp_path):
    dataset, roots = made()
    path = write_output(tmp_path / "outputs" / "one", np.where(TRUTH == 1, 3, 0).astype(np.uint8))
    (tmp_path / "outputs" / "labels.json").write_text('{"3": "liver"}')
    row = Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path)
    assert row.labels["dice"] == {"1": 1.0, "4": 0.0}


def test_the_tolerance_is_one_for_all_or_one_a_structure(scored):
    output = boxes(a=(1, *LIVER[:2], slice(2, 7)), b=(4, *LEFT), c=(4, *RIGHT))
    wide, _ = scored(output, LABELS, tolerance_mm=1.0)
    narrow, _ = scored(output, LABELS, tolerance_mm={"liver": 0.9, "kidneys": 3.0})
    assert wide.labels["surface_dice"] == {"1": 1.0, "4": 1.0}
    assert narrow.labels["surface_dice"]["1"] < 0.9
    assert narrow.labels["surface_dice"]["4"] == 1.0


def noisy(seed, value=1):
    """Return a blob with a rough surface."""
    field = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=GRID.shape), 2.0)
    return np.where(field > 0.02, value, 0).astype(np.uint8)


@pytest.mark.parametrize("seed", range(3))
def test_distances_and_surface_dice_are_those_of_the_field_s_code(scored, seed):
    truth, output = noisy(seed), noisy(seed + 10)
    row, _ = scored(output, {"1": "liver"}, truth=truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = surface_distance.compute_surface_distances(truth == 1, output == 1, GRID.spacing[::-1])
    assert row.labels["hd95"]["1"] == pytest.approx(surface_distance.compute_robust_hausdorff(found, 95), abs=1e-9)
    assert row.labels["surface_dice"]["1"] == pytest.approx(
        surface_distance.compute_surface_dice_at_tolerance(found, 1.0), abs=1e-9
    )
    both = np.count_nonzero((truth == 1) & (output == 1))
    assert row.labels["dice"]["1"] == 2 * both / (np.count_nonzero(truth) + np.count_nonzero(output))


def test_the_same_bits_for_any_threads_and_any_layout(scored, made, tmp_path):
    import dask

    truth, output = noisy(5) + noisy(6, 3) * (noisy(5) == 0), noisy(7) + noisy(8, 3) * (noisy(7) == 0)
    labels = {"1": "liver", "3": "kidneys"}
    rows = []
    for threads in (1, 3):
        with dask.config.set(num_workers=threads):
            rows.append(scored(output, labels, truth=truth, labels=labels)[0])
    dataset, roots = made(truth, labels=labels)
    store(tmp_path / "store" / "one" / "labels.ome.zarr", output.astype(np.int32), labels=True)
    (tmp_path / "store" / "labels.json").write_text(json.dumps(labels))
    path = tmp_path / "store" / "one" / "labels.ome.zarr"
    rows.append(Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path))
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0].labels["hd95"]) == 2


def test_distances_are_in_the_dataset_s_own_unit(made, tmp_path):
    rows = []
    for unit in ("px", "um"):
        describe(tmp_path / unit / "share", "segmentation", dimension=2, unit=unit, labels={"1": "liver"})
        flat = Grid.of((20, 30), spacing=(0.5, 2.0))
        truth, output = np.zeros((2, 20, 30), np.uint8)
        truth[4:12, 5:20] = output[6:12, 5:20] = 1
        case = tmp_path / unit / "corpus" / "made" / "one"
        store(case / "truth" / "labels.ome.zarr", truth, labels=True, grid=flat, unit=unit)
        path = tmp_path / unit / "out" / "one" / "labels.ome.zarr"
        store(path, output, labels=True, grid=flat, unit=unit)
        roots = resources.roots(share=tmp_path / unit / "share", corpus=tmp_path / unit / "corpus")
        dataset = corpus.dataset("made", roots)
        rows.append(Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path))
    assert rows[0].metrics == rows[1].metrics
    assert rows[0].metrics["hd95"] == 4.0


def other_grid(case):
    """Return a grid beside the image's."""
    moved = {"shifted": (3.0, -8.0, 12.5), "same": GRID.origin}
    return Grid(GRID.shape, GRID.spacing, moved[case], GRID.direction)


@pytest.mark.parametrize(
    ("voxels", "names", "grid", "message"),
    [
        (TRUTH, LABELS, other_grid("shifted"), "lies on another grid than the case's image"),
        (TRUTH[:-1], LABELS, Grid((12, 17, 15), GRID.spacing, GRID.origin, GRID.direction), "lies on another grid"),
        (TRUTH, {"1": "liver", "4": "liver"}, GRID, "1 and 4 are both named liver; give a structure one value"),
        (TRUTH, {"1": "esophagus", "4": "oesophagus"}, GRID, "esophagus and oesophagus, which are one structure"),
        (TRUTH, {"1": "liver", "4": "kidnys"}, GRID, "did you mean 'kidneys'"),
        (TRUTH, {"1": "lever", "4": "kidneys"}, GRID, "did you mean 'liver'"),
        (TRUTH, {"1": "liver"}, GRID, "no name is given for the values 4"),
        (TRUTH, {"1": "spleen", "4": "aorta"}, GRID, "none of spleen, aorta is a structure of made"),
        (TRUTH, {"0": "background", "1": "liver", "4": "kidneys"}, GRID, "0: is the background"),
        (TRUTH, {"one": "liver"}, GRID, "one: must be a label's value"),
        (TRUTH, {"1": 3}, GRID, "must be a text"),
        (np.where(TRUTH == 1, 2, 0).astype(np.uint8), None, GRID, "no name is given for the values 2"),
        (np.where(TRUTH == 1, -1, 0).astype(np.int16), LABELS, GRID, "no name is given for the values -1"),
    ],
)
def test_an_output_that_cannot_be_scored_counts_as_an_empty_map_and_says_why(
    made, tmp_path, voxels, names, grid, message
):
    reason = refusal(made, tmp_path, lambda folder: write_output(folder, voxels, names, grid=grid))
    assert message in reason
    assert "\n" not in reason


def refusal(made, tmp_path, write):
    dataset, roots = made()
    path = write(tmp_path / "outputs" / "one")
    said = []
    row = Outputs(dataset, roots, say=said.append).score(corpus.case(dataset, "one", roots), path)
    assert row.error is not None
    assert row.error.stage == "output"
    assert row.labels["dice"] == {"1": 0.0, "4": 0.0}
    assert (row.metrics["dice"], row.metrics["hd95"], row.metrics["structures_produced"]) == (0.0, None, 0)
    assert len(said) == 1
    assert "it counts as an empty map" in said[0]
    return row.error.reason


def test_values_between_labels_and_nan_are_refused(made, tmp_path):
    def write(folder, value):
        import nibabel

        image = write_output(folder, TRUTH, LABELS)
        voxels = TRUTH.astype(np.float32)
        voxels[0, 0, 0] = value
        nibabel.save(nibabel.Nifti1Image(voxels.T, nibabel.load(image).affine), image)
        return image

    assert "hold 0.5" in refusal(made, tmp_path, lambda folder: write(folder, 0.5))
    assert "hold nan" in refusal(made, tmp_path, lambda folder: write(folder, np.nan))


def test_a_truncated_map_and_a_case_without_one_are_refused(made, tmp_path):
    def cut(folder):
        path = write_output(folder, noisy(3), LABELS)
        path.write_bytes(path.read_bytes()[:-40])
        return path

    assert "labels.nii.gz" in refusal(made, tmp_path, cut)
    assert refusal(made, tmp_path, lambda _: None) == "there is no labels.*"


def test_names_that_are_given_twice_or_are_no_json_are_refused(made, tmp_path):
    def write(folder, text):
        path = write_output(folder, TRUTH)
        (folder / "labels.json").write_text(text)
        return path

    twice = refusal(made, tmp_path, lambda folder: write(folder, '{"1": "liver", "1": "kidneys"}'))
    assert "labels.json: 1: is given twice" in twice
    assert "is not JSON" in refusal(made, tmp_path, lambda folder: write(folder, "{"))


def test_a_folder_becomes_rows_and_the_file_konfai_resolved_lies_beside_them(made, tmp_path):
    dataset, roots = made()
    store(tmp_path / "corpus" / "made" / "two" / "truth" / "labels.ome.zarr", TRUTH, labels=True)
    write_output(tmp_path / "outputs" / "one", TRUTH, LABELS)
    files = []
    for _ in range(2):
        line = score_outputs("mine", dataset, outputs=tmp_path / "outputs", roots=roots, machine="here").line
        files.append((line.rows.read_bytes(), line.evaluation.read_bytes()))
    assert files[0] == files[1]
    rows = read_rows(line.rows).rows
    assert rows["one"].metrics["dice"] == 1.0
    assert (rows["two"].error.stage, rows["two"].metrics["dice"]) == ("output", 0.0)
    kept = yaml.safe_load(line.evaluation.read_text())["Evaluator"]["metrics"]["OutputLabels"]["targets_criterions"]
    criteria = kept["TruthLabels"]["criterions_loader"]
    assert criteria["fidopt:scoring:structure_criteria:SurfaceDice"] == {
        "labels": [1, 4, 9],
        "tolerances": [1.0, 1.0, 1.0],
    }
    assert str(tmp_path) not in line.evaluation.read_text()


def test_a_folder_without_any_output_and_another_task_are_refused(made, tmp_path):
    dataset, roots = made()
    store(tmp_path / "corpus" / "made" / "two" / "truth" / "labels.ome.zarr", TRUTH, labels=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no output of made: CASE/labels\.nii\.gz is looked for"):
        score_outputs("mine", dataset, outputs=tmp_path / "empty", roots=roots, machine="here")
    assert not (roots.results / "here" / "mine").exists()
    with pytest.raises(UsageError, match="displacement fields are scored on it, with --fields"):
        Outputs(dataset.model_copy(update={"task": "registration"}), roots)
    with pytest.raises(UsageError, match="compared in memory"):
        Outputs(dataset.model_copy(update={"large": True}), roots)


def test_two_outputs_of_one_case_are_refused(made, tmp_path):
    dataset, roots = made()
    write_output(tmp_path / "outputs" / "one", TRUTH, LABELS)
    (tmp_path / "outputs" / "one" / "labels.mha").write_text("")
    store(tmp_path / "corpus" / "made" / "two" / "truth" / "labels.ome.zarr", TRUTH, labels=True)
    write_output(tmp_path / "outputs" / "two", TRUTH, LABELS)
    submission = score_outputs("mine", dataset, outputs=tmp_path / "outputs", roots=roots, machine="here")
    assert "has several outputs" in submission.cases[0].row.error.reason
    assert submission.cases[1].row.error is None


def test_an_output_is_drawn_and_the_pictures_of_one_that_fails_now_are_taken_away(made, tmp_path):
    dataset, roots = made()
    store(tmp_path / "corpus" / "made" / "two" / "truth" / "labels.ome.zarr", TRUTH, labels=True)
    write_output(tmp_path / "outputs" / "two", TRUTH, LABELS)
    old = roots.results / "here" / "mine" / "made.previews" / "one"
    old.mkdir(parents=True)
    drawn = []
    score_outputs(
        "mine",
        dataset,
        outputs=tmp_path / "outputs",
        roots=roots,
        machine="here",
        draw=lambda case, output, folder, **_: drawn.append((case.name, output.image.shape, folder)),
    )
    assert drawn == [("two", TRUTH.shape, old.with_name("two"))]
    assert not old.exists()


def test_names_of_another_folder_are_not_taken_and_a_bare_name_will_do(made, tmp_path, monkeypatch):
    _, roots = made()
    path = write_output(tmp_path / "elsewhere", TRUTH)
    (tmp_path / "labels.json").write_text('{"1": "spleen", "4": "aorta"}')
    monkeypatch.chdir(path.parent)
    row = score("made", "one", path.name, roots=roots)
    assert row.metrics["dice"] == 1.0


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.uint64, np.float64])
def test_labels_of_any_size_and_type_are_found(made, tmp_path, kind):
    labels = {"1": "liver", "614454277": "kidneys"}
    truth = np.where(TRUTH == 4, 614454277, TRUTH.astype(np.int64))
    dataset, roots = made(truth, labels=labels)
    path = tmp_path / "outputs" / "one" / "labels.ome.zarr"
    store(path, truth.astype(kind), labels=kind is not np.float64)
    row = Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path)
    assert row.labels["dice"] == {"1": 1.0, "614454277": 1.0}


@pytest.mark.parametrize("part", ["cut", "bits", "header", "names"])
def test_a_damaged_output_is_refused_or_read_right_and_never_otherwise_in_silence(made, tmp_path, part):
    dataset, roots = made()
    case, names = corpus.case(dataset, "one", roots), Names(corpus.structures(roots))
    path = write_output(tmp_path / "outputs" / "one", TRUTH, LABELS)
    whole, text, rng = path.read_bytes(), (path.parent / "labels.json").read_bytes(), np.random.default_rng(3)
    refused = 0
    for _ in range(40):
        file, names_file = bytearray(whole), bytearray(text)
        if part == "cut":
            file = file[: rng.integers(1, len(file))]
        elif part == "bits":
            file[rng.integers(10, len(file))] ^= 1 << rng.integers(8)
        elif part == "header":
            plain = bytearray(gzip.decompress(whole))
            plain[rng.integers(348)] ^= 1 << rng.integers(8)
            file = gzip.compress(bytes(plain))
        else:
            names_file[rng.integers(len(names_file))] = rng.integers(32, 127)
        path.write_bytes(bytes(file))
        (path.parent / "labels.json").write_bytes(bytes(names_file))
        try:
            output = read_output(path, case, names)
        except OutputError:
            refused += 1
            continue
        assert output.remarks or np.array_equal(output.image.values, TRUTH)
    assert refused > 10
