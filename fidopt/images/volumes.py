"""MetaImage, NRRD and DICOM series, through SimpleITK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import xarray as xr

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of
from fidopt.errors import FidoptError, InputError
from fidopt.images.atomic import written_whole
from fidopt.images.dicom import refuse_incomplete
from fidopt.images.geometry import apply_grid_to_sitk, grid_from_sitk, last_line, quiet
from fidopt.images.metaimage import check_metaimage
from fidopt.images.nrrd import check_nrrd

#: Endings of the files this module reads, and of those it writes: a header and its voxels in one file.
ENDINGS = (".mha", ".mhd", ".nrrd", ".nhdr")
WRITTEN_ENDINGS = (".mha", ".nrrd")


def read_volume(path: str | Path) -> tuple[npt.NDArray[Any], Grid]:
    """Read a MetaImage or NRRD file.

    Returns
    -------
    tuple of ndarray and Grid
        Voxels ([c,] [z,] y, x), and where they are. The volumes of a four-dimensional file are channels, unless there
        is one.

    Raises
    ------
    InputError
        When SimpleITK refuses the file, or its voxels are complex.
    """
    where = Path(path)
    if not where.is_file():
        msg = f"{where}: there is no such file"
        raise InputError(msg)
    if where.suffix.lower() in {".mha", ".mhd"}:
        check_metaimage(where)
    else:
        check_nrrd(where)
    try:
        image = sitk.ReadImage(str(where))
    except RuntimeError as error:
        msg = f"{where}: the file cannot be read ({last_line(error)}); fetch or write it again"
        raise InputError(msg) from error
    if "complex" in image.GetPixelIDTypeAsString():
        msg = f"{where}: real voxels are expected, got {image.GetPixelIDTypeAsString()}"
        raise InputError(msg)
    return _channels_first(image, where), grid_from_sitk(image)


def read_series(folder: str | Path) -> tuple[npt.NDArray[Any], Grid]:
    """Read the one DICOM series of a folder, whole: voxels ([c,] z, y, x) and where they are, in millimetres.

    Raises
    ------
    InputError
        When the folder holds no series, or several, or one of which a slice is missing or damaged.
    """
    where = Path(folder)
    reader = sitk.ImageSeriesReader()
    with quiet():
        found = reader.GetGDCMSeriesIDs(str(where))
    if len(found) != 1:
        said = f"it is a folder of {len(found)} DICOM series" if found else "it is a folder, not an image"
        msg = f"{where}: {said}; a folder of one DICOM series, or of the TIFF planes of a stack, is expected"
        raise InputError(msg)
    try:
        with quiet():
            names = reader.GetGDCMSeriesFileNames(str(where), found[0])
            refuse_incomplete(where, names)
            reader.SetFileNames(names)
            image = reader.Execute()
    except RuntimeError as error:
        msg = f"{where}: the DICOM series cannot be read ({last_line(error)}); fetch it again"
        raise InputError(msg) from error
    return _channels_first(image, where), grid_from_sitk(image)


def write_volume(path: str | Path, image: xr.DataArray) -> None:
    """Write an image as MetaImage or NRRD, compressed, held whole; bool as uint8, float16 as float32.

    Parameters
    ----------
    path
        A name with one of :data:`WRITTEN_ENDINGS`.
    image
        Dims ([c,] [z,] y, x), lazy or not; channels become the components of a vector image.
    """
    array = np.asarray(compute(image))
    array = array.astype({"b1": "u1", "f2": "f4"}.get(array.dtype.str[1:], array.dtype), copy=False)
    vector = "c" in image.dims
    written = sitk.GetImageFromArray(np.moveaxis(array, 0, -1) if vector else array, isVector=vector)
    apply_grid_to_sitk(written, grid_of(image))
    with written_whole(path) as part:
        try:
            sitk.WriteImage(written, str(part), useCompression=True)
        except RuntimeError as error:
            reason = last_line(error).replace(str(part), str(path))
            msg = f"{path}: the file cannot be written ({reason}); check its folder and the room on the disk"
            raise FidoptError(msg) from error


def _channels_first(image: sitk.Image, path: Path) -> npt.NDArray[Any]:
    array = np.asarray(sitk.GetArrayFromImage(image))
    vector = image.GetNumberOfComponentsPerPixel() > 1
    if vector:
        array = np.moveaxis(array, -1, 0)
    if image.GetDimension() <= 3:
        return array
    if image.GetDimension() > 4 or (vector and image.GetSize()[3] > 1):
        msg = f"{path}: 2 or 3 spatial axes and one axis of channels are expected, got {image.GetSize()}"
        raise InputError(msg)
    if vector:
        return array[:, 0]
    return array[0] if array.shape[0] == 1 else array
