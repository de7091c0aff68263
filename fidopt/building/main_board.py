"""The three checks that a truth must pass before its dataset enters a main leaderboard, each with its numbers.

people
    People made the truth or verified it: its grade is expert or semi-automatic. A segmentation's too; the target of a
    synthesis is an image somebody acquired, so that any grade but a program's passes.
dense
    At least ten test cases, and a median of ten landmark pairs a case or labels whose box covers, in the median case,
    a third of the body: one structure in a corner does not. Metrics that the dataset lists as unranked do not count. Of
    other tasks ten test cases are asked: each structure is scored where it is, and every voxel of a target.
room
    The unregistered pairs' mean Dice is under 0.8, or their mean landmark error is three times the truth's own or more
    (truth.error_mm; of a known deformation next to nothing; else half the diagonal of the fixed image's voxel stands
    for it, by which a point placed to the nearest voxel may err). Nothing is asked of other tasks, where nothing is
    scored without a method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Literal

from fidopt import corpus, results
from fidopt.building.deformation import PAIR_TOLERANCE
from fidopt.building.density import Density, density
from fidopt.building.explanation import stale
from fidopt.building.records import read_record
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import MissingError
from fidopt.resources import Roots

Name = Literal["people", "dense", "room"]
Report = Callable[[int, int], None]

#: Grades of truths that people made or verified.
PEOPLE = frozenset({"expert", "semi-automatic"})
#: Fewest test cases, and fewest landmark pairs in the median case.
TEN = 10
#: Least share of the body that the labels' box covers in the median case.
COVERED = 1 / 3
#: Dice of the unregistered pairs from which on there is too little left to gain.
NO_ROOM = 0.8
#: How many times the truth's own error the unregistered pairs must be apart.
SEVERAL = 3.0
#: What a known deformation's pairs are compared with, in words.
_EXACT = "against a truth that is exact"
#: What the unregistered pairs are scored as.
_UNREGISTERED = "identity"
_MILLIMETRES = {"mm": 1.0, "um": 1e-3, "m": 1e3, "cm": 10.0}


@dataclass(frozen=True)
class Finding:
    """One check.

    Parameters
    ----------
    name
        Which.
    said
        One sentence with the numbers.
    passed
        Whether it holds; None where it cannot be told yet.
    figures
        The numbers by name.
    """

    name: Name
    said: str
    passed: bool | None = field(kw_only=True)
    figures: Mapping[str, float | int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Unregistered:
    """The no-registration line: what is left of a dataset's pairs before anything is registered.

    Parameters
    ----------
    means
        ``dice``, ``tre`` -> mean over the test cases, where it is ranked.
    source
        Where the numbers come from, in words.
    voxel
        Mean half diagonal of the fixed images' voxels; None where they are not built.
    """

    means: Mapping[str, float]
    source: str
    voxel: float | None = None


def findings(dataset: Dataset, roots: Roots, *, progress: Report | None = None) -> tuple[Finding, Finding, Finding]:
    """Make the three checks of a dataset: on its built cases, or before it is built on what its descriptor says.

    Parameters
    ----------
    dataset
        The dataset.
    roots
        Where descriptors, the corpus and results lie.
    progress
        Told how many cases are done, of how many.

    Raises
    ------
    MissingError
        When its unregistered pairs are to be scored, and KonfAI is absent; or a case was built from something else
        than the dataset's folder now has.
    """
    built = [corpus.case(dataset, name, roots) for name in dataset.cases if _is_built(dataset, name, roots)]
    _refuse_stale(built, roots)
    whole = bool(built) and len(built) == len(dataset.cases)
    densities = [density(case) for case in built] if whole and _two(dataset) else []
    line = _unregistered(dataset, built if whole else [], roots, progress)
    return people(dataset), dense(dataset, densities), room(dataset, line)


def people(dataset: Dataset) -> Finding:
    """Tell whether people made or verified the truth."""
    grade = dataset.truth.grade
    said = f"the truth is graded {grade}"
    if "truth.grade" in dataset.to_fill:
        return Finding("people", f"{said}, which nobody has confirmed yet (to_fill)", passed=None)
    if grade in PEOPLE or (dataset.task == "synthesis" and grade == "provider"):
        made = "people acquired the target" if dataset.task == "synthesis" else "people made or verified it"
        return Finding("people", f"{said}: {made}" + (" on both images" if _two(dataset) else ""), passed=True)
    nobody = "people neither made nor verified it" + (" on both images" if _two(dataset) else "")
    return Finding("people", f"{said}: {nobody}", passed=False)


def dense(dataset: Dataset, found: Sequence[Density]) -> Finding:
    """Tell whether a truth is dense enough to separate methods; ``found`` is empty where cases are not built."""
    count = len(dataset.cases) or (dataset.draw.count if dataset.draw and dataset.draw.count else 0)
    figures: dict[str, float | int | None] = {"cases": count or None}
    if not count:
        return Finding("dense", "its test cases are not known yet", passed=None, figures=figures)
    few = count < TEN
    cases = f"{count} test case{'s' * (count != 1)}" + (f", {TEN} are needed" if few else "")
    if not _two(dataset):
        scored = "every voxel of their targets" if dataset.task == "synthesis" else "each structure where it is"
        return Finding("dense", f"{cases}, {scored} scored", passed=not few, figures=figures)
    if not found:
        said = f"{cases}; how densely they are annotated is told once all are built"
        return Finding("dense", said, passed=False if few else None, figures=figures)
    pairs, covered = (_median([getattr(one, key) for one in found]) for key in ("pairs", "covered"))
    figures |= {"pairs": pairs, "covered": covered, "structures": _median([one.structures for one in found])}
    enough = (pairs is not None and pairs >= TEN) or (covered is not None and covered >= COVERED)
    said = f"{cases}; {_pairs_said(pairs)}; {_covered_said(covered)}"
    return Finding("dense", said, passed=enough and not few, figures=figures)


def room(dataset: Dataset, line: Unregistered | None) -> Finding:
    """Tell whether the no-registration line leaves room; None of it where it is not known."""
    if dataset.task != "registration":
        return Finding("room", "without a method nothing is produced and nothing scored", passed=True)
    if line is None or not line.means:
        return Finding("room", "what the unregistered pairs leave is told once all cases are built", passed=None)
    dice, tre = line.means.get("dice"), line.means.get("tre")
    error, whose = _error(dataset, line)
    figures = {"dice": dice, "tre": tre, "error": error}
    parts, left = [], []
    if dice is not None:
        left.append(dice < NO_ROOM)
        parts.append(f"a Dice of {dice:.3f}, {'under' if dice < NO_ROOM else 'not under'} {NO_ROOM:g}")
    if tre is not None:
        compared = "" if error is None or whose == _EXACT else f"{tre / error:.2g} times "
        parts.append(f"a landmark error of {tre:.3g} {dataset.unit}, {compared}{whose}")
        left += [tre >= SEVERAL * error] if error is not None else []
    said = f"unregistered ({line.source}) the pairs have {' and '.join(parts)}"
    return Finding("room", said, passed=any(left) if left else None, figures=figures)


def _refuse_stale(built: Sequence[Case], roots: Roots) -> None:
    """Refuse cases that were built from what is no longer there: their numbers are not the dataset's."""
    for case in built:
        local = read_record(case.dataset, case.name, roots)
        other = stale(case.dataset, case.name, local, roots) if local else None
        if other:
            name = case.dataset.name
            msg = (
                f"{name}/{case.name} was {other} than the dataset's folder now has; build it again: fidopt build {name}"
            )
            raise MissingError(f"{msg} {case.name} --overwrite")


