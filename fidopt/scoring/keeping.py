"""The cases of a line measured side by side, and each one's row kept as it is done."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fidopt.corpus import Case
from fidopt.descriptors.rows import Failure, Row
from fidopt.images.atomic import written_whole
from fidopt.results import Line, add_row
from fidopt.scoring.evaluation import Scores
from fidopt.scoring.side_by_side import side_by_side


@dataclass(frozen=True)
class Scored:
    """One case of a submission.

    Parameters
    ----------
    case
        Its name.
    row
        What was written.
    landmarks
        Metric -> the error of every landmark pair, in the order of the files.
    """

    case: str
    row: Row
    landmarks: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Submission:
    """What was scored, and the line it was written to."""

    line: Line
    cases: tuple[Scored, ...]


def nothing(*_: object, **__: object) -> None:
    """Take what nobody asked to be told."""


@dataclass(frozen=True)
class Item:
    """A case to score, what was found of it, and where its pictures go."""

    case: Case
    found: Any
    previews: Path


@dataclass(frozen=True)
class Measured:
    """What was measured of a case, why it is not what it should be, and what there is to say of it."""

    scores: Scores
    failure: Failure | None
    said: tuple[str, ...]


def kept_rows(
    scoring: Callable[[Item], Measured],
    items: Sequence[Item],
    keep: Callable[[Case, Measured], Row],
    line: Line,
    digest: str,
    *,
    processes: int,
    progress: Callable[[int, int], None],
    say: Callable[[str], None],
) -> tuple[Scored, ...]:
    """Score the items, and write each one's row as it is done; return them in the items' order.

    Parameters
    ----------
    scoring, processes
        See :func:`fidopt.scoring.side_by_side.side_by_side`.
    items
        The cases.
    keep
        Says what there is to say of a failure, and returns the row.
    line, digest
        Whose rows they are, and the digest of the dataset's files.
    progress, say
        Told how many cases are done, and what a person should know; the same thing once.
    """
    scored: dict[int, Scored] = {}
    told: set[str] = set()
    progress(0, len(items))
    for number, measured in side_by_side(scoring, items, processes=processes):
        case = items[number].case
        for text in measured.said:
            if text not in told:
                told.add(text)
                say(text)
        if measured.failure is not None:
            shutil.rmtree(items[number].previews, ignore_errors=True)
        row = keep(case, measured)
        add_row(line, case.name, row, checksums=digest, say=say)
        if measured.scores.evaluation:
            with written_whole(line.evaluation) as part:
                part.write_text(measured.scores.evaluation, encoding="utf-8")
        scored[number] = Scored(case.name, row, measured.scores.landmarks)
        progress(len(scored), len(items))
    return tuple(scored[number] for number in sorted(scored))
