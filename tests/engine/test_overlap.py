"""Label counts of two maps, block by block."""

import csv
import tracemalloc

import dask
import dask.array as da
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows
from dask.utils import key_split
from hypothesis import given, settings
from hypothesis import strategies as st

import blocks
from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import image_of
from blocks.kernels import overlap
from blocks.memory import overlap_bytes


def _direct(fixed: np.ndarray, warped: np.ndarray) -> dict[int, tuple[int, int, int]]:
    ids = np.union1d(np.unique(fixed), np.unique(warped))
    return {
        int(i): (int((fixed == i).sum()), int((warped == i).sum()), int(((fixed == i) & (warped == i)).sum()))
        for i in ids
    }


def _as_dict(counts: overlap.LabelCounts) -> dict[int, tuple[int, int, int]]:
    rows = zip(counts.ids, counts.fixed, counts.warped, counts.both, strict=True)
    return {int(i): (int(a), int(b), int(c)) for i, a, b, c in rows}


def test_counts_and_dice_by_hand():
    fixed = np.array([[0, 1, 1], [2, 2, 3]])
    warped = np.array([[1, 1, 0], [2, 2, 4]])
    counts = overlap.partial(fixed, warped)
    assert _as_dict(counts) == {0: (1, 1, 0), 1: (2, 2, 1), 2: (2, 2, 2), 3: (1, 0, 0), 4: (0, 1, 0)}
    chosen = counts.select([2, 1, 3, 4, 99])
    assert overlap.dice(chosen)[:4].tolist() == [1.0, 0.5, 0.0, 0.0]
    assert np.isnan(overlap.dice(chosen)[4])
    assert _as_dict(chosen.select([4, 2])) == {4: (0, 1, 0), 2: (2, 2, 2)}
    assert _as_dict(chosen.select([]).select([1])) == {1: (0, 0, 0)}


def test_a_label_as_long_as_a_number_costs_one_row(shared_case):
    labels = sitk.GetArrayFromImage(sitk.ReadImage(str(shared_case("d8_wide.nii.gz"))))
    assert {1, 257, 614454277} <= set(overlap.distinct(labels).tolist())
    counts = overlap.partial(labels, labels)
    assert counts.ids.size < 10
    assert counts.fixed.sum() == labels.size


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([bool, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]),
    st.sampled_from([np.uint8, np.int32, np.int64]),
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
    st.integers(0, 2**32 - 1),
    st.integers(1, 200),
)
def test_blocks_of_any_type_add_up_to_a_direct_count(first, second, shape, seed, labels):
    random = np.random.default_rng(seed)
    fixed = random.integers(0, 2 if first is bool else min(labels, 120) + 1, shape).astype(first)
    warped = random.integers(0, min(labels, 120) + 1, shape).astype(second)
    cut = shape[0] // 2
    parts = [overlap.partial(fixed[:cut], warped[:cut]), overlap.partial(fixed[cut:], warped[cut:])]
    assert _as_dict(overlap.combine(parts)) == _direct(fixed.astype(np.int64), warped.astype(np.int64))


def test_negative_and_very_long_labels_are_kept():
    fixed = np.array([-(2**40), 0, 2**62, 2**62], dtype=np.int64)
    assert _as_dict(overlap.partial(fixed, fixed)) == _direct(fixed, fixed)


def test_more_labels_than_the_first_table_holds():
    fixed = np.random.default_rng(0).permutation(3000).astype(np.int32)
    assert overlap.distinct(fixed).tolist() == list(range(1, 3000))


def test_dice_equals_simpleitks():
    random = np.random.default_rng(3)
    fixed = random.integers(0, 5, (6, 20, 11)).astype(np.uint8)
    warped = np.where(random.random(fixed.shape) < 0.7, fixed, random.integers(0, 5, fixed.shape)).astype(np.uint8)
    measures = sitk.LabelOverlapMeasuresImageFilter()
    measures.Execute(sitk.GetImageFromArray(fixed), sitk.GetImageFromArray(warped))
    ours = overlap.dice(overlap.partial(fixed, warped).select(range(1, 5)))
    assert ours == pytest.approx([measures.GetDiceCoefficient(i) for i in range(1, 5)], abs=1e-15)


