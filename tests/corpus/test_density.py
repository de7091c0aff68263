"""How much of the body the labels' box covers, and how many landmark pairs there are."""

from __future__ import annotations

import gzip

import nibabel
import numpy as np
import pytest

from fidopt import building, corpus
from fidopt.building.density import density

TRUTH = {"grade": "expert", "by": "b", "checked": "c", "limits": "l"}
POINTS = b"x,y,z\n" + b"".join(f"{-3 - n},-4.0,5.5\n".encode() for n in range(7))


def volume(voxels, *, turn=0.0, origin=(0.0, 0.0, 0.0)):
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    affine = np.diag([2.0, 1.0, 3.0, 1.0]) @ np.eye(4)
    affine[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.diag([2.0, 1.0, 3.0])
    affine[:3, 3] = origin
    image = nibabel.Nifti1Image(voxels, affine)
    image.set_sform(affine, code=1)
    image.set_qform(affine, code=1)
    return gzip.compress(image.to_bytes(), mtime=0)


def body():
    """A body of 20 x 20 x 20 voxels in 40 x 40 x 40."""
    values = np.zeros((40, 40, 40), np.int16)
    values[10:30, 10:30, 10:30] = 500
    return values


def boxes(*spans):
    labels = np.zeros((40, 40, 40), np.uint8)
    for value, (x, y, z) in enumerate(spans, start=1):
        labels[slice(*x), slice(*y), slice(*z)] = value
    return labels


@pytest.fixture
def case(make):
    """Return a function that builds a case of one body and labels, with changes of the descriptor."""

    def build(fixed, moving=None, *, images=True, turn=0.0, points=False, **changes):
        files = {}
        for side, labels in (("fixed", fixed), ("moving", fixed if moving is None else moving)):
            files[f"one-truth-{side}_labels.nii.gz"] = volume(labels, turn=turn)
            if images:
                files[f"one-{side}.nii.gz"] = volume(body(), turn=turn)
            if points:
                files[f"one-truth-{side}_landmarks.csv"] = POINTS
        names = {str(value): f"part {value}" for value in np.unique(fixed) if value}
        dataset, roots = make(files, truth=TRUTH | {"labels": names}, **changes)
        building.build(dataset, roots=roots, overwrite=True)
        return corpus.case(dataset, "one", roots)

    return build


@pytest.mark.parametrize("turn", [0.0, 25.0])
def test_labels_over_half_of_the_body_cover_half_of_it(case, turn):
    found = density(case(boxes(((10, 20), (10, 30), (10, 30))), turn=turn, modalities={"fixed": "mr", "moving": "mr"}))
    assert found.covered == pytest.approx(0.5, abs=0.02)
    assert (found.pairs, found.structures) == (None, 1)


def test_a_structure_in_a_corner_covers_a_corner_and_two_at_both_ends_the_whole(case):
    corner = ((10, 15), (10, 15), (10, 15))
    modalities = {"fixed": "mr", "moving": "mr"}
    # The morphology that shapes a body rounds its corners off.
    assert density(case(boxes(corner), modalities=modalities)).covered == pytest.approx(1 / 64, abs=0.004)


def test_two_structures_at_both_ends_span_the_whole(case):
    ends = (((10, 12), (10, 12), (10, 12)), ((28, 30), (28, 30), (28, 30)))
    found = density(case(boxes(*ends), modalities={"fixed": "mr", "moving": "mr"}))
    assert found.covered == pytest.approx(1.0, abs=0.01)
    assert found.structures == 2


def test_labels_beyond_the_body_cover_no_more_than_all_of_it(case):
    found = density(case(boxes(((0, 40), (0, 40), (0, 40))), modalities={"fixed": "mr", "moving": "mr"}))
    assert found.covered == 1.0


def test_a_label_that_one_side_lacks_is_not_scored_and_does_not_count(case):
    both, lacking = ((10, 20), (10, 30), (10, 30)), ((20, 30), (10, 30), (10, 30))
    found = density(case(boxes(both, lacking), boxes(both), modalities={"fixed": "mr", "moving": "mr"}))
    assert found.structures == 1
    assert found.covered == pytest.approx(0.5, abs=0.02)
    empty = density(case(boxes(both), np.zeros((40, 40, 40), np.uint8), modalities={"fixed": "mr", "moving": "mr"}))
    assert (empty.structures, empty.covered) == (0, 0.0)


def test_without_an_image_the_share_is_of_the_grid(case):
    found = density(case(boxes(((0, 20), (0, 40), (0, 40))), images=False))
    assert found.covered == pytest.approx(0.5)


def test_a_ct_s_body_lies_above_its_air(case):
    # In Hounsfield units all of these voxels are tissue: the whole image is the body.
    found = density(case(boxes(((10, 30), (10, 30), (10, 30)))))
    assert found.covered == pytest.approx(1 / 8, abs=0.01)


def test_what_is_unranked_does_not_count(case):
    half = boxes(((10, 20), (10, 30), (10, 30)))
    assert density(case(half, points=True)).pairs == 7
    unranked = density(case(half, points=True, unranked=["dice", "tre"]))
    assert (unranked.pairs, unranked.covered, unranked.structures) == (None, None, None)
