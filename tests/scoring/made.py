"""Small segmentation and synthesis cases, and the outputs that are scored on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import blocks
from blocks.grid import Grid
from fidopt.images.nifti import write_nifti

#: Oblique, its axes of three spacings, its sides odd.
GRID = Grid.of(
    (13, 17, 15),
    spacing=(1.0, 1.5, 2.0),
    origin=(3.0, -8.0, 12.0),
    direction=(np.cos(0.3), -np.sin(0.3), 0, np.sin(0.3), np.cos(0.3), 0, 0, 0, 1),
)
TRUTH_KEYS = ("labels", "tolerance_mm", "dynamic_range", "geometry")
LABELS = {"1": "liver", "4": "kidneys", "9": "esophagus"}


def describe(share: Path, task: str, **changes: Any) -> None:
    """Write the descriptor of the dataset ``made``."""
    modalities = {"segmentation": {"image": "ct"}, "synthesis": {"source": "mr", "target": "ct"}}[task]
    truth: dict[str, Any] = {"grade": "synthetic", "by": "the tests", "checked": "by them", "limits": "all"}
    truth |= {"labels": LABELS} if task == "segmentation" else {"dynamic_range": 100.0}
    entry = {"source": "tests", "learn2reg": None, "subjects": ["a"]}
    document = {
        "name": "made",
        "title": "Made",
        "task": task,
        "dimension": 3,
        "unit": "mm",
        "modalities": modalities,
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "https://example.org", "files": {"x": "sha256:" + "0" * 64}},
        "cases": {"one": entry, "two": entry},
        "truth": truth | {key: changes.pop(key) for key in TRUTH_KEYS if key in changes},
        **changes,
    }
    path = share / "datasets" / "made" / "dataset.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def store(path: Path, voxels: npt.NDArray[Any], *, labels: bool = False, grid: Grid = GRID, unit: str = "mm") -> None:
    """Write a store of a case."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = blocks.image_of(voxels, grid, unit=unit, kind="labels" if labels else "image")
    blocks.write_image(path, image, overwrite=True)


def write_output(
    folder: Path, voxels: npt.NDArray[Any], names: Mapping[str, str] | None = None, *, grid: Grid = GRID
) -> Path:
    """Write ``labels.nii.gz`` with its names, or ``image.nii.gz`` where the voxels are floats; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("image.nii.gz" if voxels.dtype.kind == "f" else "labels.nii.gz")
    write_nifti(path, blocks.image_of(voxels, grid, unit="mm"))
    if names is not None:
        (folder / "labels.json").write_text(json.dumps(names))
    return path


def boxes(**places: tuple[int, slice, slice, slice]) -> npt.NDArray[np.uint8]:
    """Return a label map of boxes: any name -> value, and where."""
    labels = np.zeros(GRID.shape, np.uint8)
    for value, *where in places.values():
        labels[tuple(where)] = value
    return labels
