"""An image from any file that holds one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import imagecodecs
import imageio.v3 as iio
import numpy as np
import xarray as xr

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of, image_of, open_image, unit_of
from blocks.image.construction import STORE_FILES
from blocks.storage import StoreError, is_url
from fidopt.errors import FidoptError, InputError, os_sentence
from fidopt.images import hdf5, nifti, stacks, tiff, volumes
from fidopt.images.calibration import Calibration
from fidopt.images.labels import whole_labels
from fidopt.images.lost import refuse_lost

#: Endings of photographs, read through imageio.
PHOTOGRAPHS = (".png", ".jpg", ".jpeg", ".bmp")
NIFTI = (".nii", ".nii.gz")
#: Endings of every format that is read.
READ = (*NIFTI, *volumes.ENDINGS, *tiff.ENDINGS, *hdf5.ENDINGS, *PHOTOGRAPHS, ".zarr")
#: Which image of a TIFF, and how often halved: ``FILE:1`` or ``FILE:0/2``.
_PART = re.compile(r":(\d+)(?:/(\d+))?$")


def read_image(
    path: str | Path,
    *,
    labels: bool = False,
    unit: str | None = None,
    spacing: Sequence[float] | None = None,
    lazy_bytes: int = tiff.LAZY_BYTES,
) -> xr.DataArray:
    """Read an image: NIfTI, MetaImage, NRRD, TIFF, SVS, HDF5, PNG, JPEG, a stack, a DICOM series or OME-Zarr.

    Parameters
    ----------
    path
        The file, or a store's folder or URL. Of a TIFF or SVS, ``FILE:1`` is its second image and ``FILE:0/2`` the
        first one's level 2; of an HDF5 file, ``FILE:dataset`` is a dataset. A folder of TIFF files, or a pattern such
        as ``planes/*.tif``, is a stack of planes; a folder of DICOM files is a series.
    labels
        It is a label map: floats within 1e-3 of whole numbers become integers, others are refused.
    unit
        Unit of its geometry, where the file does not say or says it wrong: "mm", "um", "m", "px", ... By default the
        file's own; millimetres for NIfTI, MetaImage, NRRD and DICOM, pixels for a photograph or what states no size.
    spacing
        x, y[, z], where the file does not say or says it wrong.
    lazy_bytes
        A TIFF of at most so many bytes is read at once.

    Returns
    -------
    DataArray
        Dims ([c,] [z,] y, x) with its grid and unit (:mod:`blocks.image`); a colour's components, several volumes or
        a vector's components are channels. A store, HDF5, a stack and a large TIFF are lazy.

    Raises
    ------
    InputError
        When the file is missing, damaged, or not one of these.
    """
    name = str(path)
    with refusing(name):
        if is_store(name):
            return _from_store(name, labels=labels, unit=unit, spacing=spacing)
        array, grid, own = _read(name, spacing=spacing, lazy_bytes=lazy_bytes)
        grid = _spaced(grid, spacing, name)
        return _image(array, grid, name=name, labels=labels, unit=unit or own)


def is_store(name: str | Path) -> bool:
    """Tell whether a name is that of a store rather than of a file: by its ending, or by what the folder holds.

    Collections of images name theirs by a number: ``slide.zarr/0``.
    """
    text = str(name).rstrip("/")
    if text.endswith(".zarr"):
        return True
    if is_url(text):
        return ".zarr/" in text
    folder = Path(text.removeprefix("file://"))
    return any((folder / file).is_file() for file in STORE_FILES)


@contextmanager
def refusing(name: str | Path) -> Iterator[None]:
    """Turn what a library says of a file into one sentence that names the file; what has no name is refused."""
    if not str(name).strip():
        msg = f"the name of a file, a folder or a store is expected, got {str(name)!r}"
        raise InputError(msg)
    try:
        yield
    except FidoptError:
        raise
    except StoreError as error:
        # It names the store, which need not be what is read or written here.
        raise InputError(" ".join(str(error).split())) from error
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        text = os_sentence(error) if isinstance(error, OSError) else " ".join(str(error).split())
        text = text or type(error).__name__
        raise InputError(text if str(name) in text else f"{name}: {text}") from error


def _read(name: str, *, spacing: Sequence[float] | None, lazy_bytes: int) -> tuple[Any, Grid, str]:
    """Return voxels, grid and unit of a file."""
    if stacks.is_stack(name):
        return _calibrated(*stacks.read_stack(name), name=name, spacing=spacing)
    if (inside := hdf5.split_name(name)) is not None:
        return _calibrated(*hdf5.read_hdf5(*inside), name=name, spacing=spacing)
    if Path(name).is_dir():
        return (*volumes.read_series(name), "mm")
    part = None if Path(name).exists() else _PART.search(name)
    file = name[: part.start()] if part else name
    ending = next((e for e in sorted(READ, key=len, reverse=True) if file.lower().endswith(e)), None)
    if not Path(file).is_file():
        msg = f"{file}: there is no such file"
        raise InputError(msg)
    if ending in tiff.ENDINGS:
        series, level = (int(part[1]), int(part[2] or 0)) if part else (0, 0)
        read = tiff.read_tiff(file, series=series, level=level, lazy_bytes=lazy_bytes)
        return _calibrated(*read, name=name, spacing=spacing)
    return _read_file(name, ending)


def _read_file(name: str, ending: str | None) -> tuple[Any, Grid, str]:
    """Return voxels, grid and unit of a file that is read whole."""
    if ending in NIFTI:
        return (*_from_nifti(name), "mm")
    if ending in volumes.ENDINGS:
        return (*volumes.read_volume(name), "mm")
    if ending in PHOTOGRAPHS:
        array = _photograph(name)
        return array, Grid.of(array.shape[-2:]), "px"
    msg = f"{name}: this format is not read; read are {', '.join(READ)}"
    raise InputError(msg)


def _from_store(name: str, *, labels: bool, unit: str | None, spacing: Sequence[float] | None) -> xr.DataArray:
    image = open_image(name)
    refuse_lost(name)
    if unit is None and spacing is None and not (labels and image.dtype.kind == "f"):
        return image.assign_attrs(kind="labels") if labels else image
    grid = _spaced(grid_of(image), spacing, name)
    labels = labels or image.attrs["kind"] == "labels"
    return _image(image.data, grid, name=name, labels=labels, unit=unit or unit_of(image))


def _image(array: Any, grid: Grid, *, name: str, labels: bool, unit: str | None) -> xr.DataArray:  # noqa: ANN401
    if not labels:
        return image_of(array, grid, unit=unit)
    if array.ndim > grid.ndim:
        msg = f"{name}: a label map holds one value a voxel, got {array.shape[0]} channels; write one of them"
        raise InputError(msg)
    if array.dtype.kind == "f":
        array = whole_labels(np.asarray(compute(array)), name=name)
    return image_of(array, grid, unit=unit, kind="labels")


def _from_nifti(name: str) -> tuple[Any, Grid]:
    """Return voxels and grid, the dimension as ITK counts it: a vector's trailing axes of one voxel do not count."""
    file = nifti.open_nifti(name)
    if file.is_vector and file.intent == nifti.INTENT_DISPLACEMENT:
        msg = f"{name}: its intent is 1006 and 1007 (vector) is expected: readers negate x and y of intent 1006"
        raise InputError(f"{msg}; write it with intent 1007 and components along LPS")
    sizes = (*file.shape, 1, 1, 1)
    ndim = 2 if len(file.shape) == 2 or (file.is_vector and sizes[2] == 1) else 3
    count, components = sizes[3], sizes[4]
    if count > 1 and components > 1:
        msg = f"{name}: an image is (x, y, z) with volumes or with components, got shape {file.shape}"
        raise InputError(msg)
    values = file.values()
    if values.dtype.names:
        return _colours(values, name), file.grid(ndim)
    channels = () if count * components == 1 and not file.is_vector else (count * components,)
    return values.reshape((*sizes[:ndim], *channels), order="F").T, file.grid(ndim)


def _colours(values: Any, name: str) -> Any:  # noqa: ANN401 - a structured array
    """Return NIfTI's RGB or RGBA voxels with the colour as the first axis."""
    if values.ndim > 3 and any(n > 1 for n in values.shape[3:]):
        msg = f"{name}: one volume of colours is expected, got shape {values.shape}"
        raise InputError(msg)
    flat = values.reshape(values.shape[:3], order="F")
    return np.stack([flat[colour].T for colour in values.dtype.names])


def _calibrated(
    array: Any,  # noqa: ANN401 - a NumPy array or a lazy one
    calibration: Calibration,
    *,
    name: str,
    spacing: Sequence[float] | None,
) -> tuple[Any, Grid, str]:
    """Return voxels, grid and unit of a file that says at most how large its voxels are."""
    ndim = array.ndim - calibration.channels
    stated = calibration.spacing
    if stated is not None and not np.isfinite(stated).all() and spacing is None:
        msg = f"{name}: the file gives a voxel's size along some axes only {stated}; give --spacing and --unit"
        raise InputError(msg)
    known = stated if spacing is None else None
    return array, Grid.of(array.shape[-ndim:], spacing=known), calibration.unit or "px"


def _photograph(name: str) -> Any:  # noqa: ANN401 - an array of any type
    try:
        return _pixels(Path(name))
    except (OSError, ValueError, RuntimeError, SyntaxError) as error:
        known = isinstance(error.__cause__, OSError | SyntaxError)
        reason = " ".join(str(error.__cause__ if known else error).split()).partition(": '")[0]
        if "can not handle" in reason:
            reason = "it is none of them" if Path(name).stat().st_size else "it is empty"
        msg = f"{name}: a PNG, JPEG or BMP is expected and it cannot be read ({reason}); fetch or write it again"
        raise InputError(msg) from error


def _pixels(path: Path) -> Any:  # noqa: ANN401 - an array of any type
    content = path.read_bytes()
    if content[:4] == b"\x89PNG" and content[24:25] == b"\x10" and content[25:26] != b"\x00":
        # Pillow would halve a colour's 16 bits.
        array = np.asarray(imagecodecs.png_decode(content))
    else:
        array = np.asarray(iio.imread(content, index=0, plugin="pillow"))
    return array if array.ndim == 2 else np.moveaxis(array, -1, 0)


def _spaced(grid: Grid, spacing: Sequence[float] | None, name: str) -> Grid:
    """Return the grid with another spacing, where one is given."""
    if spacing is None:
        return grid
    if len(spacing) != grid.ndim:
        msg = f"{name}: a spacing of {grid.ndim} numbers (x first) is expected, got {len(spacing)}"
        raise InputError(msg)
    return Grid.of(grid.shape, spacing=spacing, origin=grid.origin, direction=grid.direction)
