"""Fields made by every convention there is, judged: only the contract's passes, each other is called by its name."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fidopt.check.judging import NEAR, judge
from fidopt.check.readings import Pair, Reading, every, signs_and_orders, single
from fidopt.check.scenes import scenes
from fidopt.images.conventions import CONVENTIONS

SCENES = {scene.name: scene for scene in scenes((2, 3))}


def thinned(name: str, count: int = 150) -> Pair:
    pair = SCENES[name].pair()
    return Pair(pair.fixed, pair.moving, pair.points[:: max(1, len(pair.points) // count)])


def motion(name: str, pair: Pair) -> np.ndarray:
    return np.tile(SCENES[name].motion, (len(pair.points), 1))


@pytest.mark.parametrize("name", SCENES)
def test_a_field_of_the_contract_is_right(name):
    pair = thinned(name)
    finding = judge(motion(name, pair), np.array(SCENES[name].motion), pair)
    assert finding.state == "right"
    assert finding.residual == 0


@pytest.mark.parametrize("name", SCENES)
def test_every_reading_wrong_in_one_way_misses_a_perfect_field_by_three(name):
    pair = thinned(name)
    true = motion(name, pair)
    for reading in single(pair.ndim):
        if pair.one_grid and reading.frame.startswith("moving"):
            continue
        assert np.linalg.norm(reading.displacements(true, pair) - true, axis=1).mean() > 3, reading.words


def written_wrongly(name: str) -> dict[Reading, float]:
    """Return how far a perfect field misses the motion when it is written in each wrong convention, of any depth."""
    pair = thinned(name, count=40)
    true = motion(name, pair)
    right = Reading.written(pair.ndim)
    told = [r for r in every(pair.ndim) if r != right and not (pair.one_grid and r.frame.startswith("moving"))]
    return {r: float(np.linalg.norm(r.numbers(true, pair) - true, axis=1).mean()) for r in told}


def test_no_combination_of_wrong_ways_is_near_the_motion_on_every_pair():
    # With one motion alone, turning vectors about its line changes nothing. A tool that misses by less than NEAR
    # itself cannot bring a convention that is off by twice that to within NEAR.
    one, two = written_wrongly("one_grid"), written_wrongly("two_grids")
    assert len(two) > 3000
    for reading, distance in two.items():
        assert max(distance, one.get(reading, 0.0)) > 2 * NEAR, reading.words
    # In 2D most combinations turn one into another; the nearest, two wrong ways at once, is 1.38 from the motion.
    for reading, distance in written_wrongly("colour").items():
        assert distance > (1.35 if reading.deviations > 1 else 2) * NEAR, reading.words


def wrong(name: str):
    ndim = SCENES[name].ndim
    right = Reading.written(ndim)
    singles = [*signs_and_orders(ndim), *single(ndim)]
    some = [r for r in signs_and_orders(ndim) if r.signs == right.signs or r.order == right.order]
    frames = ("fixed axes", "fixed voxels", "grid_sample")
    mixed = [Reading(r.signs, r.order, frame) for r, frame in itertools.product(some, frames)]
    places = [Reading(r.signs, r.order, position=True) for r in some]
    found = dict.fromkeys((*singles, *mixed, *places))
    return [r for r in found if r != right and (name == "two_grids" or not r.frame.startswith("moving"))]


@pytest.mark.parametrize("name", SCENES)
def test_every_wrong_convention_is_caught_and_named(name):
    pair = thinned(name)
    true = motion(name, pair)
    tried = 0
    for reading in wrong(name):
        finding = judge(reading.numbers(true, pair), np.array(SCENES[name].motion), pair)
        assert finding.state == "wrong", (reading.words, finding)
        assert finding.conventions
        assert reading.words in finding.conventions, (reading.words, finding.conventions)
        tried += 1
    assert tried >= (100 if SCENES[name].ndim == 3 else 20)


def test_a_wrong_convention_that_a_tool_is_known_by_is_called_by_the_tool_s_name():
    pair = thinned("two_grids")
    true = motion("two_grids", pair)
    for name, tools in (("niftyreg-displacement", "dipy and of niftyreg-displacement"), ("learn2reg", "learn2reg")):
        finding = judge(CONVENTIONS[name].reading(3).numbers(true, pair), true[0], pair)
        assert finding.state == "wrong"
        assert f"{tools}: `fidopt field " in finding.said


def test_a_field_that_is_a_little_off_is_right_and_its_conventions_are_still_told():
    pair = thinned("two_grids")
    true = motion("two_grids", pair)
    rough = true + np.random.default_rng(1).normal(0, 0.4, true.shape)
    assert judge(rough, true[0], pair).state == "right"
    for reading in wrong("two_grids"):
        if reading.deviations == 1:
            finding = judge(reading.numbers(rough, pair), true[0], pair)
            assert finding.state == "wrong"
            assert reading.words in finding.conventions, (reading.words, finding)


@pytest.mark.parametrize("name", SCENES)
def test_numbers_written_by_a_convention_are_read_back_by_it(name):
    pair = thinned(name, count=10)
    true = motion(name, pair) + np.random.default_rng(2).normal(0, 1, pair.points.shape)
    for reading in every(pair.ndim):
        again = reading.displacements(reading.numbers(true, pair), pair)
        np.testing.assert_allclose(again, true, atol=1e-6, err_msg=reading.words)


def test_a_zero_field_tells_nothing_and_one_of_noise_is_lost():
    pair = thinned("one_grid")
    shift = np.array(SCENES["one_grid"].motion)
    assert judge(np.zeros_like(pair.points), shift, pair).state == "zero"
    noise = np.random.default_rng(4).normal(0, 4, pair.points.shape)
    finding = judge(noise, shift, pair)
    assert finding.state == "lost"
    assert "no other reading finds it" in finding.said


def test_a_field_that_is_rough_where_readings_part_is_ambiguous():
    # Between the motion and the motion with z negated, nearer the first.
    pair = thinned("one_grid")
    shift = np.array(SCENES["one_grid"].motion)
    finding = judge(np.tile(shift * [1, 1, 0.45], (len(pair.points), 1)), shift, pair)
    assert finding.state == "ambiguous"
    assert finding.conventions == ("with z negated",)
