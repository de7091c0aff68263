"""Which transform is kept, and which mode is the least that works."""

import numpy as np
import pytest

from blocks import Grid
from blocks.image import grid_of
from blocks.region import Region
from fidopt.alignment import choice
from fidopt.alignment.choice import LADDER, Found, Tried, align, apart, ladder, least, lesser
from fidopt.alignment.elastix import Registered
from fidopt.alignment.motions import Motion
from fidopt.building.world import regridded
from fidopt.errors import InputError
from tests.alignment.phantom import Phantom


def tried(*shares):
    return tuple(
        Tried(Found(mode, Motion((0.0, 0.0)), None, (), mode), share, 0.0)
        for mode, share in zip(LADDER, shares, strict=True)
    )


def test_the_least_mode_is_the_first_that_works_on_every_case():
    assert least([tried(0.95, 0.99, 1.0, 0.98)]) == "as-delivered"
    assert least([tried(0.5, 0.92, 1.0, 0.98)]) == "image-centres"
    assert least([tried(0.5, 0.92, 1.0, 0.98), tried(0.95, 0.2, 0.7, 1.0)]) == "elastix-rigid"
    assert least([tried(0.9, 0.2, 0.7, 1.0)]) == "as-delivered"
    assert least([tried(1.0, 0.2, 0.7, 0.8), tried(0.2, 0.3, 1.0, 0.7)]) is None


def test_what_a_lesser_mode_leaves_is_told_of_the_case_it_serves_worst():
    cases = [tried(0.5, 0.92, 1.0, 0.98), tried(0.95, 0.2, 0.85, 1.0)]
    assert lesser(["a", "b"], cases, "elastix-rigid") == [
        ("as-delivered", "a", 0.5),
        ("image-centres", "b", 0.2),
        ("elastix-translation", "b", 0.85),
    ]
    assert lesser(["a"], cases[:1], "as-delivered") == []
    assert [mode for mode, _, _ in lesser(["a", "b"], cases, None)] == list(LADDER)


@pytest.fixture
def pair(monkeypatch):
    """A body that a motion of (6, -4) brings to its pair; what stands for elastix finds half of it, then all."""
    phantom = Phantom(2, blobs=120)
    truth = Motion((6.0, -4.0))
    grid = Grid.of((90, 80), origin=(-40.0, -45.0))

    def register(fixed, moving, starts, *, kind):
        vectors = [(3.0, -2.0), truth.translation, *[(30.0, 30.0)] * len(starts)]
        results = [Registered(start, Motion(vector)) for start, vector in zip(starts, vectors, strict=False)]
        return [*results[:-1], Registered(starts[-1], None, "too few samples")], f"test {kind}"

    monkeypatch.setattr(choice, "register", register)
    return phantom.seen(grid), phantom.seen(grid, truth.affine()), truth


def test_the_transform_with_the_highest_score_is_kept_and_all_are_told(pair):
    fixed, moving, truth = pair
    found = align(fixed, moving, "elastix-translation", modalities=("ct", "ct"))
    assert found.motion == truth
    assert (found.winner, found.elastix) == ("image-centres", "test translation")
    assert found.runs[1].score == max(run.score for run in found.runs if run.score is not None)
    assert found.runs[-1].error == "too few samples"
    assert found.runs[-1].score is None


def test_runs_that_bring_nothing_together_are_refused(pair, monkeypatch):
    fixed, moving, _ = pair

    def register(fixed, moving, starts, *, kind):
        return [Registered(start, Motion((900.0, 0.0))) for start in starts], "test"

    monkeypatch.setattr(choice, "register", register)
    with pytest.raises(InputError, match="elastix-rigid by elastix test brings the two bodies together from none of 5"):
        align(fixed, moving, "elastix-rigid", modalities=("ct", "ct"))


def test_the_modes_are_tried_in_order_and_told_by_how_far_they_are_from_the_best(pair):
    fixed, moving, _ = pair
    modes = ladder(fixed, moving, modalities=("ct", "ct"))
    assert tuple(one.found.mode for one in modes) == LADDER
    assert [one.works for one in modes] == [False, False, True, True]
    assert modes[0].distance == pytest.approx(np.hypot(6, 4))
    assert (modes[3].share, modes[3].distance) == (1.0, 0.0)


def test_bodies_that_no_mode_brings_together_are_named(pair):
    fixed, moving, _ = pair
    modes = ladder(fixed, moving, modalities=("ct", "ct"))
    # Twelve voxels a side out of the middle of a body that is much larger.
    part = regridded(fixed[40:52, 36:48], grid_of(fixed).crop(Region((40, 36), (52, 48))), unit="mm")
    small = ladder(part, moving, modalities=("ct", "ct"))
    ((name, overlap),) = apart(["whole", "a part"], [modes, small])
    assert name == "a part"
    assert 0 < overlap < 0.5


def test_image_centres_looks_at_the_grids_alone():
    phantom = Phantom(2)
    fixed = phantom.seen(Grid.of((10, 20), spacing=(2.0, 1.0), origin=(100.0, 0.0)))
    moving = phantom.seen(Grid.of((11, 21), spacing=(1.0, 3.0), origin=(0.0, 5.0)))
    found = align(fixed, moving, "image-centres", modalities=("ct", "ct"))
    # Middles: 100 + 9.5 * 2 = 119 and 10; 4.5 and 5 + 5 * 3 = 20.
    assert found.motion == Motion((-109.0, 15.5))
    assert (found.runs[0].start, found.elastix) == ("image-centres", None)
