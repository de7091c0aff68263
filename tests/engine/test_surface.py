"""Distances between surfaces, held against DeepMind's own code."""

import warnings

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.kernels import areas, surface
from blocks.region import Region

reference = pytest.importorskip("surface_distance.metrics", reason="surface-distance is not installed")
tables = pytest.importorskip("surface_distance.lookup_tables")


def _theirs(first: np.ndarray, second: np.ndarray, steps: tuple[float, ...]) -> dict[str, np.ndarray]:
    with warnings.catch_warnings():  # the package names SciPy modules that are going away
        warnings.simplefilter("ignore", DeprecationWarning)
        return reference.compute_surface_distances(first, second, steps)


def _reversed_bits(bits: int) -> list[int]:
    return [sum((code >> i & 1) << (bits - 1 - i) for i in range(bits)) for code in range(2**bits)]


@st.composite
def _pairs(draw):
    ndim = draw(st.sampled_from([2, 3]))
    shape = draw(st.lists(st.integers(1, 12), min_size=ndim, max_size=ndim))
    steps = draw(st.lists(st.sampled_from([1.0, 0.37, 2.5, 1.0 / 3.0]), min_size=ndim, max_size=ndim))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    maps = [random.random(shape) < draw(st.sampled_from([0.05, 0.3, 0.6, 0.95])) for _ in range(2)]
    for labels in maps:
        labels.flat[0] = True
    return maps[0], maps[1], tuple(steps)


@settings(max_examples=60, deadline=None)
@given(_pairs())
def test_distances_areas_and_hd95_are_deepminds(pair):
    first, second, steps = pair
    theirs = _theirs(first, second, steps)
    ours = surface.surface_distances(first, second, label=1, steps=steps)
    assert ours is not None
    for distances, area, way in (
        (ours.forward, ours.forward_area, ("distances_gt_to_pred", "surfel_areas_gt")),
        (ours.backward, ours.backward_area, ("distances_pred_to_gt", "surfel_areas_pred")),
    ):
        assert np.sort(distances) == pytest.approx(theirs[way[0]], abs=1e-9)
        # Distances equal but for their last bit may come in either order, and so may their areas.
        assert np.sort(area) == pytest.approx(np.sort(theirs[way[1]]), abs=1e-9)
    assert surface.hausdorff(ours) == pytest.approx(reference.compute_robust_hausdorff(theirs, 95), abs=1e-9)


def test_the_table_of_areas_is_deepminds():
    ours = areas.areas((2.5, 1.3, 0.7))
    theirs = tables.create_table_neighbour_code_to_surface_area((2.5, 1.3, 0.7))
    assert ours == pytest.approx(theirs[_reversed_bits(8)], abs=1e-12)
    ours = areas.areas((2.5, 1.3))
    theirs = tables.create_table_neighbour_code_to_contour_length((2.5, 1.3))
    assert ours == pytest.approx(theirs[_reversed_bits(4)], abs=1e-12)


def test_two_planes_five_millimetres_apart_by_hand():
    fixed, warped = np.zeros((9, 4, 4), dtype=np.uint8), np.zeros((9, 4, 4), dtype=np.uint8)
    fixed[0], warped[2] = 7, 7
    distances = surface.surface_distances(fixed, warped, label=7, steps=(2.5, 1.0, 1.0))
    assert distances is not None
    assert surface.hausdorff(distances) == 5.0
    assert distances.forward.max() == 5.0
    # Two faces of 4 x 4, and a rim of one voxel's height whose edges and corners marching cubes cuts off.
    assert 2 * 9 <= distances.forward_area.sum() <= 2 * 16 + 4 * 4 * 2.5


def test_a_slab_moved_by_three_slices_of_five_millimetres(shared_case):
    first, second = (sitk.ReadImage(str(shared_case(f"d6_{name}.nii.gz"))) for name in "ab")
    maps = [sitk.GetArrayFromImage(image) for image in (first, second)]
    steps = first.GetSpacing()[::-1]
    label = int(maps[0].max())
    distances = surface.surface_distances(maps[0], maps[1], label=label, steps=steps)
    assert distances is not None
    assert surface.hausdorff(distances) == pytest.approx(15.0, abs=1e-5)


