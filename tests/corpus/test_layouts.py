"""The cases of a segmentation and of a synthesis: what they hold, and what is refused since nothing could score it."""

from __future__ import annotations

import numpy as np
import pytest

from blocks import open_image
from blocks.image import grid_of
from fidopt import building, corpus
from fidopt.errors import InputError
from tests.corpus.conftest import nifti

TRUTH = {"grade": "expert", "by": "b", "checked": "c", "limits": "l"}
SEGMENTATION = {
    "task": "segmentation",
    "modalities": {"image": "mr"},
    "truth": TRUTH | {"labels": {"2": "GTVn", "7": "GTVp"}},
}
SYNTHESIS = {
    "task": "synthesis",
    "modalities": {"source": "mr", "target": "ct"},
    "masks": ["mask"],
    "truth": TRUTH | {"dynamic_range": 3000.0},
}
SHAPE = (13, 9, 7)


def oblique(voxels, **geometry):
    return nifti(voxels, **({"spacing": (0.9, 1.1, 2.5), "turn": 12.0} | geometry))


def labels(*values):
    return oblique(np.resize(np.array([0, *values], dtype=np.uint8), SHAPE))


def picture(kind=np.int16, shape=SHAPE):
    return np.random.default_rng(3).integers(-900, 900, size=shape).astype(kind)


@pytest.fixture
def segmented():
    return {"one-image.nii.gz": oblique(picture()), "one-truth-labels.nii.gz": labels(2, 7)}


@pytest.fixture
def synthesised():
    return {
        "one-source.nii.gz": oblique(picture()),
        "one-mask.nii.gz": labels(1),
        "one-truth-target.nii.gz": oblique(picture(np.float32)),
    }


