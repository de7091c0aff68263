"""An image to a file that other tools read, and the proof that it arrived."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute
from blocks.image import grid_of, unit_of
from fidopt.errors import InputError
from fidopt.images import nifti, tiff, volumes
from fidopt.images.readers import NIFTI

#: What of an image's geometry a file keeps.
Keeps = Literal["geometry", "spacing", "nothing"]
#: Endings of the files that are written.
WRITTEN = (*NIFTI, *volumes.WRITTEN_ENDINGS, ".tif", ".tiff")


def write_file(path: str | Path, image: xr.DataArray) -> list[str]:
    """Write an image in the format its name's ending says, and return what the format does not keep.

    Parameters
    ----------
    path
        A name with one of :data:`WRITTEN`.
    image
        Dims ([c,] [z,] y, x), lazy or not.

    Returns
    -------
    list of str
        A sentence for each thing that is lost, such as TIFF's direction.
    """
    name = str(path).lower()
    if name.endswith(NIFTI):
        nifti.write_nifti(path, image, state_unit=True)
    elif name.endswith(volumes.WRITTEN_ENDINGS):
        volumes.write_volume(path, image)
    elif name.endswith((".tif", ".tiff")):
        tiff.write_tiff(path, image)
    else:
        msg = f"{path}: this format is not written; written are .ome.zarr, {', '.join(WRITTEN)}"
        raise InputError(msg)
    return not_kept(path, image)


def not_kept(path: str | Path, image: xr.DataArray) -> list[str]:
    """Return what a format does not keep of an image, a sentence each."""
    grid, unit, name = grid_of(image), unit_of(image), str(path).lower()
    lost: list[str] = []
    stated = {"mm", "um", "m"} if name.endswith(NIFTI) else {"mm"}
    if name.endswith((".tif", ".tiff")):
        if any(grid.origin):
            lost.append(f"TIFF has no place for the origin {grid.origin}")
        if not np.array_equal(grid.direction_matrix, np.eye(grid.ndim)):
            lost.append(f"TIFF has no place for the direction {grid.direction}")
        if image.dtype.str[1:] in {"i8", "u8", "f2"}:
            lost.append(f"a TIFF of {image.dtype} has no place for the spacing {grid.spacing} {unit}")
    elif unit not in stated:
        lost.append(f"the file does not state the unit: its numbers are in {unit}, and readers take them for mm")
    if image.sizes.get("c") == 1 and not name.endswith(NIFTI):
        lost.append("the single channel is written as no channel axis")
    if image.dtype == bool and not name.endswith((".tif", ".tiff")):
        lost.append("true and false are written as 1 and 0 of uint8")
    return lost


def differences(
    written: xr.DataArray, image: xr.DataArray, *, tolerance: float, keeps: Keeps = "geometry", factor: float = 1.0
) -> list[str]:
    """Compare an image that was read back with the one that was written.

    Parameters
    ----------
    written, image
        Dims ([c,] [z,] y, x), lazy or not; compared block by block.
    tolerance
        Relative to the spacing, how far the geometry may be; zero asks for the same numbers.
    keeps
        What of the geometry the format keeps: all of it, the spacing, or nothing.
    factor
        Length of the image's unit in that of the one read back.

    Returns
    -------
    list of str
        What differs, a sentence each; empty when nothing does.
    """
    written, image = _plain(written), _plain(image)
    if written.shape != image.shape:
        return [f"its shape is {written.shape}, expected {image.shape}"]
    ours, theirs = grid_of(image), grid_of(written)
    pairs = [
        ("spacing", np.array(ours.spacing) * factor, theirs.spacing),
        ("origin", np.array(ours.origin) * factor, theirs.origin),
        ("direction", np.array(ours.direction), theirs.direction),
    ]
    found: list[str] = []
    for what, expected, got in pairs[: {"geometry": 3, "spacing": 1, "nothing": 0}[keeps]]:
        atol = tolerance * (1.0 if what == "direction" else min(theirs.spacing))
        if not np.allclose(got, expected, rtol=tolerance, atol=atol):
            found.append(f"its {what} is {got}, expected {tuple(expected.tolist())}")
    if wrong := different_voxels(written, image):
        found.append(f"{wrong} of {image.size} values differ")
    return found


def different_voxels(written: xr.DataArray, image: xr.DataArray) -> int:
    """Count the voxels whose value differs, NaN being equal to NaN; block by block where an image is lazy."""
    total = 0
    for index in _blocks(image):
        pair = (np.asarray(compute(part[index])) for part in (written, image))
        # A line of the first axis at a time: what says which voxels are the same is as large as the voxels.
        total += sum(_different(a, b) for a, b in zip(*pair, strict=True))
    return total


def _different(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> int:
    same = np.asarray(a == b)
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        same |= np.isnan(a) & np.isnan(b)
    return int(same.size - np.count_nonzero(same))


def _plain(image: xr.DataArray) -> xr.DataArray:
    """Return the image without a channel axis of one, which some formats do not tell from none."""
    return image.isel(c=0, drop=True) if image.sizes.get("c") == 1 else image


def _blocks(image: xr.DataArray) -> list[tuple[slice, ...]]:
    lines = []
    for dim, size in image.sizes.items():
        widths = image.chunksizes.get(dim, (size,)) if image.chunksizes else (size,)
        stops = np.cumsum(widths)
        lines.append([slice(int(stop - width), int(stop)) for stop, width in zip(stops, widths, strict=True)])
    return list(product(*lines))