def _is_built(dataset: Dataset, name: str, roots: Roots) -> bool:
    return corpus.case_dir(roots, dataset, name).is_dir()


def _two(dataset: Dataset) -> bool:
    return dataset.task == "registration"


def _median(values: Sequence[float | int | None]) -> float | None:
    known = [value for value in values if value is not None]
    # A case without counts as having none of it, where others have some.
    return float(median([value or 0 for value in values])) if known else None


def _pairs_said(pairs: float | None) -> str:
    if pairs is None:
        return "no ranked landmark pairs"
    return f"{pairs:g} landmark pairs in the median case ({TEN} are needed)"


def _covered_said(covered: float | None) -> str:
    if covered is None:
        return "no ranked labels"
    return f"the labels' box covers {covered:.1%} of the body in the median case ({COVERED:.0%} are needed)"


def _error(dataset: Dataset, line: Unregistered) -> tuple[float | None, str]:
    """Return the truth's own error in the dataset's unit, or what stands for it, and its name."""
    scale, several = _MILLIMETRES.get(dataset.unit), f"({SEVERAL:g} are needed)"
    if dataset.truth.error_mm is not None and scale is not None:
        own = dataset.truth.error_mm / scale
        return own, f"the truth's own error of {own:.3g} {several}"
    if line.voxel is not None and dataset.warp:
        return PAIR_TOLERANCE * line.voxel, _EXACT
    if line.voxel is not None:
        return (
            line.voxel,
            f"half the voxel's diagonal, {line.voxel:.3g}, the truth's own error not being known {several}",
        )
    return None, "of which nobody knows how much is the truth's own (truth.error_mm)"


def _unregistered(
    dataset: Dataset, built: Sequence[Case], roots: Roots, progress: Report | None
) -> Unregistered | None:
    """Return the no-registration line: of the method identity, else scored now, else as an older build recorded it."""
    if dataset.task != "registration":
        return None
    if not built:
        legacy = dataset.alignment.legacy
        left = {name: getattr(legacy.left, name) for name in _ranked(dataset)} if legacy else {}
        means = {name: spread[0] for name, spread in left.items() if spread is not None}
        return Unregistered(means, "as recorded of an older build's alignment") if means else None
    voxel = fmean(math.hypot(*case.fixed_grid().spacing) / 2 for case in built)
    rows = _rows(dataset, roots)
    if rows is not None:
        return Unregistered(_means(dataset, rows), f"in the rows of {_UNREGISTERED}", voxel)
    from fidopt.scoring.evaluation import score_case

    scored = []
    for done, case in enumerate(built):
        if progress:
            progress(done, len(built))
        scored.append(score_case(case, None).metrics)
    return Unregistered(_means(dataset, scored), "scored as the field that moves nothing", voxel)


def _rows(dataset: Dataset, roots: Roots) -> list[Mapping[str, float | None]] | None:
    """Return the metrics of the zero field's rows, where there is a row of each case on the files that are built."""
    digest = results.corpus_digest(dataset, roots)
    for rows in results.lines(roots, dataset.name):
        whole = all(name in rows.rows and rows.rows[name].error is None for name in dataset.cases)
        if rows.method == _UNREGISTERED and rows.checksums == digest and whole:
            return [rows.rows[name].metrics for name in dataset.cases]
    return None


def _ranked(dataset: Dataset) -> tuple[str, ...]:
    return tuple(name for name in ("dice", "tre") if name not in dataset.unranked)


def _means(dataset: Dataset, metrics: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    found = {name: [one.get(name) for one in metrics] for name in _ranked(dataset)}
    known = {name: [value for value in values if value is not None] for name, values in found.items()}
    return {name: fmean(values) for name, values in known.items() if values}
