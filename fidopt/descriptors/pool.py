"""pool.json: every case of a dataset that has a ground truth, from which the test and development cases are drawn."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from fidopt.descriptors.base import Descriptor, File, Name, Text
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.dataset import CaseEntry


class Single(Descriptor):
    """A subject with one image, to be paired with another of its source."""

    source: Text


class Pool(File):
    """What the provider's archive holds with a ground truth.

    Parameters
    ----------
    cases
        Case -> its source and its subjects: the provider's own pairs, or images that are cases by themselves. Where a
        task has an official split, those of its training set; those of the split itself may stand beside them.
    subjects
        Subject -> its source, where the provider has no pairs: they are sorted and paired two by two.
    """

    cases: dict[Name, CaseEntry] = Field(default_factory=dict)
    subjects: dict[Name, Single] = Field(default_factory=dict)

    @check
    def _either(self) -> Iterator[str]:
        if bool(self.cases) == bool(self.subjects):
            both = "both are given" if self.cases else "neither is given"
            yield f"cases: must be given, or else subjects to pair, and not both; {both}"
