"""Where elastix starts from: centres, ends, the peak of the cross-correlation."""

import numpy as np
import pytest

from blocks import Affine, Grid, image_of
from fidopt.alignment.starts import between_centres, correlated, side_of, starts
from tests.alignment.phantom import Phantom, centred_grid, turned


def box(shape, low, high):
    values = np.full(shape, -1000.0)
    values[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = 50.0
    return values


def test_each_start_puts_together_what_its_name_says():
    fixed = image_of(box((40, 20, 30), (5, 4, 6), (35, 16, 24)), Grid.of((40, 20, 30), origin=(100.0, 0.0, 0.0)))
    # The same body 10 voxels shorter at its upper end, two voxels further along x, on a grid that begins elsewhere.
    moving = image_of(box((40, 20, 30), (5, 4, 8), (25, 16, 26)), Grid.of((40, 20, 30), origin=(0.0, -7.0, 3.0)))
    found = {one.name: one.translation for one in starts(*(side_of(i, modality="ct") for i in (fixed, moving)))}
    assert found["image-centres"] == (-100.0, -7.0, 3.0)
    np.testing.assert_allclose(found["body-centres"], (-98.0, -7.0, -2.0), atol=1e-9)
    np.testing.assert_allclose(found["lower-ends"], (-98.0, -7.0, 3.0), atol=1e-9)
    np.testing.assert_allclose(found["upper-ends"], (-98.0, -7.0, -7.0), atol=1e-9)
    assert list(found) == ["body-centres", "image-centres", "lower-ends", "upper-ends", "cross-correlation"]


def test_a_part_taken_out_of_the_other_image_starts_from_the_centres_alone():
    phantom = Phantom(2)
    sides = [side_of(phantom.seen(Grid.of((80, 80), origin=(-40.0, -40.0))), modality="ct") for _ in range(2)]
    assert [one.name for one in starts(*sides, centred=True)] == ["body-centres", "image-centres"]


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_cross_correlation_finds_a_shift_between_oblique_grids(ndim):
    phantom = Phantom(ndim)
    shift = np.array([21.0, -13.0, 9.0])[:ndim]
    shape, spacing = (48, 52, 44)[:ndim], (2.0, 1.6, 2.2)[:ndim]
    fixed = phantom.seen(centred_grid(shape, spacing, turned(ndim, 10), np.full(ndim, 3.0)))
    moving = phantom.seen(
        centred_grid(shape[::-1], spacing, turned(ndim, -25), shift - 2.0), Affine.translation(shift.tolist())
    )
    found = correlated(side_of(fixed, modality="ct"), side_of(moving, modality="ct"))
    assert np.abs(found - shift).max() < 2.5


def test_centres_of_grids_are_put_together_whatever_their_directions():
    a = centred_grid((7, 9, 11), (1.0, 2.0, 3.0), turned(3, 33), np.array([1.0, 2.0, 3.0]))
    b = centred_grid((8, 5, 6), (2.0, 1.0, 1.5), turned(3, -70), np.array([-4.0, 0.5, 9.0]))
    np.testing.assert_allclose(between_centres(a, b), (-5.0, -1.5, 6.0), atol=1e-12)
