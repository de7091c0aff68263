"""The ``alignment`` of dataset.json: how a moving image is brought near the fixed one, and how older builds did it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fidopt.descriptors.base import Descriptor, Text
from fidopt.descriptors.contradictions import check

Mode = Literal[
    "as-delivered",
    "image-centres",
    "elastix-translation",
    "elastix-translation-centred",
    "elastix-rigid",
    "elastix-rigid-centred",
]

Finite = Annotated[float, Field(ge=0)]
#: A measure over the cases: its mean, then its lowest and its highest value, null where they were not recorded.
Spread = tuple[Finite, Finite | None, Finite | None]


class Left(Descriptor):
    """What an alignment leaves, each measure as mean, lowest and highest case; null where it was not recorded.

    Parameters
    ----------
    dice
        Overlap of the labels, from 0 to 1.
    tre, hd95
        Landmark error and distance of the labels' surfaces, in the dataset's unit.
    """

    dice: Spread | None = None
    tre: Spread | None = None
    hd95: Spread | None = None

    @check
    def _dice(self) -> Iterator[str]:
        yield from _within("dice", self.dice)
        if self.dice is not None and max(v for v in self.dice if v is not None) > 1:
            yield f"dice: must not be above 1, got {list(self.dice)}"

    @check
    def _tre(self) -> Iterator[str]:
        yield from _within("tre", self.tre)

    @check
    def _hd95(self) -> Iterator[str]:
        yield from _within("hd95", self.hd95)


def _within(key: str, spread: Spread | None) -> Iterator[str]:
    mean, low, high = spread or (0.0, None, None)
    if (low is not None and low > mean) or (high is not None and high < mean):
        yield f"{key}: must be the mean, the lowest and the highest case in this order, got {[mean, low, high]}"


class Legacy(Descriptor):
    """The alignment that the current build of a dataset still holds, until the corpus moves it to ``mode``.

    It is read and shown as legacy. None of them is computed any more: they were made from the truth, or by another
    program, and an affine one changes voxels' sizes, which no header can hold.

    Parameters
    ----------
    transform
        What was applied.
    computed_from
        ``from`` in the file: in a few words, what it was computed from.
    left
        What was measured after it.
    note
        What else a reader of the figures must know.
    """

    transform: Literal["translation", "rigid", "affine"]
    computed_from: Text = Field(alias="from")
    left: Left = Field(default_factory=Left)
    note: Text | None = None


class Alignment(Descriptor):
    """How the moving image is brought near the fixed one, the same way for every method.

    Parameters
    ----------
    mode
        How the corpus aligns a pair.
    legacy
        How the current build was aligned, where that was done another way.
    note
        Why the mode is this one: what the lesser ones leave, or what a greater one spoils.
    """

    mode: Mode = "as-delivered"
    legacy: Legacy | None = None
    note: Text | None = None

    @property
    def named(self) -> str:
        """How the current build's pairs are aligned, in words: a legacy alignment is named as one."""
        if self.legacy is None or self.mode != "as-delivered":
            return self.mode
        return f"legacy ({self.legacy.transform}, from {self.legacy.computed_from})"
