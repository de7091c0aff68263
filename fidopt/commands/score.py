"""``fidopt score``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fidopt.commands.options import Compute, Json, Where
from fidopt.commands.output import progress, say, show, show_json

if TYPE_CHECKING:
    from fidopt.descriptors.dataset import Dataset
    from fidopt.leaderboard.folding import Folded
    from fidopt.scoring.keeping import Scored, Submission


def score(
    name: str,
    dataset: str,
    /,
    *cases: str,
    fields: Path | None = None,
    outputs: Path | None = None,
    convention: str | None = None,
    voxels: Annotated[bool, Parameter(negative=())] = False,
    machine: str | None = None,
    where: Where | None = None,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Score what was made elsewhere, displacement fields, label maps or images, and write its rows.

    A field is u(x) on the fixed image's grid, in the dataset's unit along the world's axes (LPS): the fixed point x
    matches x + u(x) in the moving image. A label map or a synthetic image lies on its image's grid; the names of a
    map's values stand in labels.json beside it, {"1": "liver"}, and meet the dataset's through structures.json. A case
    whose result is missing or cannot be scored gets a row that says why; it counts as the unregistered pair, or as an
    empty map, and leaves a synthesis incomplete. As many cases are scored at a time as the memory holds.

    Example: `fidopt score mine lung_ct --fields fields`, where `fields/case01/DVF.nii.gz` is the field of case01, or
    `fidopt score mine headneck_masks --outputs outputs`, where `outputs/case08/labels.nii.gz` is a label map.

    Parameters
    ----------
    name
        the line's name on the board; it need not be a method here
    dataset
        name of a dataset, built before
    cases
        some of its cases; by default all
    fields
        of a registration: folder of CASE/DVF.nii.gz (also .mha, .nrrd, .ome.zarr), or of Learn2Reg's
        disp_FFFF_MMMM.nii.gz
    outputs
        of another task: folder of CASE/labels.nii.gz with CASE/labels.json, or of CASE/image.nii.gz (also .mha, .nrrd,
        .ome.zarr)
    convention
        which tool wrote the fields and means what by them: ants, convexadam, dipy, elastix, greedy, itk, konfai,
        learn2reg, niftyreg, niftyreg-deformation, niftyreg-displacement; CASE/ then holds the tool's own files, such
        as ANTs' 1Warp.nii.gz and 0GenericAffine.mat, elastix's TransformParameters.1.txt or KonfAI's Transform.h5
    voxels
        the fields are Learn2Reg's: voxels along the index axes (--convention learn2reg)
    machine
        folder of the results to write to, instead of this host's [FIDOPT_MACHINE]
    """
    from fidopt import corpus
    from fidopt.cluster.budget import checked_memory
    from fidopt.runner.previews import draw_or_say

    roots = (where or Where()).roots()
    described = corpus.filled(corpus.dataset(dataset, roots))
    _refuse_folders(described, fields, outputs, said=_said(convention, voxels=voxels))
    with (compute or Compute()).place() as place, progress(f"scoring {name} on {dataset}") as report:
        told: dict[str, Any] = {"machine": machine, "client": place.client, "progress": report, "say": say}
        memory = compute.memory if compute else None
        told |= {"draw": draw_or_say, "memory_bytes": checked_memory(memory) if memory else None}
        if outputs is not None:
            from fidopt.scoring.output_submission import score_outputs

            submission = score_outputs(name, described, cases, outputs=outputs, roots=roots, **told)
        elif fields is not None:
            from fidopt.scoring.submission import score_fields

            submission = score_fields(
                name, described, cases, fields=fields, roots=roots, convention=convention, voxels=voxels, **told
            )
    if json:
        show_json(_document(submission))
    else:
        show(_table(submission, unit=described.unit))
        show(f"rows in {submission.line.rows}")
    return 0


def _refuse_folders(dataset: Dataset, fields: Path | None, outputs: Path | None, *, said: str | None) -> None:
    """Refuse anything but the one folder that the dataset's task needs."""
    from fidopt.errors import UsageError

    registers = dataset.task == "registration"
    option = "--fields" if registers else "--outputs"
    given, other = (fields, outputs) if registers else (outputs, fields)
    if given is None or other is not None:
        what = {"registration": "displacement fields", "segmentation": "label maps", "synthesis": "images"}
        msg = f"{dataset.name} is a {dataset.task} dataset: name the folder of its {what[dataset.task]}, {option} DIR"
        raise UsageError(msg + (", and no other" if other is not None else ""))
    if said and not registers:
        msg = f"{said} is said of displacement fields, and {dataset.name} is a {dataset.task} dataset; leave it out"
        raise UsageError(msg)


def _said(convention: str | None, *, voxels: bool) -> str | None:
    """Return the option that was given of fields, or None."""
    return "--voxels" if voxels else "--convention" if convention else None


def _document(submission: Submission) -> dict[str, object]:
    line = submission.line
    return {
        "method": line.method,
        "dataset": line.dataset,
        "machine": line.machine,
        "file": str(line.rows),
        "rows": {one.case: _row(one) for one in submission.cases},
        "mean": _means(submission.cases),
    }


def _row(one: Scored) -> dict[str, object]:
    row: dict[str, object] = one.row.model_dump(mode="json", by_alias=True)
    row["landmarks"] = {metric: _spread(errors) for metric, errors in one.landmarks.items()}
    return row


def _spread(errors: tuple[float, ...]) -> dict[str, float]:
    import numpy as np

    return {"count": len(errors), "mean": float(np.mean(errors)), "median": float(np.median(errors))}


def _means(cases: tuple[Scored, ...]) -> dict[str, float]:
    """Return each metric's mean over the cases that have a value."""
    columns: dict[str, list[float]] = {}
    for one in cases:
        for metric, value in one.row.metrics.items():
            if value is not None:
                columns.setdefault(metric, []).append(value)
    return {metric: sum(values) / len(values) for metric, values in columns.items()}


def _table(submission: Submission, *, unit: str) -> Folded:
    from fidopt.leaderboard.folding import Folded

    metrics = list(dict.fromkeys(metric for one in submission.cases for metric in one.row.metrics))
    rows = [
        [f"{one.case}{' (failed)' if one.row.error else ''}", *_cells(one.row.metrics, metrics)]
        for one in submission.cases
    ]
    if len(rows) > 1:
        rows.append(["mean", *_cells(_means(submission.cases), metrics)])
    line = submission.line
    measured = any(metric.split("_")[0] in {"hd95", "tre"} for metric in metrics)
    title = f"{line.method} on {line.dataset}" + (f" (distances in {unit})" if measured else "")
    return Folded(title, ["case", *metrics], rows)


def _cells(values: Mapping[str, float | None], metrics: list[str]) -> list[str]:
    return ["-" if (value := values.get(metric)) is None else f"{value:.5g}" for metric in metrics]
