"""Who is ranked, on what, and which places a line could hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from fidopt import corpus
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.method import Method
from fidopt.leaderboard.lines import MAIN, RANKED, UNREGISTERED, BoardLine, better_by, is_higher_better
from fidopt.leaderboard.statistics import FEWEST_PAIRS, LEVEL, signed_rank


def why_unranked(line: BoardLine, method: Method | None) -> str | None:
    """Return why a line takes no part in the ranking, or None where it does.

    Parameters
    ----------
    method
        The descriptor of the line's method; None where there is none, as for fields made elsewhere.
    """
    if line.method == UNREGISTERED:
        return "the zero field is the reference"
    if method is None:
        return "no method.json describes it"
    variant = line.method.partition("@")[2]
    terms = corpus.method_terms(method.licence.code, method.licence.weights)
    barriers = {
        "its settings were chosen for a task (tier 2)": bool(variant)
        and (variant not in method.variants or method.variants[variant].tier == 2),
        f"its licence {terms.reason}": not terms.ranked,
        f"it has no row for {len(line.missing)} of {line.cases + len(line.missing)} cases": bool(line.missing),
        f"it has no result for {len(line.unscored)} of {line.cases} cases, and none stands in": bool(line.unscored),
        "it failed on every case": line.failures == line.cases,
    }
    return next((reason for reason, holds in barriers.items() if holds), None)


def latest_only(lines: Sequence[BoardLine]) -> list[BoardLine]:
    """Keep one ranked line of a method that was measured on several machines: the latest."""
    latest: dict[str, BoardLine] = {}
    for line in lines:
        best = latest.get(line.method)
        if line.unranked is None and (best is None or line.date > best.date):
            latest[line.method] = line
    return [
        replace(line, unranked=f"the method is ranked on its latest line, that of {latest[line.method].machine}")
        if line.unranked is None and latest[line.method] is not line
        else line
        for line in lines
    ]


def ranked_metrics(lines: Sequence[BoardLine], dataset: Dataset) -> tuple[str, ...]:
    """Return the metrics that all ranked lines share, without those that the dataset lists as unranked."""
    if not lines:
        return ()
    shared = set.intersection(*(set(line.metrics) for line in lines)) - set(dataset.unranked)
    return tuple(metric for metric in RANKED if metric in shared)


def main_measure(metrics: Sequence[str]) -> str | None:
    """Return the measure that neighbouring lines are compared on: the first of the protocol's list that is ranked."""
    return next((metric for metric in MAIN if metric in metrics), None)


def rank(lines: Sequence[BoardLine], metrics: Sequence[str]) -> list[BoardLine]:
    """Return the lines in their order, each with its rank, its place and the places it could hold.

    A line's rank is the mean of its ranks over ``metrics``, equal means sharing theirs. A line that lacks a value on a
    case where another has one is last on that metric, so that what a method lost cannot improve its mean.

    Parameters
    ----------
    lines
        Those that are ranked.
    """
    main = main_measure(metrics)
    if main is None:
        return [replace(line, unranked="no measure of accuracy is shared by all complete lines") for line in lines]
    each = [_ranks(lines, metric) for metric in metrics]
    means = {id(line): fmean(ranks[position] for ranks in each) for position, line in enumerate(lines)}
    ordered = sorted(lines, key=lambda line: (means[id(line)], *_key(line, main), line.method, line.machine))
    ties = [None, *(_tie(upper, lower, main) for upper, lower in pairwise(ordered))]
    return [
        replace(
            line,
            rank=means[id(line)],
            place=place,
            tie=ties[place - 1],
            places=(place - (ties[place - 1] == "tied"), place + (place < len(ties) and ties[place] == "tied")),
        )
        for place, line in enumerate(ordered, start=1)
    ]


def _ranks(lines: Sequence[BoardLine], metric: str) -> list[float]:
    fullest = max(len(line.values[metric]) for line in lines)
    keys = [(len(line.values[metric]) < fullest, *_key(line, metric)) for line in lines]
    return [sum(other < key for other in keys) + (sum(other == key for other in keys) + 1) / 2 for key in keys]


def _key(line: BoardLine, metric: str) -> tuple[float]:
    value = line.metrics[metric].value
    return (-value if is_higher_better(metric) else value,)


def _tie(upper: BoardLine, lower: BoardLine, metric: str) -> str | None:
    """Return whether the cases fail to tell the upper line from the lower one on the main measure."""
    ours, theirs = upper.values[metric], lower.values[metric]
    differences = paired(ours, theirs, metric)
    if len(differences) < FEWEST_PAIRS:
        return "too few"
    _, p = signed_rank(differences)
    _, upper_is_better = signed_rank(differences, alternative="greater")
    return None if p <= LEVEL and upper_is_better < 0.5 else "tied"


def paired(ours: Mapping[str, float], theirs: Mapping[str, float], metric: str) -> list[float]:
    """Return by how much one line is better than another on each case that both have a value for."""
    return [better_by(metric, ours[case], theirs[case]) for case in ours if case in theirs]
