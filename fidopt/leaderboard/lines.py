"""One line of a board: a method on a machine, summed up over a dataset's cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean

from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.rows import Row, Rows
from fidopt.leaderboard.statistics import t_interval
from fidopt.scoring.unregistered import UNREGISTERED as UNREGISTERED

#: Metrics that a larger value makes better; of all others a smaller one is.
HIGHER = frozenset({"dice", "surface_dice", "psnr", "ssim"})
#: The least and the most that a metric can be; what is not here has no bounds.
RANGES: Mapping[str, tuple[float, float]] = {
    "dice": (0.0, 1.0),
    "surface_dice": (0.0, 1.0),
    "ssim": (-1.0, 1.0),
    "folds": (0.0, 1.0),
    **dict.fromkeys(("hd95", "tre", "tre_p95", "rtre", "sdlogj", "mae"), (0.0, inf)),
}
#: What a board ranks on, where all complete lines have it and the dataset lists none of it as unranked.
RANKED = ("dice", "hd95", "surface_dice", "tre", "sdlogj", "mae", "psnr", "ssim")
#: The order in which a dataset's main measure is looked for among those it ranks.
MAIN = ("dice", "tre", "hd95", "mae", "psnr", "ssim")
#: The order of a board's columns; sets of labels and landmarks follow the first.
COLUMNS = ("dice", "hd95", "surface_dice", "tre", "tre_p95", "rtre", "sdlogj", "folds", "mae", "psnr", "ssim")


def is_higher_better(metric: str) -> bool:
    """Whether a larger value of a metric is a better one; a set's metric goes as the first set's."""
    return _base(metric) in HIGHER


def range_of(metric: str) -> tuple[float, float]:
    """Return the least and the most that a metric can be; a set's metric goes as the first set's."""
    return RANGES.get(_base(metric), (-inf, inf))


def better_by(metric: str, one: float, other: float) -> float:
    """Return by how much ``one`` is better than ``other``."""
    return one - other if is_higher_better(metric) else other - one


@dataclass(frozen=True)
class Mean:
    """The mean of a metric over a line's cases.

    Parameters
    ----------
    value, low, high
        The mean and its 95 % t interval, clipped to the metric's range; no interval for a single case.
    cases
        How many cases it is the mean of; those that have no value are counted in ``missing``.
    missing
        Cases of the line without a value.
    change
        From the unregistered pairs' mean, positive where the line is better; None where they were not scored.
    """

    value: float
    low: float | None
    high: float | None
    cases: int
    missing: int
    change: float | None = None


@dataclass(frozen=True)
class BoardLine:
    """A method on a machine.

    Parameters
    ----------
    method, machine, version
        Whose it is; the version its rows carry.
    metrics
        Metric -> mean over the test cases; a failure counts as what its row holds, the unregistered pair or an empty
        map.
    values
        Metric -> case -> value.
    cases, failures, missing, unscored
        Test cases with a row, those of them that failed, test cases without a row, and those whose row has a failure
        that nothing stands in for.
    time_s, peak_ram_mib, peak_gpu_mib
        Mean wall time, and the most memory a case took; None where nothing was measured.
    date
        Of the latest row.
    unranked
        Why it is not ranked, None where it is.
    rank
        Mean of its ranks over the metrics that are ranked.
    place, places
        Its place on the board, and the first and last place it could hold.
    tie
        How it stands to the line above it: "tied", "too few" where there are too few cases to tell, or None.
    notes
        What a reader should know.
    """

    method: str
    machine: str
    version: str | None
    metrics: Mapping[str, Mean]
    values: Mapping[str, Mapping[str, float]]
    cases: int
    failures: int
    missing: tuple[str, ...]
    time_s: float | None
    peak_ram_mib: int | None
    peak_gpu_mib: int | None
    date: str
    unranked: str | None = None
    rank: float | None = None
    place: int | None = None
    places: tuple[int, int] | None = None
    tie: str | None = None
    notes: tuple[str, ...] = field(default=())
    unscored: tuple[str, ...] = field(default=())

    @property
    def complete(self) -> bool:
        """Whether it has a result for every test case, its own or what stands for one."""
        return not self.missing and not self.unscored


def summarise(rows: Rows, dataset: Dataset, *, unregistered: Rows | None) -> BoardLine:
    """Sum a line's rows up over the test cases of its dataset.

    Parameters
    ----------
    unregistered
        The zero field's rows on the same files, for the change from them.
    """
    kept = {case: rows.rows[case] for case in dataset.cases if case in rows.rows}
    names = sorted({metric for row in kept.values() for metric in row.metrics})
    values = {metric: _values(metric, kept) for metric in names}
    reference = unregistered.rows if unregistered else {}
    means = {
        metric: _mean(metric, found, len(kept), _values(metric, reference)) for metric, found in values.items() if found
    }
    versions = sorted({row.method_version for row in kept.values() if row.method_version})
    return BoardLine(
        method=rows.method,
        machine=rows.machine,
        version=" / ".join(versions) or None,
        metrics=means,
        values=values,
        cases=len(kept),
        failures=sum(row.error is not None for row in kept.values()),
        missing=tuple(case for case in dataset.cases if case not in kept),
        time_s=_mean_of([row.time_s for row in kept.values()]),
        peak_ram_mib=max((row.peak_ram_mib for row in kept.values() if row.peak_ram_mib is not None), default=None),
        peak_gpu_mib=max((row.peak_gpu_mib for row in kept.values() if row.peak_gpu_mib is not None), default=None),
        date=max((row.date for row in kept.values()), default=""),
        notes=(*_notes(rows.method, means, versions), *_lost_notes(kept), *_structure_notes(kept)),
        unscored=tuple(
            case for case, row in kept.items() if row.error and not any(map(_is_known, row.metrics.values()))
        ),
    )


def columns(lines: Sequence[BoardLine]) -> tuple[str, ...]:
    """Return the metrics that lines have, in the order of a board's columns, sets after the first set."""
    there = {metric for line in lines for metric in line.metrics}
    sets = sorted(m for m in there if m.split("_")[0] in {"dice", "hd95", "tre"} and m not in COLUMNS)
    return tuple(metric for metric in COLUMNS if metric in there) + tuple(sets)


