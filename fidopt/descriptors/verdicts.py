"""methods/<name>/check.json: what `fidopt check` found, a verdict a pair, of the method's line and of its variants."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from fidopt.descriptors.base import Day, Descriptor, Digest, File, Text
from fidopt.descriptors.rows import LineName


class Verdict(Descriptor):
    """What was found on one pair.

    Parameters
    ----------
    passed
        Whether the field as written is right, and every wrong reading of it wrong.
    state, said
        What was found, as one word and as one sentence.
    residual, nearest
        Mean distance from the known motion, as written and of the nearest wrong reading; null where there is no field.
    conventions
        Conventions that would be right, the likeliest first.
    """

    passed: bool
    state: Literal["right", "wrong", "ambiguous", "lost", "zero", "refused", "failed"]
    said: Text
    residual: NonNegativeFloat | None = None
    nearest: NonNegativeFloat | None = None
    conventions: tuple[Text, ...] = ()


class Checked(Descriptor):
    """A line that was checked.

    Parameters
    ----------
    version, made_from
        The method's version, and the digest of its folder's files that a run depends on.
    check, fidopt_version, date
        Which pairs and judgement, of which fidopt, checked it, and on which day.
    pairs
        Name of a pair -> its verdict.
    cases
        ``dataset/case`` -> what the real scorer said there.
    """

    version: Text
    made_from: Digest
    check: PositiveInt = 1
    fidopt_version: Text
    date: Day
    pairs: dict[Text, Verdict] = Field(default_factory=dict)
    cases: dict[Text, RealVerdict] = Field(default_factory=dict)


class RealVerdict(Descriptor):
    """What the real scorer said of a field on a corpus case.

    Parameters
    ----------
    passed
        Whether the field as written beats the zero field and no wrong reading does.
    said
        One sentence.
    metric, zero, written
        What was compared; its value for the zero field, and for the field as written.
    readings
        Reading in words -> its value, null where it could not be computed.
    """

    passed: bool
    said: Text
    metric: Text
    zero: float | None = None
    written: float | None = None
    readings: dict[Text, float | None] = Field(default_factory=dict)


class Verdicts(File):
    """A method's verdicts, a line each: ``METHOD`` or ``METHOD@VARIANT``."""

    lines: dict[LineName, Checked]


Checked.model_rebuild()
