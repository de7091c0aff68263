"""A stored alignment: read or refused, and applied in the headers alone.

T takes a fixed world point to the moving world. The moving image keeps its voxels; its origin and direction are moved
by the inverse of T, so that what it showed at T(x) sits at x, and its landmarks go the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from blocks.grid import Grid
from blocks.transforms import Affine
from fidopt.alignment.record import AlignmentRecord, record_beside
from fidopt.corpus import alignment_path
from fidopt.descriptors.alignment import Mode
from fidopt.descriptors.base import load
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, MissingError
from fidopt.images.digest import digest
from fidopt.images.transforms import read_transform
from fidopt.resources import Roots

#: The modes whose transform is a translation.
TRANSLATIONS: frozenset[Mode] = frozenset({"image-centres", "elastix-translation", "elastix-translation-centred"})
#: How far from a rotation a matrix may be, a number of it.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Stored:
    """The alignment of one case.

    Parameters
    ----------
    transform
        T, rigid: fixed world points -> moving world points.
    path
        The ITK transform file it was read from.
    digest
        Of that file.
    how
        The mode it was made by, or ``legacy``.
    """

    transform: Affine
    path: Path
    digest: str
    how: Mode | Literal["legacy"]


def stored_alignment(dataset: Dataset, case: str, roots: Roots) -> Stored | None:
    """Return the transform that aligns a case's moving image, or None where the pair is taken as delivered.

    Raises
    ------
    MissingError
        When the transform was not stored; the message says which command computes it.
    InputError
        When it is no rotation and translation, not what the dataset's mode says, or a legacy affine one.
    """
    how = dataset.alignment
    path = alignment_path(dataset, case, roots)
    anew = f"fidopt align {dataset.name} {case}"
    if how.mode == "as-delivered" and how.legacy is None:
        return None
    if how.mode == "as-delivered" and how.legacy is not None:
        said = f"{dataset.name}: its alignment is a legacy one ({how.legacy.transform}, {how.legacy.computed_from})"
        if how.legacy.transform == "affine":
            msg = f"{said}, and a header holds no affine one; compute another: fidopt align {dataset.name} --suggest"
            raise InputError(msg)
        if not path.is_file():
            msg = f"{said}, and {path} is missing; put it there, or compute another: {anew} --mode elastix-rigid"
            raise MissingError(msg)
        return Stored(read_alignment(path), path, digest(path), "legacy")
    if not path.is_file():
        msg = f"{path} is missing: {dataset.name} is aligned ({how.mode}) by a stored transform; compute it: {anew}"
        raise MissingError(msg)
    transform = read_alignment(path)
    _refuse_other_mode(path, transform, how.mode, anew=anew)
    return Stored(transform, path, digest(path), how.mode)


def read_alignment(path: Path) -> Affine:
    """Read a transform that a header can hold.

    Raises
    ------
    InputError
        When the file is no transform, or one with a scale, a shear, a reflection or a deformation.
    """
    transform = read_transform(path)
    if not isinstance(transform, Affine) or not transform.is_rigid(_TOLERANCE):
        msg = f"{path}: an alignment is a rotation and a translation and no more; every other motion is left to methods"
        raise InputError(msg)
    return transform


def _refuse_other_mode(path: Path, transform: Affine, mode: Mode, *, anew: str) -> None:
    """Refuse a transform of another mode than the dataset's: what is built must be what its descriptor says."""
    beside = record_beside(path)
    made = load(AlignmentRecord, beside) if beside.is_file() else None
    if made is not None and made.mode != mode:
        msg = f"{path}: was made as {made.mode}, and dataset.json says {mode}; compute it again ({anew} --overwrite)"
        raise InputError(f"{msg} or name {made.mode} there")
    if made is not None and not _same(transform, made):
        msg = f"{path}: is not the transform that {beside.name} beside it tells of; compute it again"
        raise InputError(f"{msg} ({anew} --overwrite), or take {beside.name} away if it was changed on purpose")
    if mode in TRANSLATIONS and np.abs(transform.rows - np.eye(transform.ndim)).max() > 0:
        msg = f"{path}: {mode} is a translation, and this turns the image; name the mode it was made by in dataset.json"
        raise InputError(msg)


def _same(transform: Affine, made: AlignmentRecord) -> bool:
    theirs, ours = (*made.matrix, *made.offset), (*transform.matrix, *transform.offset)
    return len(theirs) == len(ours) and np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def aligned(grid: Grid, transform: Affine) -> Grid:
    """Return where a moving grid lies once what it showed at T(x) sits at x: its origin and direction moved.

    Parameters
    ----------
    grid
        The moving image's, as it was delivered.
    transform
        T, rigid: fixed world points -> moving world points.
    """
    back = transform.inverse()
    origin = back.points(np.array([grid.origin]))[0]
    direction = [float(v) for v in (back.rows @ grid.direction_matrix).ravel()]
    return Grid.of(grid.shape, spacing=grid.spacing, origin=[float(v) for v in origin], direction=direction)
