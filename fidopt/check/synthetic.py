"""A method run on the pairs of known motion, as any case is run, and its fields judged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from fidopt.check.judging import Finding, fitting, judge
from fidopt.check.readings import Floats, Pair
from fidopt.check.scenes import Scene
from fidopt.corpus import Case
from fidopt.descriptors.base import parse
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import FidoptError, FieldError
from fidopt.images import nifti
from fidopt.runner.case import Order, run_case

#: Modalities tried in this order: what a method takes decides.
_MODALITIES = ("ct", "mr", "cbct", "us")


def build_case(scene: Scene, modality: str, folder: Path) -> Case:
    """Write a pair as a built case, with the body's masks, which a method that takes masks is handed.

    Parameters
    ----------
    modality
        What both images are said to be.
    folder
        A new folder of the case's own.
    """
    from blocks import image_of, write_image

    dataset = parse(Dataset, _described(scene, modality), where=f"the pair {scene.name}")
    for name, array in scene.images().items():
        grid = scene.moving if name.startswith("moving") else scene.fixed
        kind: Literal["image", "labels"] = "labels" if name.endswith("mask") else "image"
        write_image(folder / f"{name}.ome.zarr", image_of(array, grid, unit="mm", kind=kind))
    return Case(dataset, scene.name, folder)


def modality_for(order: Order) -> str:
    """Return a modality that a method takes."""
    taken = order.method.modalities
    return next((m for m in _MODALITIES if m in taken or "*" in taken), taken[0])


def check_scene(order: Order, scene: Scene, folder: Path, *, log: Callable[[str], None]) -> Finding:
    """Run a method on a pair and judge its field; a run that fails is a finding too.

    Parameters
    ----------
    folder
        A new folder for the pair's images.
    log
        Told the end of what a failed run printed.
    """
    case = build_case(scene, modality_for(order), folder)
    with run_case(order, case) as result:
        if result.failure is not None or result.field is None:
            log(result.log_tail)
            reason = result.failure.reason if result.failure else "it left no field"
            return Finding("failed", f"the run failed: {reason}")
        return judge_file(result.field, case, scene)


def judge_file(path: Path, case: Case, scene: Scene) -> Finding:
    """Judge a field's file by a pair's motion.

    A file that the contract does not allow is refused as it would be when scored, and its numbers are looked at all
    the same, so that the refusal can say what they mean.
    """
    from fidopt.scoring.field import read_scored_field

    pair, inside, motion = scene.pair(), scene.inside(), np.array(scene.motion)
    try:
        vectors = np.asarray(read_scored_field(path, case).vectors[(slice(None),)], dtype=np.float64)
    except FieldError as error:
        reason = str(error).replace(f"{path.parent}/", "")
        return _refused(reason, path, inside, pair, motion)
    return judge(vectors[:, inside].T, motion, pair)


def _refused(reason: str, path: Path, inside: npt.NDArray[np.bool_], pair: Pair, motion: Floats) -> Finding:
    for laid, vectors in _layouts(path, pair.fixed):
        numbers = vectors[:, inside].T
        if not np.isfinite(numbers).all():
            continue
        found = fitting(numbers, motion, pair)
        if found:
            words = tuple(", ".join(part for part in (laid, r.words) if part) for r, _ in found)
            said = f"{reason}; its numbers would be right {', or '.join(words)}"
            return Finding("refused", said, None, found[0][1], words)
    return Finding("refused", f"{reason}; its numbers are not right in any convention either")


def _layouts(path: Path, grid: Grid) -> Iterator[tuple[str, Floats]]:
    """Yield the ways a NIfTI file's numbers could lie on the fixed grid, in words and as (ndim, [z,] y, x)."""
    try:
        file = nifti.open_nifti(path)
        raw = np.asarray(file.values(), dtype=np.float64)
    except (FidoptError, ValueError, TypeError):
        return
    size, ndim = grid.shape[::-1], grid.ndim
    if raw.size != ndim * math.prod(size):
        return
    said = "" if file.intent == nifti.INTENT_VECTOR else f"under intent 1007 instead of {file.intent}"
    shape = tuple(n for n in file.shape if n != 1)
    if shape == (*size, ndim):
        yield said, raw.reshape(*size, ndim, order="F").T
    if shape == (*size[::-1], ndim):
        transposed = "with the array's axes as x, y, z instead of z, y, x"
        yield ", ".join(part for part in (said, transposed) if part), np.moveaxis(raw.reshape(*size[::-1], ndim), -1, 0)
    if shape == (ndim, *size):
        first = "with the components as the last axis, not the first"
        yield (
            ", ".join(part for part in (said, first) if part),
            raw.reshape(ndim, *size).transpose(0, *range(ndim, 0, -1)),
        )


def _described(scene: Scene, modality: str) -> str:
    return json.dumps(
        {
            "name": "check",
            "title": scene.title,
            "dimension": scene.ndim,
            "unit": "mm",
            "modalities": {"fixed": modality, "moving": modality},
            "masks": ["fixed_mask", "moving_mask"],
            "spdx": "CC0-1.0",
            "citation": "made by fidopt check",
            "source": {"url": "none", "files": {"made": "sha256:" + "0" * 64}},
            "cases": {scene.name: {"source": "made", "learn2reg": None, "subjects": ["a", "a"]}},
            "truth": {"grade": "synthetic", "by": "fidopt", "checked": "exact", "limits": "a translation"},
        }
    )
