"""Syntheses: errors and similarity inside the mask or the body, and images that cannot be scored."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy import ndimage

import blocks
from blocks.grid import Grid
from blocks.kernels import similarity
from fidopt import corpus, resources
from fidopt.results import read_rows
from fidopt.scoring.image_criteria import MAE, PSNR, MaskedSSIM
from fidopt.scoring.output_evaluation import body_of
from fidopt.scoring.output_submission import Outputs, score_outputs
from tests.scoring.made import GRID, describe, store, write_output

RANGE = 100.0


def rough(seed, shape=GRID.shape):
    """Return a smooth random image of about the dataset's range (float32)."""
    field = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), 1.5)
    return (50 + 200 * field).astype(np.float32)


def ball(shape=GRID.shape):
    """Return a mask that touches no face."""
    index = np.indices(shape) - (np.array(shape).reshape(-1, *[1] * len(shape)) - 1) / 2
    return ((index / 5.0) ** 2).sum(axis=0) < 1


@pytest.fixture
def made(tmp_path):
    """Return a function that builds the case ``one`` (or another) of a target and a mask."""

    def _made(target, mask=None, *, case="one", **changes):
        describe(tmp_path / "share", "synthesis", masks=[] if mask is None else ["mask"], **changes)
        folder = tmp_path / "corpus" / "made" / case
        store(folder / "truth" / "target.ome.zarr", target)
        store(folder / "source.ome.zarr", target)
        if mask is not None:
            store(folder / "mask.ome.zarr", mask.astype(np.uint8), labels=True)
        roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
        return corpus.dataset("made", roots), roots

    return _made


@pytest.fixture
def scored(made, tmp_path):
    """Return a function from a target, a mask and an image to the row, and what was said."""

    def _scored(target, image, mask=None, **changes):
        dataset, roots = made(target, mask, **changes)
        said = []
        path = write_output(tmp_path / "outputs" / "one", image)
        row = Outputs(dataset, roots, say=said.append).score(corpus.case(dataset, "one", roots), path)
        return row, said

    return _scored


def test_by_hand_an_image_three_too_bright_inside_and_a_thousand_outside(scored):
    target, mask = rough(1), ball()
    row, said = scored(target, np.where(mask, target + 3, target + 1000).astype(np.float32), mask)
    assert row.metrics["mae"] == pytest.approx(3.0, abs=1e-5)
    assert row.metrics["psnr"] == pytest.approx(20 * np.log10(RANGE / 3), abs=1e-5)
    assert 0.9 < row.metrics["ssim"] < 1
    assert row.regions["mae"]["inside"] == pytest.approx(row.metrics["mae"], rel=1e-12)
    assert row.regions["mae"]["outside"] == pytest.approx(1000, rel=1e-5)
    assert row.regions["bias"]["quarter 2"] == pytest.approx(3.0, abs=1e-5)
    assert row.regions["voxels"]["inside"] == mask.sum()
    assert said == []


def test_a_perfect_image_has_no_finite_ratio_and_says_why(scored):
    target = rough(1)
    row, _ = scored(target, target, ball())
    assert (row.metrics["mae"], row.metrics["ssim"], row.metrics["psnr"]) == (0.0, 1.0, None)
    assert "the ratio is infinite" in row.reasons["psnr"]


def test_the_errors_are_numpy_s_and_the_similarity_scikit_image_s(scored):
    metrics = pytest.importorskip("skimage.metrics")
    target, image, mask = rough(1), rough(2), ball()
    row, _ = scored(target, image, mask)
    first, second = (np.where(mask, one.astype(np.float64), 0.0) for one in (target, image))
    difference = (first - second)[mask]
    assert row.metrics["mae"] == pytest.approx(np.abs(difference).mean(), rel=1e-12)
    assert row.metrics["psnr"] == pytest.approx(10 * np.log10(RANGE**2 / (difference**2).mean()), rel=1e-12)
    padded = [np.pad(one, 3) for one in (first, second)]
    _, each = metrics.structural_similarity(*padded, data_range=RANGE, full=True)
    assert row.metrics["ssim"] == pytest.approx(each[3:-3, 3:-3, 3:-3][mask].mean(), abs=1e-9)


def test_konfai_s_own_errors_agree_and_its_similarity_counts_the_margin_as_alike():
    from konfai.metric.measure import regression

    target, image, mask = rough(1), rough(2), ball()
    tensors = [torch.from_numpy(np.ascontiguousarray(one))[None, None] for one in (image, target, mask)]
    for ours, theirs in ((MAE(), regression.MAE()), (PSNR(RANGE), regression.PSNR(RANGE))):
        assert float(ours(*tensors)[1]) == pytest.approx(float(theirs(*tensors)[1]), rel=1e-5)
    whole = float(regression.SSIM(RANGE)(*tensors)[1])
    wide = [torch.nn.functional.pad(one, [20] * 6) for one in tensors]
    wider = float(regression.SSIM(RANGE)(*wide)[1])
    masked = [float(MaskedSSIM(RANGE)(*some)[1]) for some in (tensors, wide)]
    assert masked[0] == pytest.approx(masked[1], abs=1e-15)
    assert masked[0] < whole < wider
    # Of what KonfAI sums, all that lies beyond the mask's windows is 1: put the whole map over the mask's voxels.
    each = similarity.similarity_map(*(np.where(mask, one, 0) for one in (image, target)), dynamic_range=RANGE)
    assert whole == pytest.approx(each.mean(), abs=1e-6)


