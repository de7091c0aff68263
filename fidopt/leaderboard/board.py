"""A dataset's leaderboard, from the rows on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fidopt import corpus, results
from fidopt.descriptors.dataset import Dataset, Task
from fidopt.descriptors.method import Method
from fidopt.descriptors.rows import Rows
from fidopt.errors import UsageError
from fidopt.leaderboard.lines import UNREGISTERED, BoardLine, columns, summarise
from fidopt.leaderboard.published import Challenge, challenge
from fidopt.leaderboard.ranks import latest_only, main_measure, rank, ranked_metrics, why_unranked
from fidopt.resources import Roots
from fidopt.runner import methods


@dataclass(frozen=True)
class Board:
    """A leaderboard; no 95 % interval leaves the range of its metric (:data:`fidopt.leaderboard.lines.RANGES`).

    Parameters
    ----------
    dataset, title, unit, task
        What was registered, segmented or synthesised, and the unit of its distances.
    cases
        How many test cases there are.
    columns
        The metrics its lines have.
    ranked_on, main
        The metrics it ranks on, and the one that tells neighbours apart; empty and None where nobody is ranked.
    lines
        Ranked lines in their order, then the reference, then the others.
    notes
        What a reader should know of the dataset.
    published
        The challenge's own table, where the dataset is one's task: never ranked with the lines.
    """

    dataset: str
    title: str
    unit: str
    cases: int
    columns: tuple[str, ...]
    ranked_on: tuple[str, ...]
    main: str | None
    lines: tuple[BoardLine, ...]
    notes: tuple[str, ...] = ()
    task: Task = "registration"
    published: Challenge | None = None

    def document(self) -> dict[str, Any]:
        """Return the board as a JSON document."""
        return asdict(self)


def board(name: str, *, roots: Roots) -> Board:
    """Return a dataset's leaderboard.

    Raises
    ------
    UsageError
        When there is no such dataset, when it is not filled yet, or when there is no row of it.
    DescriptorError
        When a file of rows is damaged.
    """
    dataset = corpus.dataset(name, roots)
    found = list(results.lines(roots, name))
    if not found:
        corpus.filled(dataset)  # what cannot be run yet is not sent to fidopt run
        msg = f"there are no rows of {name} in {roots.results}; write some: fidopt run METHOD {name}"
        raise UsageError(msg)
    kept, others = comparable(found, dataset, roots)
    lines = [_line(rows, kept, dataset, roots) for rows in kept]
    shown = latest_only([line for line in lines if line is not None])
    standing = [line for line in shown if line.unranked is None]
    metrics = ranked_metrics(standing, dataset)
    ranked = rank(standing, metrics)
    rest = sorted(
        (line for line in shown if line.unranked is not None),
        key=lambda line: (line.method != UNREGISTERED, line.method, line.machine),
    )
    everything = (*ranked, *rest)
    return Board(
        dataset.name,
        dataset.title,
        dataset.unit,
        len(dataset.cases),
        columns(everything),
        metrics if main_measure(metrics) else (),
        main_measure(metrics),
        everything,
        _dataset_notes(dataset, others, shown=columns(everything)),
        dataset.task,
        challenge(name, roots),
    )


def boards(roots: Roots) -> list[Board]:
    """Return the leaderboard of every dataset that has rows, in the order of their names."""
    there = {path.stem for path in roots.results.glob("*/*/*.json") if (path.parents[1] / "machine.json").is_file()}
    known = {path.name for path in roots.each("datasets")}
    return [board(name, roots=roots) for name in sorted(there & known)]


def comparable(found: Sequence[Rows], dataset: Dataset, roots: Roots) -> tuple[list[Rows], list[Rows]]:
    """Part the lines scored on one set of files (the recorded ones, else those of the latest row) from the others."""
    if not found:
        return [], []
    recorded = results.recorded_digest(dataset, roots)
    digests = {rows.checksums for rows in found}
    if recorded not in digests:
        dates = {d: max((latest(rows) for rows in found if rows.checksums == d), default="") for d in digests}
        recorded = max(sorted(digests), key=lambda digest: dates[digest])
    kept = [rows for rows in found if rows.checksums == recorded]
    return kept, [rows for rows in found if rows.checksums != recorded]


def latest(rows: Rows) -> str:
    """Return the date of a line's latest row."""
    return max((row.date for row in rows.rows.values()), default="")


def _line(rows: Rows, kept: Sequence[Rows], dataset: Dataset, roots: Roots) -> BoardLine | None:
    """Return a line, or None where it is not shown on this board."""
    method = _method(rows.method, roots)
    variant = method.variants.get(rows.method.partition("@")[2]) if method else None
    if method and not method.board:
        return None
    if variant and variant.datasets and dataset.name not in variant.datasets:
        return None
    if variant and {f"{dataset.name}/{case}" for case in dataset.cases} & set(variant.tuned_on):
        return None
    zero = [other for other in kept if other.method == UNREGISTERED]
    here = next((other for other in zero if other.machine == rows.machine), next(iter(zero), None))
    line = summarise(rows, dataset, unregistered=here)
    return replace(line, unranked=why_unranked(line, method))


def _method(name: str, roots: Roots) -> Method | None:
    base = name.partition("@")[0]
    try:
        return methods.find(base, roots).method
    except UsageError:
        return None


def _dataset_notes(dataset: Dataset, others: Sequence[Rows], *, shown: Sequence[str]) -> tuple[str, ...]:
    notes = [f"truth: {dataset.truth.grade} ({dataset.truth.by})"]
    terms = corpus.data_terms(dataset.spdx)
    if not terms.ranked:
        notes.append(f"its licence {terms.reason}: ranked apart, in no official leaderboard")
    if "ssim" in shown:
        notes.append("SSIM is the mean over the mask's voxels, both images being 0 outside it")
    if "dice_geometry" in shown:
        notes.append(f"dice_geometry compares what {dataset.truth.geometry} finds in both images: shown, never ranked")
    unranked = [metric for metric in dataset.unranked if metric in shown]
    if unranked:
        notes.append(f"shown and not ranked: {', '.join(unranked)}")
    notes += [
        f"{rows.method} on {rows.machine} was scored on other files and is left out; run it again" for rows in others
    ]
    return tuple(notes)
