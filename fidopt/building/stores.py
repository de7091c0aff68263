"""A case's images and points written as the corpus keeps them, and read back before anyone says it is done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from blocks.execute import write_image
from blocks.image import grid_of, open_image
from fidopt.building.contents import Contents, is_labels
from fidopt.errors import InputError
from fidopt.images.landmarks import read_landmarks, write_landmarks


def write_contents(contents: Contents, folder: Path) -> None:
    """Write a case's stores and landmark files into a new folder, and compare each with what it was written from.

    Raises
    ------
    InputError
        When a store or a file does not read back as it was.
    """
    (folder / "truth").mkdir(parents=True)
    for entry, image in contents.images.items():
        path = folder / f"{entry}.ome.zarr"
        write_image(path, image, kind="labels" if is_labels(entry) else "image")
        _compare(image, path)
    for entry, points in contents.points.items():
        path = folder / f"{entry}.csv"
        write_landmarks(path, points)
        if not np.array_equal(read_landmarks(path, ndim=points.shape[1]), points):
            msg = f"{path}: the points do not read back as they were written; the disk or the library is at fault"
            raise InputError(msg)


def _compare(image: xr.DataArray, path: Path) -> None:
    """Refuse a store whose voxels, type or geometry are not the image's, to the last digit."""
    stored = open_image(path)
    pairs = {
        "type": (image.dtype, stored.dtype),
        "axes": (image.dims, stored.dims),
        "geometry": (grid_of(image), grid_of(stored)),
    }
    for what, (expected, got) in pairs.items():
        if expected != got:
            msg = f"{path}: the {what} does not read back: expected {expected}, got {got}"
            raise InputError(msg)
    expected_voxels, voxels = np.asarray(image.values), np.asarray(stored.values)
    if not np.array_equal(expected_voxels, voxels, equal_nan=voxels.dtype.kind == "f"):
        different = int(np.count_nonzero(expected_voxels != voxels))
        msg = f"{path}: {different} voxels do not read back as they were written; the disk or the library is at fault"
        raise InputError(msg)