def _base(metric: str) -> str:
    return next((base for base in sorted(COLUMNS, key=len, reverse=True) if metric.startswith(base)), metric)


def _values(metric: str, rows: Mapping[str, Row]) -> dict[str, float]:
    return {case: float(value) for case, row in rows.items() if (value := row.metrics.get(metric)) is not None}


def _mean(metric: str, values: Mapping[str, float], cases: int, reference: Mapping[str, float]) -> Mean:
    numbers = list(values.values())
    value = fmean(numbers)
    interval = t_interval(numbers)
    least, most = range_of(metric)
    shared = [better_by(metric, values[case], reference[case]) for case in values if case in reference]
    return Mean(
        value,
        max(interval[0], least) if interval else None,
        min(interval[1], most) if interval else None,
        cases=len(numbers),
        missing=cases - len(numbers),
        change=fmean(shared) if len(shared) == len(numbers) else None,
    )


def _is_known(value: float | None) -> bool:
    return value is not None


def _lost_notes(rows: Mapping[str, Row]) -> tuple[str, ...]:
    """Return how many labels a registration's warps erased: their distances are missing from a mean that looks good."""
    lost = {case: round(row.metrics.get("labels_lost") or 0) for case, row in rows.items()}
    labels, cases = sum(lost.values()), sum(number > 0 for number in lost.values())
    if not labels:
        return ()
    said = f"its warps erased {labels} label{'s' * (labels != 1)} in {cases} case{'s' * (cases != 1)}"
    return (f"{said}, which count{'s' * (labels == 1)} 0 in Dice and not at all in HD95",)


def _structure_notes(rows: Mapping[str, Row]) -> tuple[str, ...]:
    """Return how many of the truth's structures a segmentation produced, and how many it made up."""
    held, produced, invented = (
        sum(round(row.metrics.get(metric) or 0) for row in rows.values())
        for metric in ("structures", "structures_produced", "structures_invented")
    )
    if not held and not invented:
        return ()
    more = f", and {invented} that the truth lacks" if invented else ""
    left = "; what it missed counts 0 in Dice and not at all in HD95" if produced < held else ""
    return (f"produced {produced} of the truth's {held} structures{more}{left}",)


def _mean_of(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return fmean(known) if known else None


def _notes(method: str, means: Mapping[str, Mean], versions: Sequence[str]) -> tuple[str, ...]:
    notes = []
    worse = [
        metric
        for metric, mean in means.items()
        if metric in MAIN and mean.change is not None and mean.change < 0 and method != UNREGISTERED
    ]
    if worse:
        notes.append(f"worse than no registration in {', '.join(worse)}")
    if len(versions) > 1:
        notes.append("its rows are of several versions")
    return tuple(notes)
