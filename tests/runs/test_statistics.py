from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fidopt.leaderboard.statistics import FEWEST_PAIRS, LEVEL, MOST_COUNTED, signed_rank, t_interval


def test_the_interval_of_one_to_ten_is_the_textbooks():
    low, high = t_interval(range(1, 11))
    assert low == pytest.approx(3.334149410331831, abs=1e-12)
    assert high == pytest.approx(7.665850589668169, abs=1e-12)


def test_the_factor_of_ten_cases_is_students():
    values = np.arange(10.0)
    _, high = t_interval(values)
    standard_error = values.std(ddof=1) / np.sqrt(10)
    assert (high - values.mean()) / standard_error == pytest.approx(2.262157162798205, abs=1e-12)


def test_one_case_has_no_interval():
    assert t_interval([3.0]) is None


@pytest.mark.parametrize(
    ("differences", "positive", "p"),
    [
        ([1, 2, -3, 4, 5, 6, -7, 8, 9, 10], 45, 0.0419921875),
        ([1, 1, -1, 2, 2, -2, 3, 3, 3, 5], 48, 0.01953125),
        ([0, 0, 1, 2, -3, 4, 5, 6, -7, 8], 26, 0.15625),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 55, 0.0009765625),
        ([0] * 10, 0, 1.0),
    ],
)
def test_the_signed_rank_test_is_exact_with_ties_and_zeros(differences, positive, p):
    scaled = [0.01 * difference for difference in differences]
    assert signed_rank(scaled, alternative="greater") == (positive, p)


def brute(differences):
    """Return P(W+ >= w) over every choice of signs."""
    array = np.array([d for d in differences if d != 0], dtype=float)
    ranks = stats.rankdata(np.abs(array))
    observed = ranks[array > 0].sum()
    sums = [sum(np.array(signs) * ranks) for signs in itertools.product([0, 1], repeat=len(ranks))]
    return float(np.mean([total >= observed - 1e-9 for total in sums]))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_it_counts_every_choice_of_signs(differences):
    _, p = signed_rank(differences, alternative="greater")
    assert p == pytest.approx(brute(differences), abs=1e-12)
    _, mirrored = signed_rank([-d for d in differences], alternative="less")
    assert mirrored == pytest.approx(p, abs=1e-12)


def test_without_ties_it_is_scipys_exact_test():
    differences = np.random.default_rng(4).normal(0.3, 1, 20)
    for alternative in ("two-sided", "greater", "less"):
        _, p = signed_rank(differences, alternative=alternative)
        expected = stats.wilcoxon(differences, alternative=alternative, method="exact").pvalue
        assert p == pytest.approx(expected, rel=1e-12)


def test_many_pairs_are_counted_by_the_normal_distribution_as_scipy_does():
    differences = np.random.default_rng(5).normal(0.2, 1, 100).round(1)
    for alternative in ("two-sided", "greater"):
        _, p = signed_rank(differences, alternative=alternative)
        expected = stats.wilcoxon(differences, alternative=alternative, method="asymptotic", correction=True).pvalue
        assert p == pytest.approx(expected, rel=1e-9)


def test_the_two_ways_of_counting_meet():
    differences = np.random.default_rng(6).normal(0.25, 1, MOST_COUNTED + 1)
    _, many = signed_rank(differences)
    _, few = signed_rank(differences[:-1])
    assert many == pytest.approx(few, abs=0.02)


def test_fewer_than_six_pairs_can_never_be_told_apart():
    assert signed_rank([1.0] * (FEWEST_PAIRS - 1))[1] > LEVEL
    assert signed_rank([1.0] * FEWEST_PAIRS)[1] <= LEVEL
