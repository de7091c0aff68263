"""What each label, landmark and region of a row costs, in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fidopt.descriptors.rows import Row
from fidopt.errors import InputError
from fidopt.leaderboard.explanation.finding import Found
from fidopt.leaderboard.explanation.kinds import (
    Change,
    Explanation,
    LabelCost,
    LandmarkCost,
    RegionCost,
    Regularity,
)
from fidopt.leaderboard.lines import better_by

#: What is compared label by label, in the order of its columns.
_BY_LABEL = ("surface_dice", "dice", "hd95")
#: Where the regularity of a field is told, and the ending of its metrics.
_PLACES = {"whole field": "", "body": "_body", "fixed mask": "_mask"}


def explain(found: Found) -> Explanation:
    """Return what cost what in a row.

    Raises
    ------
    InputError
        When the landmarks of the built case are not those that the row was scored on.
    """
    row, before = found.row, found.unregistered
    points = _points(found)
    folder = found.line.previews(found.name)
    return Explanation(
        method=found.line.method,
        dataset=found.dataset.name,
        case=found.name,
        machine=found.line.machine,
        task=found.dataset.task,
        unit=found.dataset.unit,
        error=f"{row.error.stage}: {row.error.reason}" if row.error else None,
        metrics=tuple(_changes(row, before)),
        labels=tuple(cost for name in _sets(row.labels, "dice") for cost in _labels(found, name)),
        landmarks=tuple(cost for metric in row.landmarks for cost in _landmarks(found, metric, points)),
        regularity=tuple(_regularity(row)),
        regions=tuple(_regions(row.regions)),
        pictures=str(folder) if folder.is_dir() else None,
        notes=tuple(_notes(found)),
    )


def _changes(row: Row, before: Row | None) -> Iterator[Change]:
    for metric, value in row.metrics.items():
        other = before.metrics.get(metric) if before else None
        better = None if value is None or other is None else better_by(metric, value, other)
        yield Change(metric, value, other, better, row.reasons.get(metric, ""))


def _sets(values: Mapping[str, object], base: str) -> list[str]:
    """Return the sets that have a metric, the first one first."""
    names = [metric.removeprefix(base).removeprefix("_") for metric in values if metric.split("_")[0] == base]
    return sorted(names)


def _labels(found: Found, name: str) -> list[LabelCost]:
    """Return the labels of a set, what costs most first."""
    suffix = f"_{name}" if name else ""
    now = {metric: found.row.labels.get(metric + suffix, {}) for metric in _BY_LABEL}
    then = {metric: found.unregistered.labels.get(metric + suffix, {}) if found.unregistered else {} for metric in now}
    lacks = {label: 1 - value for label, value in now["dice"].items() if value is not None}
    total = sum(lacks.values())
    names = {} if name else found.dataset.truth.labels
    states = _states(found, now["dice"], now["hd95"])
    costs = [
        LabelCost(
            set=name,
            label=label,
            name=names.get(label, ""),
            state=states.get(label, ""),
            dice=now["dice"][label],
            dice_before=then["dice"].get(label),
            hd95=now["hd95"].get(label),
            hd95_before=then["hd95"].get(label),
            surface_dice=now["surface_dice"].get(label),
            cost=lacks[label] / len(lacks) if label in lacks else None,
            share=lacks[label] / total if label in lacks and total > 0 else None,
        )
        for label in now["dice"]
    ]
    return sorted(costs, key=lambda cost: (-(cost.cost or 0), len(cost.label), cost.label))


def _states(found: Found, dice: Mapping[str, float | None], hd95: Mapping[str, float | None]) -> dict[str, str]:
    """Return which labels one of the two maps lacks, and which of them it is."""
    absent = [label for label, value in dice.items() if value == 0 and label in hd95 and hd95[label] is None]
    if found.dataset.task == "registration":
        return dict.fromkeys(absent, "lost")
    metrics = found.row.metrics
    if not metrics.get("structures_invented"):
        return dict.fromkeys(absent, "missing")
    if metrics.get("structures") == metrics.get("structures_produced"):
        return dict.fromkeys(absent, "invented")
    there = _in_truth(found)
    if there is None:
        return dict.fromkeys(absent, "missing or invented")
    return {label: "missing" if int(label) in there else "invented" for label in absent}


def _in_truth(found: Found) -> frozenset[int] | None:
    """Return the labels that the truth of a segmentation holds; None where the case is not built here."""
    if found.case is None:
        return None
    from blocks.execute import compute
    from blocks.image import open_image
    from blocks.kernels.overlap import distinct
    from fidopt.scoring.outputs import truth_path

    return frozenset(distinct(np.asarray(compute(open_image(truth_path(found.case))))).tolist())


def _points(found: Found) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Return set -> fixed and moving landmarks of the built case, of the sets that the row has errors of."""
    if found.case is None:
        return {}
    from fidopt.images.landmarks import read_landmark_pair

    sets = found.case.landmark_sets()
    pairs = {
        name: read_landmark_pair(*sets[name], ndim=found.dataset.dimension)
        for name in _sets(found.row.landmarks, "tre")
        if name in sets
    }
    for name, (fixed, _) in pairs.items():
        errors = found.row.landmarks[f"tre_{name}" if name else "tre"]
        if len(errors) != len(fixed):
            msg = f"{sets[name][0]} has {len(fixed)} landmarks and the row has the errors of {len(errors)}: it was"
            raise InputError(f"{msg} scored on other files; score the case again")
    return pairs


