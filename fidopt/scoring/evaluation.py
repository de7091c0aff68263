"""One case scored: its truth staged beside the field, measured by KonfAI, and read back as metrics of a row."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset, Task
from fidopt.errors import UsageError
from fidopt.resources import Roots, packaged_share
from fidopt.scoring.evaluator import Report, evaluate, require_konfai
from fidopt.scoring.field import zero_field
from fidopt.scoring.levels import fixed_grids
from fidopt.scoring.plan import Plan, Registration, plan
from fidopt.scoring.staging import Staging

_NO_LABEL = "the fixed and the moving label map have no label in common"
_NO_SURFACE = "the warp kept none of the labels, so there is no surface to measure from"
_NO_VOXEL = "no voxel {where}is left two voxels away from the faces of the grid"
_WHERE = {"sdlogj": "", "sdlogj_body": "of the fixed image's foreground ", "sdlogj_mask": "of the fixed mask "}
_EMPTY = {
    "folds_body": "the fixed image has one value, hence no foreground",
    "folds_mask": "the fixed mask is empty",
}


@dataclass(frozen=True)
class Scores:
    """What a field is worth on one case.

    Parameters
    ----------
    metrics
        Metric of a row -> value, None where it cannot be computed.
    labels
        Metric -> label -> value, None where it cannot be computed.
    reasons
        Metric -> why it is None.
    landmarks
        Metric -> the error of every landmark pair, in the order of the files.
    regions
        What was measured -> region of the image -> value.
    evaluation
        The evaluation as KonfAI resolved it.
    """

    metrics: dict[str, float | None]
    labels: dict[str, dict[str, float | None]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    landmarks: dict[str, tuple[float, ...]] = field(default_factory=dict)
    regions: dict[str, dict[str, float]] = field(default_factory=dict)
    evaluation: str = ""


def refuse_other_tasks(dataset: Dataset) -> None:
    """Refuse to score fields on a dataset that has no registrations.

    Raises
    ------
    UsageError
        When its task is another.
    """
    if dataset.task != "registration":
        msg = f"{dataset.name} is a {dataset.task} dataset: displacement fields score registration alone; score what"
        msg = f"{msg} was made of its images with --outputs DIR"
        raise UsageError(msg)


def score_case(
    case: Case,
    displacement: DisplacementField | None,
    *,
    workdir: Path | None = None,
    template: Path | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
) -> Scores:
    """Score a field on a case.

    Parameters
    ----------
    case
        A built registration case.
    displacement
        u on the fixed grid, of a large dataset on any grid that covers it
        (:func:`fidopt.scoring.field.read_scored_field`); None for the pair unregistered.
    workdir
        A folder to stage in, the system's temporary one by default; what is staged is removed.
    template
        The evaluation file (:func:`evaluation_file`); by default the one that comes with fidopt.
    client
        A Dask client for what is read from stores; by default threads on this machine's cores. The same numbers.

    Raises
    ------
    UsageError
        When the case is not one of registration.
    MissingError
        Where KonfAI is absent.
    InputError
        When the evaluation file or the truth is damaged.
    """
    refuse_other_tasks(case.dataset)
    require_konfai()
    asked = plan(template or packaged_share() / "evaluation" / "registration.yml", _evidence(case))
    # The unregistered pair of a large dataset on its coarsest level: nothing moves on any.
    field = displacement or zero_field(fixed_grids(case)[-1 if case.dataset.large else 0])
    staging = Staging(case, field, tuple(asked.questions), client)
    with tempfile.TemporaryDirectory(prefix="fidopt-score-", dir=workdir) as scratch:
        folder = Path(scratch).resolve()
        roots = staging.write(folder, asked.groups)
        report = evaluate(asked.metrics, roots=roots, name=case.dataset.name, case=case.name, folder=folder)
    scores = read_scores(asked, report, diagonal=staging.grid.diagonal)
    if staging.level is not None:
        scores.metrics["labels_level"] = float(staging.level)
    return scores


def evaluation_file(roots: Roots, task: Task = "registration") -> Path:
    """Return ``evaluation/<task>.yml`` of the first share that has it."""
    return roots.find("evaluation", f"{task}.yml")


def _evidence(case: Case) -> Registration:
    return Registration(
        label_sets=tuple(case.label_sets()),
        landmark_sets=tuple(case.landmark_sets()),
        labels=tuple(int(label) for label in case.dataset.truth.labels),
        image=case.fixed.is_dir(),
        mask="fixed_mask" in case.masks(),
    )


def read_scores(asked: Plan, report: Report, *, diagonal: float, reasons: Mapping[str, str] | None = None) -> Scores:
    """Return what KonfAI measured as metrics of a row.

    Parameters
    ----------
    diagonal
        Length of the image's diagonal, which a landmark error is related to.
    reasons
        Metric -> why it is None where it is; by default a registration's reasons.
    """
    metrics: dict[str, float | None] = {}
    labels: dict[str, dict[str, float | None]] = {}
    landmarks: dict[str, tuple[float, ...]] = {}
    for key, metric in asked.results.items():
        value = metrics[metric] = report.values[key]
        if metric == "tre":
            metrics["rtre"] = None if value is None else value / diagonal
        parts = {k.removeprefix(f"{key}:"): v for k, v in report.values.items() if k.startswith(f"{key}:")}
        if metric.partition("_")[0] == "tre" and parts:
            landmarks[metric] = tuple(math.nan if v is None else v for v in parts.values())
        elif parts or metric.partition("_")[0] in {"dice", "hd95", "surface"}:
            labels[metric] = parts
    missing = [metric for metric, value in metrics.items() if value is None]
    why = {metric: (reasons or {}).get(metric) or _reason(metric, labels) for metric in missing}
    return Scores(metrics, labels, why, landmarks, evaluation=report.resolved)


def _reason(metric: str, labels: Mapping[str, Mapping[str, float | None]]) -> str:
    if metric in labels:
        return _NO_SURFACE if labels[metric] else _NO_LABEL
    if metric in _WHERE:
        return _NO_VOXEL.format(where=_WHERE[metric])
    return _EMPTY.get(metric, "it is not a number")
