"""elastix in a process of its own: known motions found again, from translations alone."""

import importlib.metadata
import os

import numpy as np
import pytest

from blocks import Affine, Grid, image_of
from fidopt.alignment import elastix
from fidopt.alignment.choice import align
from fidopt.alignment.elastix import register, schedule
from fidopt.alignment.starts import Start, side_of
from fidopt.errors import InputError, MissingError
from tests.alignment.phantom import Phantom, centred_grid, turned

needs_elastix = pytest.mark.skipif(
    not any(one.metadata["Name"] == "itk-elastix" for one in importlib.metadata.distributions()),
    reason="itk-elastix is not installed: pip install 'fidopt[align]'",
)


def moved(ndim, degrees, vector):
    """Return a pair on oblique grids of their own, and the motion from the fixed to the moving body."""
    phantom = Phantom(ndim, blobs=60 if ndim == 2 else 120)
    truth = Affine.of(turned(ndim, degrees), np.array(vector[:ndim]))
    shape, spacing = (44, 38, 40)[:ndim], (2.0, 2.3, 2.1)[:ndim]
    fixed = phantom.seen(centred_grid(shape, spacing, turned(ndim, 15), np.zeros(ndim)))
    middle = np.array(vector[:ndim]) + 3.0
    moving = phantom.seen(centred_grid(shape[::-1], spacing[::-1], turned(ndim, -40), middle), truth)
    return phantom, fixed, moving, truth


def residual(phantom, found, truth):
    points = phantom.centres
    return float(np.linalg.norm(found.points(points) - truth.points(points), axis=1).max())


@needs_elastix
def test_a_turn_and_a_shift_are_found_again_between_oblique_grids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    phantom, fixed, moving, truth = moved(3, 14, (55.0, -20.0, 30.0))
    found = align(fixed, moving, "elastix-rigid-centred", modalities=("ct", "ct"))
    assert residual(phantom, found.motion.affine(), truth) < 0.5
    assert [run.start for run in found.runs] == ["body-centres", "image-centres"]
    assert found.winner in {"body-centres", "image-centres"}
    assert found.elastix.startswith("5.3.1 (itk-elastix 0.25.")
    assert found.score.value == max(run.score for run in found.runs)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - nothing, hidden or not


@needs_elastix
def test_in_the_plane_too_and_with_the_same_numbers_again():
    phantom, fixed, moving, truth = moved(2, -11, (25.0, -30.0))
    first, second = (align(fixed, moving, "elastix-rigid-centred", modalities=("ct", "ct")) for _ in range(2))
    assert residual(phantom, first.motion.affine(), truth) < 0.5
    assert first == second


@needs_elastix
def test_a_translation_does_not_turn_and_a_start_that_fails_is_told_beside_one_that_does_not():
    phantom, fixed, moving, truth = moved(2, 0, (25.0, -30.0))
    sides = [side_of(image, modality="ct") for image in (fixed, moving)]
    far = Start("lower-ends", (4000.0, 0.0))
    results, _ = register(*sides, [far, Start("body-centres", (22.0, -27.0))], kind="translation")
    assert results[0].motion is None
    assert results[0].error.startswith("Too many samples map outside moving image buffer")
    assert results[1].motion.angles == ()
    assert residual(phantom, results[1].motion.affine(), truth) < 0.5
    with pytest.raises(InputError, match=r"from none of 1 starts: from lower-ends: "):
        register(*sides, [far], kind="translation")


@needs_elastix
def test_an_image_of_a_slice_or_three_is_refused():
    image = Phantom(2).seen(Grid.of((60, 60), origin=(-30.0, -30.0)))
    thin = image_of(np.repeat(image.values[None], 3, axis=0), Grid.of((3, 60, 60)))
    with pytest.raises(
        InputError, match=r"needs 4 voxels along every axis, and the fixed image has shape \(3, 60, 60\)"
    ):
        align(thin, thin, "elastix-rigid", modalities=("ct", "ct"))


def test_a_short_axis_is_smoothed_less():
    assert schedule((9, 64, 200)) == [8, 4, 1, 6, 4, 1, 4, 4, 1, 3, 3, 1]


def test_without_elastix_the_command_that_brings_it_is_said(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(elastix, "version", absent)
    _, fixed, moving, _ = moved(2, 0, (5.0, 5.0))
    with pytest.raises(MissingError, match=r"pip install 'fidopt\[align\]'"):
        align(fixed, moving, "elastix-rigid", modalities=("ct", "ct"))
