"""The row that is to be explained, the unregistered pair's of the same files, and the case as it is built here."""

from __future__ import annotations

from dataclasses import dataclass

from fidopt import corpus, results
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.rows import Row, Rows
from fidopt.errors import MissingError, UsageError
from fidopt.leaderboard.lines import UNREGISTERED
from fidopt.resources import Roots
from fidopt.results import Line


@dataclass(frozen=True)
class Found:
    """A row and what it is held against.

    Parameters
    ----------
    line
        Where it is kept.
    dataset, name
        Of what: the dataset, and the case's name.
    row
        The row.
    unregistered
        The row of the unregistered pair that was scored on the same files; None where there is none, for the
        unregistered pair itself, and for other tasks than registration.
    case
        The built case; None where it is not built here.
    """

    line: Line
    dataset: Dataset
    name: str
    row: Row
    unregistered: Row | None
    case: Case | None


def find(method: str, dataset_name: str, case: str | None = None, *, roots: Roots, machine: str | None = None) -> Found:
    """Return the row of a method on a case.

    Parameters
    ----------
    method
        The line's name: ``METHOD``, ``METHOD@VARIANT``, or any name that was scored.
    dataset_name, case
        The dataset and its case; the case may be left out where there is one.
    machine
        The folder of the results; it may be left out where the method was measured on one machine.

    Raises
    ------
    UsageError
        When there is no such dataset, case or row, or there are several and none is named.
    DescriptorError
        When a file of rows is damaged.
    """
    dataset = corpus.filled(corpus.dataset(dataset_name, roots))
    name = _case(dataset, case)
    known = list(results.lines(roots, dataset.name))
    rows = _chosen([one for one in known if one.method == method], method, dataset, machine, known=known, roots=roots)
    if name not in rows.rows:
        there = ", ".join(rows.rows) or "none"
        msg = f"{method} has no row of {dataset.name}/{name} on {rows.machine}; it has one of: {there}; run it: "
        raise UsageError(f"{msg}fidopt run {method} {dataset.name} {name}")
    line = Line(roots.results, rows.machine, rows.method, dataset.name)
    return Found(
        line, dataset, name, rows.rows[name], _unregistered(rows, known, dataset, name), _built(dataset, name, roots)
    )


def _case(dataset: Dataset, case: str | None) -> str:
    if case is None and len(dataset.cases) > 1:
        msg = f"{dataset.name} has {len(dataset.cases)} cases; name the one to explain: {', '.join(dataset.cases)}"
        raise UsageError(msg)
    (name,) = corpus.case_names(dataset, [case] if case else [])
    return name


def _chosen(
    mine: list[Rows], method: str, dataset: Dataset, machine: str | None, *, known: list[Rows], roots: Roots
) -> Rows:
    there = [one for one in mine if machine in {None, one.machine}]
    if len(there) == 1:
        return there[0]
    if not mine:
        others = ", ".join(sorted({one.method for one in known}))
        only = f", only of {others}" if others else " nor of another method"
        msg = f"there are no rows of {method} on {dataset.name} in {roots.results}{only}; write some: fidopt run"
        raise UsageError(f"{msg} {method} {dataset.name}")
    machines = ", ".join(one.machine for one in mine)
    said = f"has no rows from the machine {machine}" if machine else "was measured on several machines"
    msg = f"{method} on {dataset.name} {said}; name one of them with --machine: {machines}"
    raise UsageError(msg)


def _unregistered(rows: Rows, known: list[Rows], dataset: Dataset, name: str) -> Row | None:
    if dataset.task != "registration" or rows.method == UNREGISTERED:
        return None
    zero = [one for one in known if one.method == UNREGISTERED and one.checksums == rows.checksums and name in one.rows]
    here = next((one for one in zero if one.machine == rows.machine), next(iter(zero), None))
    return here.rows[name] if here else None


def _built(dataset: Dataset, name: str, roots: Roots) -> Case | None:
    try:
        return corpus.case(dataset, name, roots)
    except MissingError:
        return None