def stores(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.ome.zarr"))


def test_a_segmentation_case_is_an_image_and_its_labels_apart(make, segmented):
    dataset, roots = make(segmented, **SEGMENTATION)
    building.build(dataset, roots=roots)
    case = corpus.case(dataset, "one", roots)
    assert stores(case.folder) == ["image.ome.zarr", "truth/labels.ome.zarr"]
    image, truth = open_image(case.folder / "image.ome.zarr"), open_image(case.truth / "labels.ome.zarr")
    np.testing.assert_array_equal(image.values, picture().T)
    np.testing.assert_array_equal(truth.values, np.resize(np.array([0, 2, 7], dtype=np.uint8), SHAPE).T)
    assert (image.attrs["kind"], truth.attrs["kind"]) == ("image", "labels")
    assert grid_of(image) == grid_of(truth)
    assert case.has_images
    assert building.verify(dataset, roots=roots) == []


def test_a_segmentation_of_several_sequences_keeps_them_as_channels(make, segmented):
    sequences = oblique(picture(shape=(*SHAPE, 4)))
    dataset, roots = make(segmented | {"one-image.nii.gz": sequences}, **SEGMENTATION)
    building.build(dataset, roots=roots)
    image = open_image(corpus.case(dataset, "one", roots).folder / "image.ome.zarr")
    assert (image.dims, image.shape) == (("c", "z", "y", "x"), (4, *SHAPE[::-1]))


def test_masks_whose_image_is_not_given_can_be_built_and_not_run(make, segmented):
    dataset, roots = make({"one-truth-labels.nii.gz": segmented["one-truth-labels.nii.gz"]}, **SEGMENTATION)
    building.build(dataset, roots=roots)
    case = corpus.case(dataset, "one", roots)
    assert stores(case.folder) == ["truth/labels.ome.zarr"]
    assert not case.has_images


def test_a_synthesis_case_hands_over_its_source_and_mask_and_keeps_the_target_back(make, synthesised):
    dataset, roots = make(synthesised, **SYNTHESIS)
    building.build(dataset, roots=roots)
    case = corpus.case(dataset, "one", roots)
    assert stores(case.folder) == ["mask.ome.zarr", "source.ome.zarr", "truth/target.ome.zarr"]
    target = open_image(case.truth / "target.ome.zarr")
    np.testing.assert_array_equal(target.values, picture(np.float32).T)
    assert target.dtype == np.float32
    assert open_image(case.folder / "mask.ome.zarr").attrs["kind"] == "labels"
    assert list(case.masks()) == ["mask"]
    assert case.has_images


HOLES = np.where(np.arange(np.prod(SHAPE)).reshape(SHAPE) % 100 == 5, np.float32("nan"), np.float32(1))


@pytest.mark.parametrize(
    ("files", "changes", "message"),
    [
        ({"one-truth-labels.nii.gz": None}, {}, r"tiny/one: truth/labels: is missing; a segmentation is scored on it"),
        (
            {"one-truth-labels.nii.gz": labels(2, 3)},
            {},
            r"tiny/one: truth/labels: holds the labels \[3\], which truth\.labels of dataset\.json does not name",
        ),
        (
            {"one-image.nii.gz": None, "one-truth-labels.nii.gz": labels(2, 3)},
            {},
            r"tiny/one: truth/labels: holds the labels \[3\]",
        ),
        (
            {"one-truth-labels.nii.gz": oblique(np.zeros(SHAPE, np.uint8), turn=13.0)},
            {},
            r"truth/labels: must lie on the grid of image",
        ),
        (
            {"one-mask.nii.gz": labels(1)},
            {},
            r"mask\.nii\.gz: a segmentation case has no file of that name; it may have image and truth/labels",
        ),
        ({}, {"dimension": 2, "unit": "px"}, r"image: must have 2 dimensions"),
    ],
)
def test_a_segmentation_that_could_not_be_scored_is_refused(make, segmented, files, changes, message):
    kept = {name: data for name, data in (segmented | files).items() if data is not None}
    dataset, roots = make(kept, **(SEGMENTATION | changes))
    with pytest.raises(InputError, match=message):
        building.build(dataset, roots=roots)
    assert not corpus.case_dir(roots, dataset, "one").exists()


@pytest.mark.parametrize(
    ("files", "changes", "message"),
    [
        ({"one-truth-target.nii.gz": None}, {}, r"truth/target: is missing; a synthesis is scored on it"),
        (
            {"one-truth-target.nii.gz": oblique(HOLES)},
            {},
            r"truth/target: must be finite, .* got 9 voxels that are not",
        ),
        (
            {"one-truth-target.nii.gz": oblique(picture(shape=(*SHAPE, 2)))},
            {},
            r"truth/target: must hold one value a voxel, got 2 channels",
        ),
        (
            {"one-truth-target.nii.gz": oblique(picture(), spacing=(0.9, 1.1, 2.4))},
            {},
            r"truth/target: must lie on the grid of source",
        ),
        (
            {"one-source.nii.gz": None, "one-mask.nii.gz": oblique(np.ones((12, 9, 7), np.uint8))},
            {},
            r"mask: must lie on the grid of truth/target",
        ),
        ({"one-mask.nii.gz": labels(1, 2)}, {}, r"mask: must hold 0 and 1 alone, got \[0, 1, 2\]"),
        ({}, {"masks": []}, r"mask: is not one of dataset\.json's masks"),
        (
            {"one-truth-labels.nii.gz": labels(1)},
            {},
            r"labels\.nii\.gz: a synthesis case has no file of that name; it may have source, mask and truth/target",
        ),
    ],
)
def test_a_synthesis_that_could_not_be_scored_is_refused(make, synthesised, files, changes, message):
    kept = {name: data for name, data in (synthesised | files).items() if data is not None}
    dataset, roots = make(kept, **(SYNTHESIS | changes))
    with pytest.raises(InputError, match=message):
        building.build(dataset, roots=roots)
    assert not corpus.case_dir(roots, dataset, "one").exists()


def test_a_case_that_prepare_left_empty_is_named(make, segmented):
    script = """
import pathlib, sys
for case in sys.argv[3:]:
    (pathlib.Path(sys.argv[2]) / case / "truth").mkdir(parents=True)
"""
    dataset, roots = make(segmented, prepare=script, **SEGMENTATION)
    with pytest.raises(InputError, match=r"tiny/one: prepare\.py made the folder and wrote nothing into it"):
        building.build(dataset, roots=roots)


def test_a_large_segmentation_is_built_block_by_block_like_a_small_one(make, segmented):
    straight = {
        "one-image.nii.gz": oblique(picture(), turn=0.0),
        "one-truth-labels.nii.gz": oblique(np.resize(np.array([0, 2, 7], np.uint8), SHAPE), turn=0.0),
    }
    dataset, roots = make(straight, **SEGMENTATION, large=True)
    building.build(dataset, roots=roots)
    case = corpus.case(dataset, "one", roots)
    assert stores(case.folder) == ["image.ome.zarr", "truth/labels.ome.zarr"]
    # A large image is brought onto the world's axes, here by turning the first two round.
    np.testing.assert_array_equal(open_image(case.folder / "image.ome.zarr").values, picture().T[:, ::-1, ::-1])
    truth = open_image(case.truth / "labels.ome.zarr")
    assert (truth.attrs["kind"], set(np.unique(truth.values))) == ("labels", {0, 2, 7})


@pytest.mark.parametrize("large", [False, True])
def test_a_target_with_gaps_is_refused_however_large_it_is(make, synthesised, large):
    straight = {
        "one-source.nii.gz": oblique(picture(), turn=0.0),
        "one-truth-target.nii.gz": oblique(HOLES, turn=0.0),
    }
    dataset, roots = make(straight, **SYNTHESIS, large=large)
    with pytest.raises(InputError, match=r"truth/target: must be finite, .* got 9 voxels that are not"):
        building.build(dataset, roots=roots)
