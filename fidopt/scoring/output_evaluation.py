"""One segmentation or synthesis scored: its truth staged beside it, measured by KonfAI, and read back as metrics."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import ndimage

import blocks
from blocks.execute import compute
from blocks.graphs.foreground import otsu
from blocks.image import grid_of, image_of, open_image, unit_of
from blocks.kernels.histogram import grey
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, UsageError
from fidopt.images.lost import refuse_lost
from fidopt.resources import packaged_share
from fidopt.scoring.anatomy import Anatomy
from fidopt.scoring.evaluation import Scores, read_scores
from fidopt.scoring.evaluator import evaluate, require_konfai
from fidopt.scoring.outputs import Output, empty_labels, truth_grid, truth_path
from fidopt.scoring.plan import Evidence, Segmentation, Synthesis, plan
from fidopt.scoring.regions import regions
from fidopt.scoring.staging import UNITS, refuse_unwhole

#: Why a metric has no value where it has none.
_REASONS: Mapping[str, str] = {
    "dice": "neither the truth nor the output holds one of the structures",
    "surface_dice": "neither the truth nor the output holds one of the structures",
    "hd95": "no structure is both in the truth and in the output, so there are no surfaces to measure between",
    "psnr": "the mask is empty",
    "mae": "the mask is empty",
    "ssim": "the mask is empty",
    "hd95_geometry": "no structure was found in both images",
}
#: What a synthesis' regions are told from.
_COMPARED = ("OutputImage", "TargetImage", "Mask")
#: What a synthesis is measured by: null where there is no image.
SYNTHESIS = ("mae", "psnr", "ssim")


def refuse_registration(dataset: Dataset) -> None:
    """Refuse to score outputs on a dataset of registrations, or on one whose images do not fit in memory.

    Raises
    ------
    UsageError
        When its task is registration, or it is large.
    """
    if dataset.task == "registration":
        msg = f"{dataset.name} is a registration dataset: displacement fields are scored on it, with --fields DIR"
        raise UsageError(msg)
    if dataset.large:
        msg = f"{dataset.name} is a large {dataset.task} dataset: such outputs are compared in memory, and the protocol"
        raise UsageError(f"{msg} gives no reduced level for them; describe it at the level that is to be scored")


def score_output(
    case: Case,
    output: Output | None,
    *,
    workdir: Path | None = None,
    template: Path | None = None,
    anatomy: Anatomy | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
) -> Scores:
    """Score what a method wrote for a case.

    Parameters
    ----------
    case
        A built segmentation or synthesis case.
    output
        What was read (:func:`fidopt.scoring.outputs.read_output`); None where there is nothing: an empty map, or for a
        synthesis no values at all.
    workdir
        A folder to stage in, the system's temporary one by default; what is staged is removed.
    template
        The evaluation file; by default the one that comes with fidopt.
    anatomy
        What a segmentation method found in the synthetic and the real image, where the dataset asks for it.
    client
        A Dask client for what is read from stores; by default threads on this machine's cores. The same numbers.

    Raises
    ------
    UsageError
        When the case is one of registration, or too large.
    MissingError
        Where KonfAI is absent.
    InputError
        When the evaluation file or the truth is damaged.
    """
    refuse_registration(case.dataset)
    require_konfai()
    if output is None and case.dataset.task == "synthesis":
        return Scores(dict.fromkeys(SYNTHESIS), reasons=dict.fromkeys(SYNTHESIS, "there is no image"))
    groups = _groups(case, output or empty_labels(case), anatomy, client)
    task = case.dataset.task
    asked = plan(template or packaged_share() / "evaluation" / f"{task}.yml", _evidence(case.dataset, anatomy))
    with tempfile.TemporaryDirectory(prefix="fidopt-score-", dir=workdir) as scratch:
        folder = Path(scratch).resolve()
        for name in sorted(asked.groups):
            _stage(groups[name], folder / "images" / case.name / f"{name}.ome.zarr", client)
        roots = [f"{folder / 'images'}:omezarr"]
        report = evaluate(asked.metrics, roots=roots, name=case.dataset.name, case=case.name, folder=folder)
    scores = read_scores(asked, report, diagonal=truth_grid(case).diagonal, reasons=_REASONS)
    if scores.metrics.get("mae") == 0:
        scores.reasons["psnr"] = "nothing differs inside the mask, so that the ratio is infinite"
    if task == "synthesis":
        scores.regions.update(regions(*(_voxels(groups[name], client) for name in _COMPARED)))
    if scores.metrics.get("mae", 0) is None and not case.masks():
        scores.reasons.update(dict.fromkeys(SYNTHESIS, "the real image has one value, hence no body to look inside"))
    return scores


def body_of(image: xr.DataArray, *, client: Any = None) -> xr.DataArray:  # noqa: ANN401 - distributed is not typed
    """Return where an image shows something: above Otsu's threshold, and what that encloses.

    Air inside a body, the lungs of a CT, is of the body: holes are filled in space and, since a field of view opens
    them at its faces, in every plane of the first axis.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x; its channels are averaged.

    Returns
    -------
    DataArray
        uint8, dims (z,) y, x.
    """
    values, threshold = compute(image, otsu(image), client=client)
    above = grey(np.asarray(values), coloured=image.ndim > grid_of(image).ndim) > threshold.value
    body: npt.NDArray[np.bool_] = ndimage.binary_fill_holes(above)
    if body.ndim == 3:
        body = np.stack([ndimage.binary_fill_holes(plane) for plane in body])
    return image_of(body.astype(np.uint8), grid_of(image), unit="px", kind="labels")


def _evidence(dataset: Dataset, anatomy: Anatomy | None) -> Evidence:
    truth = dataset.truth
    if dataset.task == "synthesis":
        return Synthesis(float(truth.dynamic_range or 0), tuple(anatomy.labels) if anatomy else ())
    far = truth.tolerance_mm
    given = far if isinstance(far, dict) else dict.fromkeys(truth.labels.values(), far)
    return Segmentation({int(value): given.get(name, 1.0) for value, name in truth.labels.items()})


def _groups(
    case: Case,
    output: Output,
    anatomy: Anatomy | None,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> dict[str, xr.DataArray | Path]:
    truth = truth_path(case)
    if case.dataset.task == "segmentation":
        refuse_unwhole(open_image(truth), truth)
        return {"OutputLabels": output.image, "TruthLabels": truth}
    refuse_lost(str(truth))
    if not np.isfinite(_voxels(truth, client)).all():
        msg = f"{truth}: the real image is not finite everywhere, and errors are averaged over it; build the case again"
        raise InputError(msg)
    mask = case.masks().get("mask")
    if mask is not None and not grid_of(open_image(mask)).matches(grid_of(open_image(truth))):
        msg = f"{mask}: does not lie on the grid of {case.dataset.name}/{case.name}'s target; build the case again"
        raise InputError(msg)
    groups: dict[str, xr.DataArray | Path] = {
        "OutputImage": output.image,
        "TargetImage": truth,
        "Mask": mask or body_of(open_image(truth), client=client),
    }
    return groups | ({"OutputAnatomy": anatomy.output, "TargetAnatomy": anatomy.target} if anatomy else {})


def _voxels(group: xr.DataArray | Path, client: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - distributed is not typed
    image = open_image(group) if isinstance(group, Path) else group
    return np.asarray(compute(image, client=client))


def _stage(group: xr.DataArray | Path, path: Path, client: Any) -> None:  # noqa: ANN401 - distributed is not typed
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(group, Path):
        image = open_image(group)
        if unit_of(image) in UNITS:
            path.symlink_to(group.resolve(), target_is_directory=True)
            return
        group = image.copy(data=np.asarray(compute(image, client=client)))
    # A unit that KonfAI knows would turn the distances into millimetres.
    blocks.write_image(path, group.assign_attrs(unit="px"), levels=False)
