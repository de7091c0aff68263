"""Moments of blocks, combined, are the moments of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.kernels import moments


def test_the_deviation_of_four_values_by_hand():
    parts = [moments.partial(np.array([1.0, 3.0])), moments.partial(np.array([5.0, 7.0]))]
    assert moments.combine(parts) == moments.Moments(4, 4.0, 20.0)
    assert moments.deviation(moments.combine(parts)) == pytest.approx(np.sqrt(5.0), rel=1e-15)


def test_a_constant_has_a_deviation_of_exactly_zero():
    parts = [moments.partial(np.full(n, np.log(4.1))) for n in (3, 1000, 17)]
    assert moments.deviation(moments.combine(parts)) == 0.0


def test_no_value_has_no_deviation():
    assert moments.deviation(moments.combine([moments.partial(np.zeros(0)), moments.Moments()])) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=8).filter(any),
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e3),
    st.integers(0, 2**32 - 1),
)
def test_blocks_combine_to_the_deviation_of_the_whole(sizes, offset, scale, seed):
    blocks = [np.random.default_rng(seed + k).normal(offset, scale, n) for k, n in enumerate(sizes)]
    whole = np.concatenate(blocks)
    got = moments.combine(moments.partial(block) for block in blocks)
    assert got.count == whole.size
    assert got.mean == pytest.approx(whole.mean(), rel=1e-12, abs=1e-12 * scale)
    reference = (whole - offset).std()  # NumPy's own loses digits where the offset dwarfs the spread
    assert moments.deviation(got) == pytest.approx(reference, rel=1e-12 + 1e-15 * abs(offset) / scale, abs=1e-9 * scale)
