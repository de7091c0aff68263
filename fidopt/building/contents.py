"""What a case holds before it is written: images and points in memory, checked against the descriptor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute
from blocks.image import grid_of, unit_of
from blocks.transforms import Affine
from fidopt.alignment.headers import aligned
from fidopt.building.world import regridded
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError
from fidopt.images.landmarks import check_frame, read_landmarks
from fidopt.images.readers import read_image

Floats = npt.NDArray[np.float64]

#: The largest label that is counted.
_MOST = int(np.iinfo(np.int64).max)
#: Farthest that the cosine between two axes may be from 0: headers in text have four digits or more.
_RIGHT_ANGLE = 1e-3
#: Entries whose voxels are whole numbers that mean something.
_LABELS = re.compile(r".*(mask|labels(_\w+)?|ignore)$")
#: Label maps, and the set that one belongs to where it is not the first.
_MAP = re.compile(r"truth/(?:(?:fixed|moving)_)?labels(?:_(\w+))?$")
#: The entry whose grid the others of a case share, and what a case cannot be scored without; by task.
_REFERENCE = {"segmentation": ("image", "truth/labels"), "synthesis": ("source", "truth/target")}


@dataclass(frozen=True)
class Contents:
    """A case's images and points by their place in the case, without suffix.

    Parameters
    ----------
    images
        ``fixed``, ``moving_mask``, ``truth/fixed_labels_lungs`` ...
    points
        ``truth/fixed_landmarks`` ... -> (n, ndim) world points.
    """

    images: Mapping[str, xr.DataArray]
    points: Mapping[str, Floats]


def is_labels(entry: str) -> bool:
    """Whether an entry is a mask, a label map or a region to ignore."""
    return _LABELS.match(entry) is not None


def side(entry: str) -> str:
    """Return the image that an entry belongs to: ``truth/fixed_labels`` -> ``fixed``."""
    return entry.removeprefix("truth/").split("_")[0]


def read_contents(entries: Mapping[str, Path], dataset: Dataset) -> Contents:
    """Read a prepared case's files, in whatever format, and check them.

    Raises
    ------
    InputError
        When a file is damaged, or the case is not what the descriptor says; everything found is said at once.
    """
    images: dict[str, xr.DataArray] = {}
    points: dict[str, Floats] = {}
    for entry, path in entries.items():
        if "_landmarks" in entry:
            points[entry] = read_landmarks(path, ndim=dataset.dimension)
        else:
            unit = dataset.unit if dataset.dimension == 2 else None
            images[entry] = read_image(path, labels=is_labels(entry), unit=unit)
    contents = Contents(images, points)
    if found := list(problems(contents, dataset)):
        place, path = next(iter(entries.items()))
        folder = path.parents[place.count("/")]
        msg = "\n".join(f"{folder}: {problem}" for problem in found)
        raise InputError(msg)
    return contents


def aligned_contents(contents: Contents, transform: Affine) -> Contents:
    """Return a case with its moving side where an alignment puts it, every voxel kept.

    Parameters
    ----------
    contents
        As they were delivered.
    transform
        T, rigid: fixed world points -> moving world points. What the moving side showed at T(x) comes to sit at x.
    """
    back = transform.inverse()
    images = {
        entry: regridded(image, aligned(grid_of(image), transform), unit=unit_of(image))
        if side(entry) == "moving"
        else image
        for entry, image in contents.images.items()
    }
    points = {
        entry: back.points(values) if side(entry) == "moving" else values for entry, values in contents.points.items()
    }
    return Contents(images, points)


def problems(contents: Contents, dataset: Dataset, *, voxels: bool = True) -> Iterator[str]:
    """Yield what of a case is not as the descriptor says, the values of its label maps only where ``voxels``."""
    yield from _images_problems(contents, dataset, voxels=voxels)
    if voxels:
        yield from _masks_problems(contents)
    yield from _points_problems(contents)
    yield from _sets_problems(contents, dataset)
    if dataset.task != "registration":
        yield from _truth_problems(contents, dataset)


def _images_problems(contents: Contents, dataset: Dataset, *, voxels: bool) -> Iterator[str]:
    for entry, image in contents.images.items():
        grid = grid_of(image)
        if grid.ndim != dataset.dimension:
            yield f"{entry}: must have {dataset.dimension} dimensions as dataset.json says, got shape {grid.shape}"
            continue
        angles = grid.direction_matrix.T @ grid.direction_matrix
        if not np.allclose(angles, np.eye(grid.ndim), rtol=0, atol=_RIGHT_ANGLE):
            yield f"{entry}: its axes are sheared, and distances are measured along axes at right angles; resample it"
        if voxels and is_labels(entry):
            yield from label_problems(entry, np.unique(np.asarray(image.values)), dataset)
        name = _beside(entry, contents, dataset)
        beside = contents.images.get(name)
        if beside is not None and not grid.matches(grid_of(beside)):
            yield f"{entry}: must lie on the grid of {name}, got {grid} and {grid_of(beside)}"


def _masks_problems(contents: Contents) -> Iterator[str]:
    """Yield the masks that show what is scored: handed to a method, they would tell it the answer."""
    for entry in (name for name in contents.images if name.endswith("_mask")):
        mask = np.asarray(contents.images[entry].values) != 0
        for labels, image in contents.images.items():
            same = "_labels" in labels and side(labels) == side(entry) and mask.any()
            if same and np.array_equal(mask, np.asarray(image.values) != 0):
                yield f"{entry}: shows exactly what {labels} does; a label map that is scored is handed to no method"


def _beside(entry: str, contents: Contents, dataset: Dataset) -> str:
    """Return the entry that another one must share its grid with."""
    if dataset.task == "registration":
        return side(entry)
    reference, truth = _REFERENCE[dataset.task]
    return reference if reference in contents.images else truth


def label_problems(entry: str, values: npt.NDArray[np.generic], dataset: Dataset) -> Iterator[str]:
    """Yield what is wrong with the values (each once) that a mask or a label map holds."""
    if belongs := _MAP.match(entry):
        known = {0, *(int(value) for value in dataset.truth.labels)}
        free = belongs[1] is not None and not dataset.truth.labels
        strange = [] if free else sorted(set(values.tolist()) - known)
        if values.size and int(values.max()) > _MOST:
            yield f"{entry}: holds the label {int(values.max())}; labels are counted up to {_MOST}, so renumber it"
        if strange:
            yield f"{entry}: holds the labels {strange[:5]}, which truth.labels of dataset.json does not name"
    elif not set(values.tolist()) <= {0, 1}:
        yield f"{entry}: must hold 0 and 1 alone, got {values[:5].tolist()}"


def _points_problems(contents: Contents) -> Iterator[str]:
    for entry, points in contents.points.items():
        image = contents.images.get(side(entry), contents.images.get(f"{side(entry)}_mask"))
        suspicion = check_frame(points, grid_of(image)) if image is not None else None
        if suspicion:
            yield f"{entry}: {suspicion}"
        other = contents.points.get(_other(entry))
        if other is not None and side(entry) == "fixed" and len(points) != len(other):
            yield f"{entry}: has {len(points)} points and {_other(entry)} has {len(other)}; they must be pairs"


def _sets_problems(contents: Contents, dataset: Dataset) -> Iterator[str]:
    have = {*contents.images, *contents.points}
    for entry in sorted(have):
        if entry.endswith("mask") and entry not in dataset.masks:
            yield f"{entry}: is not one of dataset.json's masks, so no method may be handed it"
    if dataset.task != "registration":
        return
    for entry in sorted(have):
        if re.search(r"_(labels|landmarks)", entry) and _other(entry) not in have:
            yield f"{entry}: has no {_other(entry)} beside it; both sides are needed"
    named = {match[1] for entry in have if (match := re.search(r"_labels_(\w+)$", entry))}
    for name in sorted(named - set(dataset.other_labels)):
        yield f"truth/fixed_labels_{name}: the set {name} is not one of dataset.json's other_labels"
    if ("fixed" in have) != ("moving" in have):
        yield "a case has both images or none; got one"


def _truth_problems(contents: Contents, dataset: Dataset) -> Iterator[str]:
    """Yield why the output of a segmentation or of a synthesis could not be scored; a lazy target is read by block."""
    name = _REFERENCE[dataset.task][1]
    truth = contents.images.get(name)
    if truth is None:
        yield f"{name}: is missing; a {dataset.task} is scored on it"
    elif dataset.task == "synthesis":
        if "c" in truth.dims:
            yield f"{name}: must hold one value a voxel, got {truth.sizes['c']} channels"
        if strange := int(np.asarray(compute((~np.isfinite(truth.data)).sum()))):
            yield f"{name}: must be finite, since errors are averaged over it, got {strange} voxels that are not"


def _other(entry: str) -> str:
    this, that = ("fixed", "moving") if side(entry) == "fixed" else ("moving", "fixed")
    return entry.replace(this, that, 1)
