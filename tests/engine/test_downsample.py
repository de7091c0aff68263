"""Halving a block: the mean and the most frequent label, by hand, against the definition, and against tensorstore."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blocks.kernels.downsample import downsample, downsample_into

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FLOATS = ["float16", "float32", "float64"]
SHAPES = st.one_of(st.tuples(*[st.integers(1, 7)] * 2), st.tuples(*[st.integers(1, 5)] * 3))


def boxes(block: np.ndarray):
    """Yield the index of every coarse voxel and the values of its box."""
    for index in product(*(range(-(-n // 2)) for n in block.shape)):
        yield index, block[tuple(slice(2 * i, 2 * i + 2) for i in index)].ravel().tolist()


def nearest_even(value: Fraction) -> int:
    return round(value)


def test_a_mean_is_rounded_half_to_even():
    block = np.array([[0, 1], [0, 1], [1, 2], [1, 2], [2, 3], [2, 3]], dtype=np.uint8)
    assert downsample(block, kind="image", spatial=2).tolist() == [[0], [2], [2]]
    assert downsample(-block.astype(np.int8), kind="image", spatial=2).tolist() == [[0], [-2], [-2]]


def test_a_box_that_sticks_out_holds_what_is_inside():
    block = np.array([[1, 1, 9], [1, 1, 9], [4, 6, 7]], dtype=np.float32)
    assert downsample(block, kind="image", spatial=2).tolist() == [[1, 9], [5, 7]]


def test_ties_go_to_the_smallest_label():
    block = np.array([[7, 3], [3, 7]], dtype=np.int32)
    assert downsample(block, kind="labels", spatial=2).tolist() == [[3]]
    assert downsample(-block, kind="labels", spatial=2).tolist() == [[-7]]
    assert downsample(np.array([[4, 3, 2, 2], [1, 9, 5, 2]]), kind="labels", spatial=2).tolist() == [[1, 2]]


def test_channels_are_halved_each_for_itself():
    block = np.arange(2 * 5 * 6 * 7, dtype=np.int16).reshape(2, 5, 6, 7)
    both = downsample(block, kind="image", spatial=3)
    for c in range(2):
        np.testing.assert_array_equal(both[c], downsample(block[c], kind="image", spatial=3))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(INTEGERS))
def test_a_mean_of_integers_is_exact_at_every_width(data: st.DataObject, dtype: str):
    block = data.draw(hnp.arrays(dtype, SHAPES))
    halved = downsample(block, kind="image", spatial=block.ndim)
    assert halved.dtype == block.dtype
    for index, values in boxes(block):
        assert int(halved[index]) == nearest_even(Fraction(sum(values), len(values)))


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(FLOATS))
def test_a_mean_of_floats_is_taken_in_float64(data: st.DataObject, dtype: str):
    width = {"float16": 16, "float32": 32, "float64": 64}[dtype]
    values = st.floats(-(2.0**12), 2.0**12, width=width, allow_nan=False)
    block = data.draw(hnp.arrays(dtype, SHAPES, elements=values))
    halved = downsample(block, kind="image", spatial=block.ndim)
    assert halved.dtype == block.dtype
    wide = block.astype(np.float64)
    for index, inside in boxes(wide):
        tolerance = np.spacing(np.abs(np.array(inside)).max().astype(dtype)) if dtype != "float64" else 1e-11
        assert abs(float(halved[index]) - sum(inside) / len(inside)) <= tolerance


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([*INTEGERS, *FLOATS, "bool"]))
def test_a_label_is_the_most_frequent_and_the_smallest_of_several(data: st.DataObject, dtype: str):
    values = st.booleans() if dtype == "bool" else st.integers(0, 3)
    block = data.draw(hnp.arrays(dtype, SHAPES, elements=values))
    halved = downsample(block, kind="labels", spatial=block.ndim)
    assert halved.dtype == block.dtype
    for index, inside in boxes(block):
        counts = Counter(inside)
        assert halved[index] == min(v for v, n in counts.items() if n == max(counts.values()))


@pytest.mark.parametrize("shape", [(33, 17, 40), (8, 9, 1), (1, 5, 2), (31, 64), (1, 7)])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint16", "int32", "int64", "float32", "float64"])
def test_tensorstore_gives_the_same(shape: tuple[int, ...], dtype: str):
    tensorstore = pytest.importorskip("tensorstore")
    block = (np.random.default_rng(0).random(shape) * (2 if dtype == "bool" else 6)).astype(dtype)
    if dtype not in ("bool", "uint8", "uint16"):
        block -= 3
    for kind, method in (("image", "mean"), ("labels", "mode")):
        peer = tensorstore.downsample(tensorstore.array(block), [2] * block.ndim, method).read().result()
        ours = downsample(block, kind=kind, spatial=block.ndim)
        if dtype == "float32" and kind == "image":
            # tensorstore sums float32 in float32.
            np.testing.assert_allclose(ours, peer, rtol=1e-6, atol=1e-6)
        elif dtype == "float64" and kind == "image":
            np.testing.assert_allclose(ours, peer, rtol=1e-15, atol=1e-15)
        else:
            np.testing.assert_array_equal(ours, peer)


@pytest.mark.parametrize("kind", ["image", "labels"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bool"])
def test_a_part_is_written_where_it_belongs(kind: str, dtype: str):
    block = (np.random.default_rng(1).random((2, 9, 10, 11)) * 5).astype(dtype)
    whole = downsample(block, kind=kind, spatial=3)
    parts = np.zeros_like(whole)
    for z, y, x in product((0, 4, 8), (0, 6), (0, 10)):
        part = block[:, z : z + 4, y : y + 6, x : x + 10]
        downsample_into(parts, (z // 2, y // 2, x // 2), part, kind=kind)
    np.testing.assert_array_equal(parts, whole)


def test_a_strided_view_is_halved_like_a_copy():
    block = np.random.default_rng(2).integers(0, 9, (9, 8, 7), dtype=np.uint16)
    np.testing.assert_array_equal(
        downsample(block.transpose(), kind="labels", spatial=3),
        downsample(np.ascontiguousarray(block.transpose()), kind="labels", spatial=3),
    )
    before = block.copy()
    downsample(block, kind="image", spatial=3)
    np.testing.assert_array_equal(block, before)
