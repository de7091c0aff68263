"""Memory is lent again as it comes back, never to two at a time, and never more of it than may be."""

from __future__ import annotations

import numpy as np

from blocks import Affine, Grid, compute, image_of, open_image, warp, write_image
from blocks.storage.cache import CHUNKS
from blocks.storage.scratch import SCRATCH, Scratch


def test_what_comes_back_is_lent_again():
    scratch = Scratch()
    with scratch.lent(1000, most=1000) as first:
        first[...] = 7
        with scratch.lent(1000, most=1000) as second:
            assert not np.shares_memory(first, second)
    assert scratch.nbytes == 2000
    with scratch.lent(900, most=1000) as again:
        assert np.shares_memory(again, first) or np.shares_memory(again, second)
        assert scratch.nbytes == 1000
    scratch.forget()
    assert scratch.nbytes == 0


def test_the_next_box_is_somewhat_larger_and_fits():
    scratch = Scratch()
    with scratch.lent(1025, most=5000) as first:
        assert first.nbytes == 1280
    with scratch.lent(1250, most=5000) as second:
        assert np.shares_memory(first, second)


def test_what_does_not_fit_gives_way():
    scratch = Scratch()
    with scratch.lent(1000, most=5000):
        pass
    with scratch.lent(100, most=900) as small:
        assert 100 <= small.nbytes <= 125
        assert scratch.nbytes == 0
    with scratch.lent(2000, most=2000):
        assert scratch.nbytes == 0
    assert scratch.nbytes == 2000


def test_nothing_is_kept_when_a_warp_is_written_or_computed(tmp_path):
    grid = Grid.of((70, 130, 66))
    image = image_of(np.random.default_rng(0).integers(0, 99, grid.shape, dtype=np.uint8), grid)
    write_image(tmp_path / "moving.ome.zarr", image)
    warped = warp(open_image(tmp_path / "moving.ome.zarr"), Affine.translation((1.5, 0, 0)), grid)
    before = CHUNKS.decoded
    write_image(tmp_path / "warped.ome.zarr", warped)
    assert CHUNKS.decoded > before
    assert CHUNKS.nbytes == SCRATCH.nbytes == 0
    compute(warped)
    assert CHUNKS.nbytes == SCRATCH.nbytes == 0