def _landmarks(
    found: Found, metric: str, points: Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]
) -> list[LandmarkCost]:
    """Return the landmarks of a set, the worst first."""
    name = metric.removeprefix("tre").removeprefix("_")
    errors = found.row.landmarks[metric]
    before: Sequence[float | None] = found.unregistered.landmarks.get(metric, ()) if found.unregistered else ()
    fixed, moving = points.get(name, (None, None))
    if len(before) != len(errors):
        # What the zero field leaves is the distance of the two points.
        apart = None if fixed is None or moving is None else np.linalg.norm(moving - fixed, axis=1).tolist()
        before = apart if apart and found.dataset.task == "registration" else [None] * len(errors)
    total = sum(error for error in errors if error is not None)
    costs = [
        LandmarkCost(
            set=name,
            number=number + 1,
            error=error,
            before=before[number],
            share=error / total if error is not None and total > 0 else None,
            position=None if fixed is None else tuple(fixed[number].tolist()),
        )
        for number, error in enumerate(errors)
    ]
    return sorted(costs, key=lambda cost: (-(cost.error or 0), cost.number))


def _regularity(row: Row) -> Iterator[Regularity]:
    for place, ending in _PLACES.items():
        if f"sdlogj{ending}" in row.metrics or f"folds{ending}" in row.metrics:
            yield Regularity(place, row.metrics.get(f"sdlogj{ending}"), row.metrics.get(f"folds{ending}"))


def _regions(values: Mapping[str, Mapping[str, float]]) -> Iterator[RegionCost]:
    from fidopt.scoring.regions import QUARTERS

    voxels = values.get("voxels", {})
    total = sum(values["mae"][name] * voxels[name] for name in QUARTERS if name in voxels)
    for name, count in voxels.items():
        error = values["mae"][name]
        share = error * count / total if name in QUARTERS and total > 0 else None
        low, high = values["low"].get(name), values["high"].get(name)
        yield RegionCost(name, error, values["bias"][name], int(count), low, high, share)


def _notes(found: Found) -> Iterator[str]:
    row, dataset = found.row, found.dataset
    again = f"score it again (fidopt run {found.line.method} {dataset.name} {found.name} --again all, or fidopt score)"
    kept = {"label": ("dice", {*row.labels}), "landmark": ("tre", {*row.landmarks}), "region": ("mae", {*row.regions})}
    for what, (base, there) in kept.items():
        measured = {m for m, value in row.metrics.items() if m.split("_")[0] == base and value is not None}
        if measured - there - {"tre_p95"}:
            yield f"the row holds no values by {what}: fidopt {row.fidopt_version} wrote it without them; {again}"
    if dataset.task == "registration" and found.unregistered is None and found.line.method != "identity":
        yield (
            f"there is no row of the unregistered pair on the same files to compare with: fidopt run identity"
            f" {dataset.name} {found.name}"
        )
    if found.case is None and (row.landmarks or dataset.task != "synthesis"):
        yield f"the case is not built here, so positions are not told: fidopt build {dataset.name} {found.name}"
