"""Memory is lent again as it comes back, never to two at a time, and never more of it than may be."""

from __future__ import annotations

import numpy as np

from blocks.storage.scratch import Scratch


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


def test_what_does_not_fit_gives_way():
    scratch = Scratch()
    with scratch.lent(1000, most=5000):
        pass
    with scratch.lent(100, most=900) as small:
        assert small.nbytes == 100
        assert scratch.nbytes == 0
    with scratch.lent(2000, most=2000):
        assert scratch.nbytes == 0
    assert scratch.nbytes == 2000
