"""Settings held against the defaults case by case: paired differences, their interval, wins and losses, and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.rows import Row
from fidopt.leaderboard.lines import RANKED, better_by
from fidopt.leaderboard.ranks import main_measure
from fidopt.leaderboard.statistics import signed_rank, t_interval

#: (Setting, dataset, case) -> its row.
RowsBy = Mapping[tuple[str, str, str], Row]


@dataclass(frozen=True)
class Against:
    """A setting held against the defaults on the cases that both have a value of.

    Parameters
    ----------
    cases
        Their differences, setting minus defaults, in the measure's unit: case -> difference.
    difference, low, high
        The mean difference and its 95 % t interval; None for fewer than one case, or two.
    better, worse, equal
        On how many cases the setting is better, worse, or the same.
    p
        Of Wilcoxon's signed-rank test, two-sided, exact.
    """

    cases: Mapping[str, float]
    difference: float | None
    low: float | None
    high: float | None
    better: int
    worse: int
    equal: int
    p: float


@dataclass(frozen=True)
class SettingResult:
    """A setting on one dataset's development cases.

    Parameters
    ----------
    name
        The setting's.
    means
        Metric -> mean over the cases that have a value.
    values
        Case -> the main measure.
    failed
        Cases that failed, and count as the unregistered pair.
    time_s
        The mean time of a case.
    against
        Beside the defaults; None for the defaults themselves.
    """

    name: str
    means: Mapping[str, float]
    values: Mapping[str, float]
    failed: int
    time_s: float | None
    against: Against | None


@dataclass(frozen=True)
class DatasetResult:
    """All settings on one dataset.

    Parameters
    ----------
    dataset, metric, unit
        Its name, its main measure, the first that the protocol compares neighbouring lines on, and the unit of its
        distances.
    cases
        The development cases.
    settings
        The defaults first.
    """

    dataset: str
    metric: str
    unit: str
    cases: tuple[str, ...]
    settings: tuple[SettingResult, ...]


@dataclass(frozen=True)
class Overall:
    """A setting over the family.

    Parameters
    ----------
    name
        The setting's.
    rank
        The mean over the datasets of its mean rank over their cases, on each dataset's main measure; 1 is the best.
    better, worse, equal
        Cases, of all datasets.
    failed
        Cases that failed, of all datasets.
    same
        Whether every value is that of the defaults, to the last digit, and not because every case failed.
    """

    name: str
    rank: float
    better: int
    worse: int
    equal: int
    failed: int
    same: bool


@dataclass(frozen=True)
class Comparison:
    """Every setting on every dataset, and over the family, the best first."""

    datasets: tuple[DatasetResult, ...]
    overall: tuple[Overall, ...] = field(default=())

    @property
    def best(self) -> Overall:
        """The setting of the best rank; of equals, the one named first."""
        return self.overall[0]


def compare(names: Sequence[str], datasets: Mapping[str, tuple[Dataset, Sequence[str]]], rows: RowsBy) -> Comparison:
    """Compare settings.

    Parameters
    ----------
    names
        The settings, the defaults first.
    datasets
        Name -> the dataset and its cases that every setting has a row of.
    rows
        The rows.
    """
    found = [
        result
        for name, (dataset, cases) in datasets.items()
        if (result := _of_dataset(names, dataset, cases, {k: v for k, v in rows.items() if k[1] == name}))
    ]
    ranks = [_ranks(names, result) for result in found]
    overall = [_overall(name, found, ranks) for name in names] if found else []
    return Comparison(tuple(found), tuple(sorted(overall, key=lambda one: one.rank)))


def _of_dataset(names: Sequence[str], dataset: Dataset, cases: Sequence[str], rows: RowsBy) -> DatasetResult | None:
    has = {metric for row in rows.values() for metric, value in row.metrics.items() if value is not None}
    metric = main_measure([one for one in RANKED if one in has and one not in dataset.unranked])
    if metric is None:
        return None
    values = {name: _values(metric, {case: rows[name, dataset.name, case] for case in cases}) for name in names}
    return DatasetResult(
        dataset.name,
        metric,
        dataset.unit,
        tuple(cases),
        tuple(
            _result(name, metric, [rows[name, dataset.name, case] for case in cases], values, names[0])
            for name in names
        ),
    )


def _result(
    name: str, metric: str, rows: Sequence[Row], values: Mapping[str, Mapping[str, float]], defaults: str
) -> SettingResult:
    numbers: dict[str, list[float]] = {}
    for row in rows:
        for one, value in row.metrics.items():
            if value is not None:
                numbers.setdefault(one, []).append(value)
    times = [row.time_s for row in rows if row.time_s is not None]
    return SettingResult(
        name,
        {one: sum(of) / len(of) for one, of in numbers.items()},
        values[name],
        sum(row.error is not None for row in rows),
        sum(times) / len(times) if times else None,
        None if name == defaults else against(metric, values[name], values[defaults]),
    )


def against(metric: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> Against:
    """Hold a setting's values against the defaults', case by case."""
    both = [case for case in ours if case in theirs]
    cases = {case: ours[case] - theirs[case] for case in both}
    gains = [better_by(metric, ours[case], theirs[case]) for case in both]
    low, high = t_interval(list(cases.values())) or (None, None)
    return Against(
        cases,
        sum(cases.values()) / len(cases) if cases else None,
        low,
        high,
        sum(gain > 0 for gain in gains),
        sum(gain < 0 for gain in gains),
        sum(gain == 0 for gain in gains),
        signed_rank(gains)[1],
    )


def _values(metric: str, rows: Mapping[str, Row]) -> dict[str, float]:
    return {case: value for case, row in rows.items() if (value := row.metrics.get(metric)) is not None}


def _ranks(names: Sequence[str], result: DatasetResult) -> dict[str, float]:
    """Return each setting's mean rank over the cases; equals share the mean of their ranks, no value comes last."""
    total = dict.fromkeys(names, 0.0)
    known = {one.name: one.values for one in result.settings}
    for case in result.cases:
        # Of how much better each value is than one and the same other, larger is better whatever the metric.
        keys = {n: better_by(result.metric, v[case], 0.0) if case in v else float("-inf") for n, v in known.items()}
        for name in names:
            above = sum(other > keys[name] for other in keys.values())
            level = sum(other == keys[name] for other in keys.values())
            total[name] += above + (level + 1) / 2
    return {name: value / len(result.cases) for name, value in total.items()}


def _overall(name: str, results: Sequence[DatasetResult], ranks: Sequence[Mapping[str, float]]) -> Overall:
    mine = [one for result in results for one in result.settings if one.name == name]
    held = [one.against for one in mine if one.against is not None]
    failed = sum(one.failed for one in mine)
    return Overall(
        name,
        sum(one[name] for one in ranks) / len(ranks),
        sum(one.better for one in held),
        sum(one.worse for one in held),
        sum(one.equal for one in held),
        failed,
        same=bool(held)
        and failed < sum(len(one.cases) for one in results)
        and all(not any(one.cases.values()) for one in held),
    )