@pytest.mark.parametrize("shape", [(11, 20, 15), (4, 9, 5), (30, 23)])
def test_a_similarity_from_patches_is_that_of_the_whole(shape):
    rng = np.random.default_rng(4)
    image, target, mask = rng.normal(size=shape) * 20, rng.normal(size=shape) * 20, rng.random(shape) < 0.4
    whole = similarity.partial(image, target, mask, dynamic_range=RANGE)
    step = 4
    parts = []
    for corner in np.ndindex(*(-(-n // step) for n in shape)):
        core = [slice(c * step, min(n, c * step + step)) for c, n in zip(corner, shape, strict=True)]
        patch = [slice(max(0, part.start - 3), min(n, part.stop + 3)) for part, n in zip(core, shape, strict=True)]
        inner = tuple(slice(c.start - p.start, c.stop - p.start) for c, p in zip(core, patch, strict=True))
        cut = [one[tuple(patch)] for one in (image, target, mask)]
        parts.append(similarity.partial(*cut, dynamic_range=RANGE, core=inner))
    together = similarity.combine(parts)
    assert together.count == whole.count == np.count_nonzero(mask)
    assert together.mean == pytest.approx(whole.mean, abs=1e-12)


def test_how_many_planes_are_in_work_changes_no_bit(monkeypatch):
    image, target, mask = rough(1), rough(2), ball()
    whole = similarity.partial(image, target, mask, dynamic_range=RANGE)
    monkeypatch.setattr(similarity, "_BYTES", 1)
    assert similarity.partial(image, target, mask, dynamic_range=RANGE) == whole


def test_patches_that_konfai_streams_have_the_value_of_the_whole():
    image, target, mask = (
        torch.from_numpy(np.ascontiguousarray(one))[None, None] for one in (rough(1), rough(2), ball())
    )
    for criterion in (MAE(), PSNR(RANGE)):
        states = [
            criterion.partial_metric(*(one[:, :, rows] for one in (image, target, mask)))
            for rows in (slice(0, 5), slice(5, None))
        ]
        whole = float(criterion(image, target, mask)[1])
        assert float(criterion.combine_metric(states)[1]) == pytest.approx(whole, abs=1e-9)


def test_the_same_bits_for_any_number_of_threads():
    tensors = [
        torch.from_numpy(np.ascontiguousarray(one))[None, None]
        for one in (rough(1, (64, 64, 64)), rough(2, (64, 64, 64)), ball((64, 64, 64)))
    ]
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append([float(criterion(*tensors)[1]) for criterion in (MAE(), PSNR(RANGE), MaskedSSIM(RANGE))])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_without_a_mask_the_real_image_s_body_is_looked_at_its_air_included(scored):
    body = ball()
    target = np.where(body, 80.0, 0.0).astype(np.float32)
    target[6, 8, 7] = 0.0  # air inside
    row, _ = scored(target, np.full(GRID.shape, 70.0, np.float32))
    inside = np.count_nonzero(body)
    assert row.metrics["mae"] == pytest.approx((10 * (inside - 1) + 70) / inside)


def test_a_body_open_at_a_face_is_filled_plane_by_plane():
    ring = np.zeros((5, 12, 12), np.float32)
    ring[:, 2:10, 2:10] = 100
    ring[:, 4:8, 4:8] = 0
    body = body_of(blocks.image_of(ring, Grid.of(ring.shape), unit="mm"))
    assert np.count_nonzero(body.values) == 5 * 64


def test_an_empty_mask_leaves_nothing_and_says_so(scored):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row, _ = scored(rough(1), rough(2), np.zeros(GRID.shape))
    assert row.metrics == {"mae": None, "psnr": None, "ssim": None}
    assert row.reasons["mae"] == "the mask is empty"


def test_a_real_image_of_one_value_has_no_body_and_that_is_said(scored):
    row, _ = scored(np.full(GRID.shape, 5.0, np.float32), rough(2))
    assert row.metrics == {"mae": None, "psnr": None, "ssim": None}
    assert set(row.reasons.values()) == {"the real image has one value, hence no body to look inside"}


def test_the_channels_of_a_colour_image_are_averaged(tmp_path):
    describe(tmp_path / "share", "synthesis", dimension=2, unit="px", masks=["mask"])
    flat = Grid.of((20, 6))
    case, colours = tmp_path / "corpus" / "made" / "one", np.stack([rough(seed, flat.shape) for seed in range(3)])
    mask = np.ones(flat.shape, np.uint8)
    store(case / "truth" / "target.ome.zarr", colours, grid=flat, unit="px")
    store(case / "mask.ome.zarr", mask, labels=True, grid=flat, unit="px")
    brighter = colours + np.array([1, 2, 6], np.float32)[:, None, None]
    store(tmp_path / "outputs" / "one" / "image.ome.zarr", brighter, grid=flat, unit="px")
    roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
    dataset = corpus.dataset("made", roots)
    path = tmp_path / "outputs" / "one" / "image.ome.zarr"
    row = Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path)
    assert row.metrics["mae"] == pytest.approx(3.0, abs=1e-5)
    each = [
        similarity.partial(one, other, mask == 1, dynamic_range=RANGE).mean
        for one, other in zip(brighter, colours, strict=True)
    ]
    assert row.metrics["ssim"] == pytest.approx(np.mean(each), abs=1e-12)


def test_a_case_without_its_target_is_to_be_built_again(made, tmp_path):
    import shutil

    from fidopt.errors import MissingError

    dataset, roots = made(rough(1))
    path = write_output(tmp_path / "outputs" / "one", rough(2))
    shutil.rmtree(tmp_path / "corpus" / "made" / "one" / "truth" / "target.ome.zarr")
    with pytest.raises(MissingError, match="build the case again: fidopt build made one"):
        Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path)


@pytest.mark.parametrize(
    ("image", "grid", "message"),
    [
        (rough(2), Grid(GRID.shape, GRID.spacing, (0.0, 0.0, 0.0), GRID.direction), "lies on another grid"),
        (rough(2)[:, 1:], Grid((13, 16, 15), GRID.spacing, GRID.origin, GRID.direction), "lies on another grid"),
        (np.stack([rough(2), rough(3)]), GRID, "has 2 channels and the target 1"),
        (np.where(ball(), rough(2), np.nan).astype(np.float32), GRID, "are not finite, the first at index (0, 0, 0)"),
        (np.where(ball(), rough(2), np.inf).astype(np.float32), GRID, "are not finite"),
        # Finite, and its square is not: without a word the ratio would be left out of a line's mean.
        (
            np.where(ball(), rough(2).astype(np.float64), 1e300),
            GRID,
            "beyond what a float32 holds, the first at index (0, 0, 0)",
        ),
    ],
)
def test_an_image_that_cannot_be_scored_leaves_the_line_incomplete(made, tmp_path, image, grid, message):
    dataset, roots = made(rough(1), ball())
    path = write_output(tmp_path / "outputs" / "one", image, grid=grid)
    said = []
    row = Outputs(dataset, roots, say=said.append).score(corpus.case(dataset, "one", roots), path)
    assert message in row.error.reason
    assert row.error.stage == "output"
    assert row.metrics == {"mae": None, "psnr": None, "ssim": None}
    assert "the line is incomplete" in said[0]


def test_a_mask_on_another_grid_is_the_case_s_fault_not_the_method_s(made, tmp_path):
    from fidopt.errors import InputError

    dataset, roots = made(rough(1), ball())
    elsewhere = Grid(GRID.shape, GRID.spacing, (0.0, 0.0, 0.0), GRID.direction)
    store(tmp_path / "corpus" / "made" / "one" / "mask.ome.zarr", ball().astype(np.uint8), labels=True, grid=elsewhere)
    path = write_output(tmp_path / "outputs" / "one", rough(2))
    with pytest.raises(InputError, match="does not lie on the grid of made/one's target; build the case again"):
        Outputs(dataset, roots).score(corpus.case(dataset, "one", roots), path)


def test_a_line_of_which_a_case_failed_is_shown_and_not_ranked(made, tmp_path):
    from fidopt.leaderboard.board import board

    made(rough(1), ball())
    dataset, roots = made(rough(4), ball(), case="two")
    for name, cases in (("whole", ("one", "two")), ("half", ("one",))):
        for case in cases:
            write_output(tmp_path / name / case, rough(7))
        folder = tmp_path / "share" / "methods" / name
        folder.mkdir(parents=True)
        licence = '"licence": {"code": "MIT", "weights": null}'
        taken = '"tasks": ["synthesis"], "dimensions": [3], "modalities": ["*"], "reference": "-"'
        (folder / "method.json").write_text(f'{{"name": "{name}", "version": "1", {licence}, {taken}}}')
        score_outputs(name, dataset, outputs=tmp_path / name, roots=roots, machine="here")
    lines = {line.method: line for line in board("made", roots=roots).lines}
    assert (lines["whole"].place, lines["whole"].unranked) == (1, None)
    assert lines["half"].place is None
    assert lines["half"].unranked == "it has no result for 1 of 2 cases, and none stands in"
    assert lines["half"].metrics["mae"].cases == 1
    assert read_rows(roots.results / "here" / "half" / "made.json").rows["two"].metrics["mae"] is None
