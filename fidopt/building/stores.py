"""A case's images and points written as the corpus keeps them, and read back before anyone says it is done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import write_image
from blocks.image import grid_of, open_image
from fidopt.building.contents import Contents, is_labels
from fidopt.errors import InputError
from fidopt.images.landmarks import read_landmarks, write_landmarks
from fidopt.images.writers import different_voxels


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
        refuse_different(image, path)
    for entry, points in contents.points.items():
        write_points(folder / f"{entry}.csv", points)


def write_points(path: Path, points: npt.NDArray[np.float64]) -> None:
    """Write a landmark file and read it back.

    Raises
    ------
    InputError
        When the points do not read back as they were written.
    """
    write_landmarks(path, points)
    if not np.array_equal(read_landmarks(path, ndim=points.shape[1]), points):
        msg = f"{path}: the points do not read back as they were written; the disk or the library is at fault"
        raise InputError(msg)


def refuse_different(image: xr.DataArray, path: Path) -> None:
    """Refuse a store whose voxels, type or geometry are not the image's, to the last digit; block by block."""
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
    if different := different_voxels(stored, image):
        msg = f"{path}: {different} voxels do not read back as they were written; the disk or the library is at fault"
        raise InputError(msg)
