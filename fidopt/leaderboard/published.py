"""The table that a challenge's organisers published, shown beside a leaderboard and never ranked with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fidopt import corpus
from fidopt.descriptors.base import load
from fidopt.descriptors.learn2reg import Published
from fidopt.leaderboard.folding import Folded
from fidopt.leaderboard.lines import COLUMNS
from fidopt.leaderboard.titles import PERCENT, title
from fidopt.resources import Roots


@dataclass(frozen=True)
class Entry:
    """An entry of the challenge: its method's name, and metric -> what its organisers published."""

    method: str
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Challenge:
    """What a challenge's organisers published: where, of what, and an entry a row in their order."""

    source: str
    rows: tuple[Entry, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The metrics of its entries, in the order of a board's."""
        there = list(dict.fromkeys(metric for row in self.rows for metric in row.metrics))
        return tuple(sorted(there, key=lambda metric: COLUMNS.index(metric) if metric in COLUMNS else len(COLUMNS)))


def challenge(name: str, roots: Roots) -> Challenge | None:
    """Return what was published of a dataset's task, None where nothing is kept of it.

    Raises
    ------
    DescriptorError
        When published.json is damaged.
    """
    path = corpus.dataset_folder(name, roots) / "published.json"
    if not path.is_file():
        return None
    published = load(Published, path)
    return Challenge(published.source, tuple(Entry(row.method, row.metrics) for row in published.rows))


def terminal(found: Challenge, *, dataset: str) -> Folded:
    """Return the challenge's table for a terminal."""
    heads = [title(metric, "") for metric in found.columns]
    rows = [[row.method, *(_cell(metric, row.metrics.get(metric)) for metric in found.columns)] for row in found.rows]
    return Folded(
        title=f"The challenge's own table, for its level: never ranked with {dataset}'s lines",
        heads=["entry", *heads],
        rows=rows,
        caption=f"{found.source}.",
    )


def _cell(metric: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 100 if metric in PERCENT else value:.5g}"
