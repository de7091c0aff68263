"""screening.json: the data sets that were examined, and what was decided about each."""

from __future__ import annotations

from typing import Literal

from fidopt.descriptors.base import Descriptor, Table, Text


class Screened(Descriptor):
    """What was decided.

    Parameters
    ----------
    decision
        ``out``: left out; ``in``: taken in; ``apart``: taken in, and ranked apart from the main leaderboards.
    reason
        In a sentence.
    """

    decision: Literal["out", "in", "apart"]
    reason: Text


class Screening(Table[Screened]):
    """Every data set that was examined: name -> decision."""