def test_distances_do_not_depend_on_the_crop():
    random = np.random.default_rng(4)
    fixed, warped = np.zeros((20, 21, 22), dtype=np.int32), np.zeros((20, 21, 22), dtype=np.int32)
    fixed[4:9, 5:15, 6:12] = 614454277 * (random.random((5, 10, 6)) < 0.8)
    warped[7:13, 3:11, 8:17] = 614454277 * (random.random((6, 8, 9)) < 0.8)
    (box,) = surface.boxes(fixed, warped, ids=[614454277])
    whole = surface.surface_distances(fixed, warped, label=614454277, steps=(2.0, 1.0, 0.5))
    cropped = surface.surface_distances(fixed[box.slices], warped[box.slices], label=614454277, steps=(2.0, 1.0, 0.5))
    assert whole is not None
    assert cropped is not None
    assert (whole.forward == cropped.forward).all()
    assert (whole.backward_area == cropped.backward_area).all()


@pytest.mark.parametrize("shape", [(11, 13), (7, 11, 13)])
def test_boxes_hold_a_label_of_both_maps_and_no_more(shape):
    random = np.random.default_rng(9)
    fixed, warped = (random.integers(0, 40, shape) * (random.random(shape) < 0.2) for _ in range(2))
    ids = [7, 3, 39, 12345]
    for label, box in zip(ids, surface.boxes(fixed, warped, ids=ids), strict=True):
        places = np.argwhere((fixed == label) | (warped == label))
        if len(places) == 0:
            assert box.empty
        else:
            assert box == Region(tuple(places.min(axis=0)), tuple(places.max(axis=0) + 1))


@pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 1), (0, 0)])
def test_an_empty_map_has_no_distance(first, second):
    maps = [np.full((3, 3, 3), value, dtype=np.uint8) for value in (first, second)]
    assert surface.surface_distances(maps[0], maps[1], label=1, steps=(1.0, 1.0, 1.0)) is None


def test_maps_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match="one shape"):
        surface.surface_distances(np.zeros((3, 3), dtype=bool), np.zeros((3, 4), dtype=bool), label=1, steps=(1.0, 1.0))


def test_the_distances_of_an_experts_masks(shared_data):
    folder = shared_data("headneck_masks")
    paths = ["groundtruth_masks/90_midRT_mask.nii.gz", "prediction_masks/90_preRT_mask_registered.nii.gz"]
    images = [sitk.ReadImage(str(folder / path)) for path in paths]
    maps = [sitk.GetArrayFromImage(image) for image in images]
    expected = {1: 6.32456, 2: 2.0}
    for (label, value), box in zip(expected.items(), surface.boxes(*maps, ids=list(expected)), strict=True):
        cropped = [labels[box.slices] for labels in maps]
        steps = images[0].GetSpacing()[::-1]
        distances = surface.surface_distances(cropped[0], cropped[1], label=label, steps=steps)
        assert distances is not None
        assert surface.hausdorff(distances) == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("tolerance", [0.4, 1.0, 2.5])
def test_surface_dice_is_that_of_the_field_s_code(tolerance):
    rng = np.random.default_rng(11)
    first, second = (rng.random((9, 12, 10)) < part for part in (0.4, 0.3))
    steps = (2.0, 0.7, 1.3)
    ours = surface.surface_distances(first.astype(np.uint8), second.astype(np.uint8), label=1, steps=steps)
    theirs = _theirs(first, second, steps)
    expected = reference.compute_surface_dice_at_tolerance(theirs, tolerance)
    assert surface.surface_dice(ours, tolerance=tolerance) == pytest.approx(expected, abs=1e-12)


def test_surface_dice_of_a_square_and_a_wider_one_by_hand():
    first, second = np.zeros((2, 8, 8), dtype=np.uint8)
    first[2:6, 2:6] = second[2:6, 2:7] = 1
    distances = surface.surface_distances(first, second, label=1, steps=(1.0, 1.0))
    assert surface.surface_dice(distances, tolerance=1.0) == 1.0
    # A contour point on a side stands for a length of 1, one on a corner for half a diagonal: 12 + 2 sqrt(2) around the
    # square, 14 + 2 sqrt(2) around the other. A unit away are three points of the square's right side, and all five of
    # the other's, two of them corners.
    root = np.sqrt(2.0)
    expected = 1 - (3 + 3 + root) / (26 + 4 * root)
    assert surface.surface_dice(distances, tolerance=0.5) == pytest.approx(expected, abs=1e-12)
