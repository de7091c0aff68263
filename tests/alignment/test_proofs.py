"""What an alignment must bring about: on a real chest from any frame, and on made ones with tables and cut fields."""

from __future__ import annotations

import numpy as np
import pytest

from blocks import Affine, Grid
from blocks.image import grid_of
from fidopt.alignment.choice import align
from fidopt.alignment.headers import aligned
from fidopt.building.world import regridded
from fidopt.images.landmarks import read_landmarks
from fidopt.images.readers import read_image
from tests.alignment.phantom import Phantom, centred_grid, turned
from tests.alignment.test_elastix import needs_elastix, residual

CENTRES_TOGETHER = 7.60345


@pytest.fixture(scope="module")
def lungs(shared_data):
    """The two scans, and the 51 landmark pairs inside both."""
    folder = shared_data("lung_ct")
    images = [read_image(folder / f"3DCT_lung_{visit}.mha") for visit in ("baseline", "followup")]
    points = [read_landmarks(folder / f"{visit}_landmarks.txt", ndim=3) for visit in ("baseline", "followup")]
    inside = np.logical_and(*[grid_of(i).inside(p) for i, p in zip(images, points, strict=True)])
    return images, [side[inside] for side in points]


def framed(image, points, seed):
    """Return the moving side as if its scanner's frame were another: up to 60 mm and 20 degrees off."""
    random = np.random.default_rng(seed)
    axis, shift = random.normal(size=3), random.normal(size=3)
    axis /= np.linalg.norm(axis)
    angle = np.radians(random.uniform(0, 20))
    shift *= random.uniform(0, 60) / np.linalg.norm(shift)
    cross = np.cross(np.eye(3), axis)
    turn = np.cos(angle) * np.eye(3) - np.sin(angle) * cross + (1 - np.cos(angle)) * np.outer(axis, axis)
    grid = grid_of(image)
    middle = grid.world([(n - 1) / 2 for n in grid.shape])
    frame = Affine.of(turn, middle - turn @ middle + shift)
    return regridded(image, aligned(grid, frame), unit="mm"), frame.inverse().points(points)


def left(motion, fixed, moving):
    return float(np.linalg.norm(motion.affine().points(fixed) - moving, axis=1).mean())


def test_the_lungs_centres_together_leave_what_was_measured(lungs):
    (fixed, moving), points = lungs
    found = align(fixed, moving, "image-centres", modalities=("ct", "ct"))
    assert left(found.motion, *points) == pytest.approx(CENTRES_TOGETHER, abs=5e-6)


@needs_elastix
@pytest.mark.timeout(1200)
def test_a_rigid_motion_found_from_an_odd_frame_beats_the_centres(lungs):
    (fixed, moving), (ours, theirs) = lungs
    image, there = framed(moving, theirs, seed=1)
    found = align(fixed, image, "elastix-rigid-centred", modalities=("ct", "ct"))
    # No rigid motion leaves less than 3.58 mm.
    assert 3.57 < left(found.motion, ours, there) < CENTRES_TOGETHER


@needs_elastix
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20))
def test_a_rigid_motion_found_from_any_of_twenty_frames_beats_the_centres(lungs, seed):
    (fixed, moving), (ours, theirs) = lungs
    image, there = framed(moving, theirs, seed)
    found = align(fixed, image, "elastix-rigid", modalities=("ct", "ct"))
    assert 3.57 < left(found.motion, ours, there) < CENTRES_TOGETHER


def on_a_table(image, height):
    """Return an image with a table across it, dense as bone, at a height of its world."""
    grid = grid_of(image)
    y = grid.world(np.argwhere(np.ones(grid.shape, dtype=bool)))[:, 1].reshape(grid.shape)
    return image.copy(data=np.where((y > height) & (y < height + 5), 400.0, image.values).astype(np.float32))


@needs_elastix
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", ["table", pytest.param("cut", marks=pytest.mark.slow)])
def test_a_table_and_a_cut_field_of_view_do_not_pull(case):
    phantom = Phantom(3, blobs=120)
    truth = Affine.of(turned(3, 9), np.array([24.0, -15.0, 18.0]))
    fixed = phantom.seen(centred_grid((48, 44, 40), (2.0, 2.2, 2.2), np.eye(3), np.array([0.0, 8.0, 0.0])))
    moving = phantom.seen(centred_grid((48, 46, 40), (2.0, 2.2, 2.2), np.eye(3), np.array([24.0, -5.0, 18.0])), truth)
    if case == "table":
        # The body lies 9 mm above the one and some 25 mm above the other.
        fixed, moving = on_a_table(fixed, 33.0), on_a_table(moving, 33.0)
    else:
        grid = grid_of(moving)
        moving = regridded(
            moving[:28], Grid((28, *grid.shape[1:]), grid.spacing, grid.origin, grid.direction), unit="mm"
        )
    mode = "elastix-rigid-centred" if case == "table" else "elastix-rigid"
    found = align(fixed, moving, mode, modalities=("ct", "ct"))
    assert residual(phantom, found.motion.affine(), truth) < 1.0
