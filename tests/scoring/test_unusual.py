"""What is unusual and allowed is scored as anything else: the right value, or one line that says why not."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import blocks
from fidopt import corpus, resources, results
from fidopt.errors import InputError, MissingError
from fidopt.scoring.evaluation import score_case
from fidopt.scoring.output_submission import Outputs
from fidopt.scoring.unregistered import Unregistered
from tests.scoring.made import GRID, boxes, describe, store, write_output

pytest.importorskip("konfai", reason="KonfAI is not installed")

SIDES = ("fixed", "moving")
BIG, SMALL = (slice(2, 8), slice(2, 9), slice(2, 8)), (slice(9, 12), slice(2, 6), slice(9, 13))


@pytest.mark.parametrize("order", [("2", "10"), ("10", "2")], ids=" then ".join)
def test_a_structure_has_its_value_whatever_the_order_of_the_descriptors_labels(tmp_path, order):
    names = {"2": "liver", "10": "spleen"}
    labels = {value: names[value] for value in order}
    describe(tmp_path / "share", "segmentation", labels=labels)
    truth = boxes(a=(2, *BIG), b=(10, *SMALL))
    store(tmp_path / "corpus" / "made" / "one" / "truth" / "labels.ome.zarr", truth, labels=True)
    roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
    output = write_output(tmp_path / "outputs" / "one", boxes(a=(2, *BIG[:2], slice(2, 7)), b=(10, *SMALL)), labels)
    row = Outputs(corpus.dataset("made", roots), roots).score(
        corpus.case(corpus.dataset("made", roots), "one", roots), output
    )
    assert row.error is None
    assert row.labels["dice"] == {"2": pytest.approx(10 / 11), "10": 1.0}
    assert row.labels["hd95"] == {"2": pytest.approx(1.0), "10": 0.0}
    counts = {metric: value for metric, value in row.metrics.items() if metric.startswith("structures")}
    assert counts == {"structures": 2, "structures_produced": 2, "structures_invented": 0}


def test_a_case_whose_label_maps_hold_no_integers_is_to_be_built_again(make_case, grids, truth):
    fixed, moving = (truth(grid, np.zeros(3)) == 1 for grid in grids())
    case = make_case(maps={"fixed_labels": fixed, "moving_labels": moving.astype(np.float32)})
    with pytest.raises(
        InputError, match=r"moving_labels\.ome\.zarr: .* holds integers, got float32; build the case again"
    ):
        score_case(case, None)


@pytest.mark.parametrize("task", ["segmentation", "synthesis"])
def test_a_truth_that_is_no_number_somewhere_is_the_case_s_fault(tmp_path, task):
    describe(tmp_path / "share", task)
    voxels = np.ones(GRID.shape, np.float32)
    output = write_output(tmp_path / "outputs" / "one", voxels if task == "synthesis" else voxels.astype(np.uint8))
    voxels[0, 0, 0] = np.nan
    name = "target" if task == "synthesis" else "labels"
    store(tmp_path / "corpus" / "made" / "one" / "truth" / f"{name}.ome.zarr", voxels)
    roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
    dataset = corpus.dataset("made", roots)
    with pytest.raises(InputError, match=rf"{re.escape(name)}\.ome\.zarr: .*; build the case again"):
        Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), output)


def test_rows_of_identity_that_were_cut_short_stop_nobody_else(tmp_path):
    digest = "sha256:" + "ab" * 32
    line = results.Line(tmp_path, "there", "identity", "made")
    results.add_row(line, "one", results.new_row({"tre": 2.0}), checksums=digest)
    measured = []

    def remark() -> str | None:
        before = Unregistered(tmp_path, "made", digest)
        return before.remark("it", "one", {"tre": 3.0}, measure=lambda: measured.append(1) or {"tre": 2.5})

    assert "tre (3, not 2)" in remark()
    assert measured == []
    line.rows.write_bytes(line.rows.read_bytes()[:-20])
    assert "tre (3, not 2.5)" in remark()
    assert measured == [1]


@pytest.mark.parametrize("absent", ["fixed_labels.ome.zarr", "moving_labels.ome.zarr", "moving_landmarks_more.csv"])
def test_a_truth_of_which_one_side_was_lost_is_not_scored_without_it(make_case, grids, absent):
    points = {
        f"{side}_landmarks{name}": grids()[0].world([[3.0, 4.0, 5.0]]) for side in SIDES for name in ("", "_more")
    }
    case = make_case(points=points)
    path = case.truth / absent
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(MissingError, match=rf"{absent} is absent, .*: fidopt build tiny case01"):
        score_case(case, None)


def test_a_label_map_that_lost_a_shard_is_not_scored_as_background(make_case):
    case = make_case()
    (case.truth / "moving_labels.ome.zarr" / "0" / "c" / "0" / "0" / "0").unlink()
    with pytest.raises(InputError, match=r"moving_labels\.ome\.zarr: its shard file 0/c/0/0/0 is not there"):
        score_case(case, None)


def test_a_fixed_image_without_a_number_has_no_body_and_that_is_said(make_case, grids):
    case, grid = make_case(2), grids(2)[0]
    blocks.write_image(case.fixed, blocks.image_of(np.full(grid.shape, np.nan, np.float32), grid), overwrite=True)
    scores = score_case(case, None)
    assert scores.metrics["folds"] == 0.0
    assert (scores.metrics["folds_body"], scores.metrics["sdlogj_body"]) == (None, None)
    assert "foreground" in scores.reasons["folds_body"]
