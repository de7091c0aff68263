"""How densely a case's truth covers what is registered: its landmark pairs, and how much of the body labels span."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.grid import Grid
from blocks.image import grid_of
from fidopt.alignment.averaging import coarse
from fidopt.alignment.bodies import SIDE, Body, body_of
from fidopt.corpus import Case, Pair
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError
from fidopt.images.landmarks import read_landmarks


@dataclass(frozen=True)
class Density:
    """What one case is scored on.

    Parameters
    ----------
    case
        Its name.
    pairs
        Landmark pairs of the first set; None where it has none, or none that is ranked.
    covered
        Share of the fixed image's body, from 0 to 1, inside the box around the labels that are scored, along the
        image's axes; of the whole image where it shows no body or is absent. None where there are no ranked labels.
    structures
        How many labels that is.
    """

    case: str
    pairs: int | None
    covered: float | None
    structures: int | None


def density(case: Case) -> Density:
    """Return how densely a built registration case's truth covers it; see :class:`Density`."""
    dataset = case.dataset
    landmarks = case.landmark_sets().get("") if "tre" not in dataset.unranked else None
    pairs = len(read_landmarks(landmarks[0], ndim=dataset.dimension)) if landmarks else None
    stores = case.label_sets().get("") if "dice" not in dataset.unranked else None
    if stores is None:
        return Density(case.name, pairs, None, None)
    scored = _scored(stores, dataset)
    image = _coarse(stores[0])
    share = _covered(np.isin(np.asarray(image.values), scored), grid_of(image), _body(case)) if len(scored) else 0.0
    return Density(case.name, pairs, share, len(scored))


def _scored(stores: Pair, dataset: Dataset) -> npt.NDArray[np.generic]:
    """Return the labels that are scored: those that every map holds and the descriptor, if any, names."""
    common = np.unique(np.asarray(_coarse(stores[0]).values))
    for path in stores[1:]:
        common = np.intersect1d(common, np.unique(np.asarray(_coarse(path).values)))
    named = [int(value) for value in dataset.truth.labels]
    wanted = common[common != 0]
    return np.asarray(wanted[np.isin(wanted, named)] if named else wanted)


def _coarse(path: Path) -> xr.DataArray:
    """Return a store at the level that bodies are shaped on."""
    return coarse(path, side=SIDE)


def _body(case: Case) -> Body | None:
    """Return the fixed image's body, None where the image is absent or shows none."""
    if not case.fixed.is_dir():
        return None
    try:
        return body_of(_coarse(case.fixed), modality=case.dataset.modalities["fixed"])
    except InputError:
        return None


def _covered(labelled: npt.NDArray[np.bool_], grid: Grid, body: Body | None) -> float:
    """Return the share of a body, or of the whole grid, inside the box around labelled voxels."""
    where = np.argwhere(labelled)
    low, high = where.min(axis=0) - 0.5, where.max(axis=0) + 0.5
    if body is None:
        return float(np.prod(high - low) / np.prod(grid.shape))
    # The body's voxels are the image's, averaged: the same axes, so that a box stays a box.
    corners = np.sort(body.grid.index(grid.world(np.stack([low, high]))), axis=0)
    index = np.argwhere(body.mask)
    inside = np.all((index >= corners[0] - 1e-6) & (index <= corners[1] + 1e-6), axis=1)
    return float(inside.mean())
