"""How well a transform puts a pair together: overlap of the bodies, information of their common part."""

import math

import numpy as np
import pytest

from blocks import Affine, Grid, image_of
from fidopt.alignment.bodies import Body
from fidopt.alignment.scores import Score, Scorer, information
from fidopt.alignment.starts import Side, side_of
from tests.alignment.phantom import Phantom

UNIT = ((0.0, 1.0), (0.0, 1.0))


def test_information_by_hand():
    a = np.array([0.0, 0.0, 1.0, 1.0])
    assert information(a, a, ranges=UNIT) == pytest.approx(2.0)
    assert information(a, 1 - a, ranges=UNIT) == pytest.approx(2.0)
    assert information(a, np.array([0.0, 1.0, 0.0, 1.0]), ranges=UNIT) == pytest.approx(1.0)
    # p = 1/2, 1/4, 1/4: H(a) = ln 2, H(b) = 3/4 ln 4/3 + 1/4 ln 4, H(a, b) = 1.5 ln 2.
    b = np.array([0.0, 0.0, 0.0, 1.0])
    h = math.log(2) + 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
    assert information(a, b, ranges=UNIT) == pytest.approx(h / (1.5 * math.log(2)))


def test_information_where_there_is_none_is_one():
    assert information(np.zeros(0), np.zeros(0), ranges=UNIT) == 1.0
    assert information(np.full(9, 3.0), np.full(9, 3.0), ranges=((3.0, 3.0), (3.0, 3.0))) == 1.0


def test_the_score_is_the_overlap_times_what_the_information_has_above_one():
    assert Score(0.8, 1.25).value == pytest.approx(0.2)
    assert Score(0.0, 1.0).value == 0.0


def test_the_overlap_is_dice_of_bodies_on_two_grids():
    coarse, fine = np.zeros((20, 20, 20), dtype=bool), np.zeros((40, 40, 40), dtype=bool)
    coarse[5:15, 5:15, 5:15] = fine[10:30, 10:30, 10:30] = True
    grids = Grid.of(coarse.shape), Grid.of(fine.shape, spacing=(0.5, 0.5, 0.5), origin=(-0.25, -0.25, -0.25))
    sides = [
        Side(image_of(mask.astype(np.float32), grid), Body(mask, grid), grid)
        for mask, grid in zip((coarse, fine), grids, strict=True)
    ]
    scorer = Scorer(*sides)
    assert scorer.score(Affine.identity(3)).overlap == pytest.approx(1.0)
    assert scorer.score(Affine.translation((5.0, 0.0, 0.0))).overlap == pytest.approx(0.5)
    assert scorer.score(Affine.translation((30.0, 0.0, 0.0))) == Score(0.0, 1.0)


def test_the_right_transform_scores_above_wrong_ones_whatever_the_contrast():
    phantom = Phantom(3, blobs=120)
    grid = Grid.of((40, 34, 36), spacing=(2.2, 2.2, 2.2), origin=(-39.0, -37.0, -43.0))
    fixed = side_of(phantom.seen(grid), modality="ct")
    seen = phantom.seen(grid, Affine.translation((4.0, -3.0, 2.0)))
    other = seen.copy(data=np.where(seen.values > -900, 1000.0 - np.abs(seen.values - 100.0), 0.0))
    scorer = Scorer(fixed, side_of(other, modality="mr"))
    right = scorer.score(Affine.translation((4.0, -3.0, 2.0))).value
    wrong = [(0.0, 0.0, 0.0), (4.0, -3.0, 6.0), (0.0, -3.0, 2.0), (30.0, 0.0, 0.0)]
    assert right > 2 * max(scorer.score(Affine.translation(vector)).value for vector in wrong)
