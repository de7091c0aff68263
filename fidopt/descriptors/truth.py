"""The ``truth`` and the ``checks`` of dataset.json: what a dataset is measured against, and whether that suffices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from fidopt.descriptors.base import Day, Descriptor, Text
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.wording import pattern

Grade = Literal["expert", "semi-automatic", "automatic", "synthetic", "provider"]
LabelValue = Annotated[str, pattern(r"^[1-9][0-9]*$", "a label's value, from 1")]


def _positive(value: object) -> object:
    """Accept a positive number, or one a structure: said in one sentence, where a union would say two."""
    numbers = value.values() if isinstance(value, dict) else [value]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < float("inf") for v in numbers):
        msg = "must be positive" + (" for every structure" if isinstance(value, dict) else "")
        raise ValueError(msg)
    return {k: float(v) for k, v in value.items()} if isinstance(value, dict) else float(str(value))


_ABOVE_ZERO = {"type": "number", "exclusiveMinimum": 0}
Tolerance = Annotated[
    float | dict[str, float],
    BeforeValidator(_positive),
    WithJsonSchema({"anyOf": [_ABOVE_ZERO, {"type": "object", "additionalProperties": _ABOVE_ZERO}]}),
]


class Truth(Descriptor):
    """What kind of truth a dataset has, who made it, how it was checked, and what it does not measure.

    Parameters
    ----------
    grade, by, checked, limits
        As the protocol grades it, and in words.
    error_mm
        The truth's own error, where it is known.
    tolerance_mm
        Of the surface Dice; one for all, or one a structure.
    labels
        Value in the label maps -> the structure's name.
    dynamic_range
        Of the target's intensities, for PSNR and SSIM.
    geometry
        The segmentation method (``METHOD`` or ``METHOD@VARIANT``) that looks whether a synthesis keeps the anatomy.
    """

    grade: Grade
    by: Text
    checked: Text
    limits: Text
    error_mm: Annotated[float, Field(gt=0)] | None = None
    tolerance_mm: Tolerance = 1.0
    labels: dict[LabelValue, Text] = Field(default_factory=dict)
    dynamic_range: Annotated[float, Field(gt=0)] | None = None
    geometry: Text | None = None


class Checks(Descriptor):
    """What a truth must pass before its dataset enters a main leaderboard.

    Parameters
    ----------
    people
        Whether people made or verified the truth on both images.
    dense
        Whether it is dense enough to separate methods.
    room
        Whether the unregistered pairs leave something to measure.
    reason
        Why a check is missed, or why a dataset that misses one stays where it is.
    date
        When they were made last.
    """

    people: bool
    dense: bool
    room: bool
    reason: Text | None = None
    date: Day

    @property
    def passed(self) -> bool:
        """Whether all three hold."""
        return self.people and self.dense and self.room

    @check
    def _explained(self) -> Iterator[str]:
        if not self.passed and self.reason is None:
            yield "reason: must say why a check is missed"
