"""Which level of a case's images is compared: the image itself, or of a large dataset the finest that is small enough.

The level depends on the images alone, so that every method is compared on the same one, whatever grid its field has.
"""

from __future__ import annotations

import math
from pathlib import Path

import xarray as xr

import blocks
from blocks.grid import Grid
from blocks.image import levels_of
from fidopt.corpus import Case
from fidopt.errors import InputError

#: Most voxels of a level that is compared in memory.
LEVEL_VOXELS = 1 << 26


def level_within(path: Path) -> int:
    """Return the finest level of a store within :data:`LEVEL_VOXELS`.

    Raises
    ------
    InputError
        When it has none; the message says what writes the coarser levels.
    """
    levels = levels_of(path)
    for number, level in enumerate(levels):
        if math.prod(level.grid.shape) <= LEVEL_VOXELS:
            return number
    msg = f"{path}: its coarsest level has {math.prod(levels[-1].grid.shape)} voxels, more than the {LEVEL_VOXELS} that"
    raise InputError(f"{msg} are compared; write its coarser levels: fidopt pyramid {path}")


def compared_level(case: Case, path: Path) -> int:
    """Return the level of one of a case's images that is looked at: 0 unless the dataset is large."""
    return level_within(path) if case.dataset.large else 0


def labels_level(case: Case) -> int | None:
    """Return the level at which a large case's label maps are compared, the same for all of them; else None."""
    stores = [store for pair in case.label_sets().values() for store in pair]
    return max(map(level_within, stores)) if case.dataset.large and stores else None


def at_level(path: Path, number: int) -> xr.DataArray:
    """Return an image at a level, or at its coarsest where it has fewer."""
    return blocks.open_image(path, level=min(number, len(levels_of(path)) - 1))


def fixed_grids(case: Case) -> list[Grid]:
    """Return the grids of the fixed image's levels, the finest first (of a mask or label map where there is no image).

    Raises
    ------
    MissingError
        When the case holds no store of the fixed side.
    """
    whole = case.fixed_grid()
    masks = [path for name, path in case.masks().items() if name == "fixed_mask"]
    stores = [case.fixed, *masks, *(fixed for fixed, _ in case.label_sets().values())]
    found = next((path for path in stores if path.is_dir()), None)
    return [whole] if found is None else [whole, *(level.grid for level in levels_of(found)[1:])]