def test_truth_and_prediction_in_four_combinations(shared_case):
    cube, empty = (
        sitk.GetArrayFromImage(sitk.ReadImage(str(shared_case(f"d5_{name}.nii.gz")))) for name in ("cube", "empty")
    )
    label = int(overlap.distinct(cube)[0])
    dice = {
        (len(np.unique(a)) > 1, len(np.unique(b)) > 1): float(overlap.dice(overlap.partial(a, b).select([label]))[0])
        for a in (cube, empty)
        for b in (cube, empty)
    }
    assert dice[True, True] == 1.0
    assert dice[True, False] == 0.0
    assert dice[False, True] == 0.0
    assert np.isnan(dice[False, False])


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (np.zeros((2, 3)), "integers, got float64"),
        (np.array([[2**63, 0, 0]] * 2, dtype=np.uint64), "beyond the largest int64"),
        (np.zeros((3, 2), dtype=np.uint8), "one shape"),
    ],
)
def test_what_is_not_a_pair_of_label_maps_is_refused(fixed, message):
    with pytest.raises(ValueError, match=message):
        overlap.partial(fixed, np.zeros((2, 3), dtype=np.uint8))


def _image(labels: np.ndarray, shape: tuple[int, ...]):
    return image_of(da.from_array(labels, chunks=shape), Grid.of(labels.shape, spacing=(1.0, 2.0, 3.0)), kind="labels")


def _refuse(dsk, keys, **_):
    msg = "a graph was computed while it was built"
    raise AssertionError(msg)


@pytest.mark.parametrize("chunks", [(40, 50, 60), (7, 50, 11), (16, 16, 16)])
def test_lazy_counts_are_those_of_the_whole_for_any_chunks(chunks):
    random = np.random.default_rng(0)
    fixed, warped = (random.integers(0, 6, (40, 50, 60)).astype(np.uint8) for _ in range(2))
    with dask.config.set(scheduler=_refuse):
        lazy = blocks.overlap(_image(fixed, chunks), _image(warped, (40, 50, 60)))
    assert _as_dict(compute(lazy)) == _direct(fixed, warped)


def test_tasks_say_in_the_dashboard_that_they_count_labels():
    labels = np.zeros((600, 300, 10), dtype=np.uint8)
    image = image_of(labels, Grid.of(labels.shape), kind="labels")
    names = {key_split(key) for key in blocks.overlap(image, image).dask}
    assert {"label-counts", "label-counts-sum"} <= names


def test_what_a_pair_of_blocks_takes_is_known_before_it_is_counted():
    for dtype in (np.uint8, np.int16, np.int64):
        fixed = np.random.default_rng(0).integers(0, 100, (150, 160, 170)).astype(dtype)
        overlap.partial(fixed, fixed)
        tracemalloc.start()
        overlap.partial(fixed, fixed)
        taken = tracemalloc.get_traced_memory()[1] + 2 * fixed.nbytes
        tracemalloc.stop()
        assert taken <= overlap_bytes(fixed.size, itemsize=fixed.itemsize) <= 3 * taken + (4 << 20)


def test_many_shards_are_added_up_in_a_tree():
    labels = np.random.default_rng(0).integers(0, 9, (4096 * 40 + 1, 1)).astype(np.int16)
    image = image_of(labels, Grid.of(labels.shape), kind="labels")
    assert _as_dict(compute(blocks.overlap(image, image))) == _direct(labels, labels)


def test_maps_on_two_grids_are_refused():
    labels = np.zeros((4, 5), dtype=np.uint8)
    here, there = image_of(labels, Grid.of((4, 5))), image_of(labels, Grid.of((4, 5), origin=(1.0, 0.0)))
    with pytest.raises(ValueError, match="one grid"):
        blocks.overlap(here, there)


def test_a_map_with_channels_is_refused():
    coloured = image_of(np.zeros((3, 4, 5), dtype=np.uint8), Grid.of((4, 5)))
    with pytest.raises(ValueError, match="channel"):
        blocks.overlap(coloured, coloured)


def test_expert_masks_against_registered_ones_have_their_published_dice(shared_data):
    folder = shared_data("headneck_masks")
    with (folder / "dice.csv").open(newline="") as table:
        published = list(csv.DictReader(table))
    for row in published:
        paths = [
            folder / "groundtruth_masks" / f"{row['case']}_midRT_mask.nii.gz",
            folder / "prediction_masks" / f"{row['case']}_preRT_mask_registered.nii.gz",
        ]
        truth, predicted = (sitk.GetArrayFromImage(sitk.ReadImage(str(path))) for path in paths)
        counts = overlap.partial(truth, predicted).select([1, 2])
        for k, (label, value) in enumerate(zip("12", overlap.dice(counts), strict=True)):
            assert counts.fixed[k] == int(row[f"truth_voxels_{label}"])
            if row[f"dice_{label}"]:
                assert value == pytest.approx(float(row[f"dice_{label}"]), abs=1e-15)
            else:
                assert np.isnan(value)
    assert len(published) == 15
