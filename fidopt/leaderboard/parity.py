"""Our zero field beside the organisers' own: identity's rows against official_zero.json, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from fidopt import corpus, results
from fidopt.descriptors.base import load
from fidopt.descriptors.learn2reg import OfficialZero
from fidopt.descriptors.rows import Rows
from fidopt.errors import UsageError
from fidopt.leaderboard.board import comparable, latest
from fidopt.leaderboard.folding import Folded
from fidopt.leaderboard.lines import UNREGISTERED
from fidopt.resources import Roots

#: Farthest that ours and the organisers' figure may be apart and count as one.
TOLERANCE = 1e-4
#: What stands for a case where the mean over the cases is compared.
MEAN = "mean"


@dataclass(frozen=True)
class Figure:
    """One figure of a zero field.

    Parameters
    ----------
    case, metric
        Of which case, or :data:`MEAN`, and what of it.
    ours, official
        Ours is None where there is no row or no value.
    why
        Why ours is another figure on purpose, where official_zero.json says so.
    """

    case: str
    metric: str
    ours: float | None
    official: float
    why: str | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the official figure."""
        return None if self.ours is None else self.ours - self.official

    @property
    def within(self) -> bool:
        """Whether the two are within :data:`TOLERANCE`."""
        return self.difference is not None and abs(self.difference) <= TOLERANCE

    @property
    def explained(self) -> bool:
        """Whether it is within tolerance, or a stated reason says why not."""
        return self.within or self.why is not None


@dataclass(frozen=True)
class Parity:
    """A dataset's zero field, ours and the organisers'.

    Parameters
    ----------
    dataset, title
        Which.
    source, config
        Where the official figures come from.
    machine
        Whose rows of identity are compared: those of the latest line.
    figures
        Case by case, and of their mean.
    """

    dataset: str
    title: str
    source: str
    config: str
    machine: str
    figures: tuple[Figure, ...]

    @property
    def holds(self) -> bool:
        """Whether every figure is within tolerance or explained."""
        return all(figure.explained for figure in self.figures)

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        figures = [
            asdict(figure) | {"difference": figure.difference, "within": figure.within, "explained": figure.explained}
            for figure in self.figures
        ]
        return asdict(self) | {"tolerance": TOLERANCE, "holds": self.holds, "figures": figures}


def official_path(name: str, roots: Roots) -> Path:
    """Return where a dataset's official_zero.json is, or would be."""
    return corpus.dataset_folder(name, roots) / "official_zero.json"


def official_datasets(roots: Roots) -> list[str]:
    """Return the datasets of whose zero field the organisers' figures are known."""
    return [name for name in corpus.dataset_names(roots) if official_path(name, roots).is_file()]


def parity(name: str, roots: Roots) -> Parity:
    """Compare a dataset's rows of identity with the organisers' figures.

    Raises
    ------
    UsageError
        When there is no such dataset, no official figure of it, or no row of identity on it.
    DescriptorError
        When a file is damaged.
    """
    dataset = corpus.dataset(name, roots)
    path = official_path(name, roots)
    if not path.is_file():
        known = ", ".join(official_datasets(roots)) or "none"
        msg = f"{name} has no official_zero.json to compare with; those that have one: {known}"
        raise UsageError(msg)
    official = load(OfficialZero, path)
    kept, _ = comparable(list(results.lines(roots, name)), dataset, roots)
    zero = [rows for rows in kept if rows.method == UNREGISTERED]
    if not zero:
        msg = f"there are no rows of {UNREGISTERED} on {name} in {roots.results}; write some: fidopt run"
        msg = f"{msg} {UNREGISTERED} {name}, or score the organisers' zero fields: fidopt score {UNREGISTERED} {name}"
        raise UsageError(f"{msg} --fields DIR --voxels")
    rows = max(zero, key=latest)
    return Parity(name, dataset.title, official.source, official.config, rows.machine, tuple(_figures(rows, official)))


def parities(names: Sequence[str], roots: Roots) -> tuple[list[Parity], list[str]]:
    """Return what can be compared of these datasets, and why the others cannot."""
    found, without = [], []
    for name in names:
        try:
            found.append(parity(name, roots))
        except UsageError as error:
            without.append(" ".join(str(error).split()))
    return found, without


def _figures(rows: Rows, official: OfficialZero) -> Iterator[Figure]:
    def ours(case: str, metric: str) -> float | None:
        row = rows.rows.get(case)
        return None if row is None else row.metrics.get(metric)

    for case, values in official.cases.items():
        for metric, value in values.items():
            yield Figure(case, metric, ours(case, metric), value, official.differs.get(metric))
    for metric, value in official.mean.items():
        each = [ours(case, metric) for case in official.cases]
        known = [one for one in each if one is not None]
        mean = fmean(known) if len(known) == len(each) else None
        yield Figure(MEAN, metric, mean, value, official.differs.get(metric))


def terminal(found: Parity) -> Folded:
    """Return a comparison as a table for a terminal."""
    rows = [
        [figure.case, figure.metric, _text(figure.ours), _text(figure.official), _apart(figure), _verdict(figure)]
        for figure in found.figures
    ]
    return Folded(
        title=f"{found.title} ({found.dataset}): the zero field, ours (on {found.machine}) and the organisers' own",
        heads=["case", "measure", "ours", "official", "difference", f"within {TOLERANCE:g}"],
        rows=rows,
        keys=2,
        caption=f"Official: {found.source}; {found.config}.",
    )


def records(found: Sequence[Parity]) -> list[dict[str, Any]]:
    """Return comparisons as flat records, a figure each: the rows of their CSV."""
    return [
        {"dataset": one.dataset, "machine": one.machine} | figure
        for one in found
        for figure in one.document()["figures"]
    ]


def _verdict(figure: Figure) -> str:
    if figure.within:
        return "yes"
    if figure.why:
        return f"no: {figure.why}"
    return "no, unexplained" if figure.ours is not None else "no: there is no such value in the rows"


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _apart(figure: Figure) -> str:
    return "-" if figure.difference is None else f"{figure.difference:+.2e}"
