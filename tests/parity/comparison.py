"""Our figure beside another's, of the same input: equal, or apart on purpose, with the reason and the proof of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Figures this far apart are one: what is left are orders of summation, and peers that compute in float32.
CLOSE = 1e-6


@dataclass(frozen=True)
class Comparison:
    """One figure, ours and a peer's.

    Parameters
    ----------
    peer, measure, given
        Whose figure it is compared with, of what, on which input.
    ours, theirs
        None where there is no value; infinite where the peer says so.
    why
        Why the two differ on purpose; empty where they do not.
    bridge, back
        What ours becomes when that one difference is taken away, which must be theirs; or what theirs becomes, which
        must be ours. None where the difference is a rule for what has no value, and nothing can be computed.
    """

    peer: str
    measure: str
    given: str
    ours: float | None
    theirs: float | None
    why: str = ""
    bridge: float | None = None
    back: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is known by."""
        return self.peer, self.measure, self.given

    @property
    def equal(self) -> bool:
        """Whether the two are one figure."""
        return same(self.ours, self.theirs)

    @property
    def problem(self) -> str | None:
        """What is wrong: a difference nobody meant, one that is not there, or one whose reason does not explain it."""
        said = f"{self.peer}, {self.measure}, {self.given}: ours {self.ours}, theirs {self.theirs}"
        if not self.why:
            return None if self.equal else f"{said}: they should be equal"
        if self.equal:
            return f"{said}: they are equal, and should differ: {self.why}"
        if self.bridge is not None and not same(self.bridge, self.theirs):
            return f"{said}: they differ for another reason too: without it ours is {self.bridge}"
        if self.back is not None and not same(self.back, self.ours):
            return f"{said}: they differ for another reason too: without it theirs is {self.back}"
        return None


def same(one: float | None, other: float | None) -> bool:
    """Whether two figures are one; no value is only no value, NaN among them."""
    empty = [value is None or math.isnan(value) for value in (one, other)]
    if any(empty):
        return all(empty)
    return math.isclose(float(one or 0), float(other or 0), rel_tol=CLOSE, abs_tol=CLOSE)


def shown(value: float | None) -> str:
    """Return a figure as the tables have it."""
    if value is None or math.isnan(value):
        return "none"
    return f"{value:.6g}"


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values there are."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return sum(known) / len(known) if known else None


def tables(comparisons: Sequence[Comparison]) -> str:
    """Return the two tables in Markdown: what differs on purpose and why, and what is equal."""
    differ = [one for one in comparisons if one.why]
    agree = [one for one in comparisons if not one.why]
    lines = ["## Differences that are meant", ""]
    lines += ["| whose | measure | input | ours | theirs | why |", "|---|---|---|---|---|---|"]
    lines += [f"| {_cells(one)} | {one.why} |" for one in differ]
    lines += ["", "## Equal", "", "| whose | measure | input | ours | theirs |", "|---|---|---|---|---|"]
    lines += [f"| {_cells(one)} |" for one in agree]
    return "\n".join(lines) + "\n"


def _cells(one: Comparison) -> str:
    return " | ".join((*one.key, shown(one.ours), shown(one.theirs)))
