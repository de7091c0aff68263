"""Whether the files of a DICOM series are all there: a slice that cannot be read is left out without a word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from fidopt.errors import InputError

#: What stands after the first 128 bytes of a DICOM file.
_MAGIC = b"DICM"
#: How far a step between slices may be from the others, relative to it.
_TOLERANCE = 0.02


def refuse_incomplete(folder: Path, names: Sequence[str]) -> None:
    """Refuse a series when the folder has DICOM files that are none of it, or its slices are not evenly spaced.

    Parameters
    ----------
    folder
        Where they lie.
    names
        The files of the series, in the order of its slices.

    Raises
    ------
    InputError
        With the first file, or the place, that is wrong.
    """
    known = {Path(name).name for name in names}
    for path in sorted(folder.iterdir()):
        if path.name not in known and path.is_file() and _is_dicom(path):
            msg = f"{path}: this DICOM file lies beside a series and cannot be read as a slice of it"
            raise InputError(f"{msg}; fetch it again where it is one, else take it out of the folder")
    places = [_place(name) for name in names]
    if len(places) > 2 and all(place is not None for place in places):
        _refuse_gaps(folder, names, np.array(places, dtype=np.float64))


def _is_dicom(path: Path) -> bool:
    if path.suffix.lower() in {".dcm", ".ima"}:
        return True
    if path.name.upper() == "DICOMDIR":
        return False
    with path.open("rb") as stream:
        stream.seek(128)
        return stream.read(4) == _MAGIC


def _place(name: str) -> float | None:
    """Return how far a slice lies along its normal; None where its header gives it no place."""
    reader = sitk.ImageFileReader()
    reader.SetFileName(name)
    try:
        reader.ReadImageInformation()
    except RuntimeError as error:
        msg = f"{name}: this slice of a DICOM series cannot be read; it was cut short or is damaged, fetch it again"
        raise InputError(msg) from error
    if not reader.HasMetaDataKey("0020|0032") or reader.GetDimension() < 3:
        return None
    normal = np.array(reader.GetDirection()).reshape(reader.GetDimension(), -1)[:3, 2]
    return float(normal @ np.array(reader.GetOrigin()[:3]))


def _refuse_gaps(folder: Path, names: Sequence[str], places: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    steps = np.abs(np.diff(places))
    usual = float(np.median(steps))
    odd = np.flatnonzero(np.abs(steps - usual) > _TOLERANCE * usual)
    if odd.size:
        first, last = (Path(names[int(odd[0]) + k]).name for k in (0, 1))
        msg = f"{folder}: the slices of the series lie {usual:.6g} mm apart, but {first} and {last} {steps[odd[0]]:.6g}"
        raise InputError(f"{msg} mm: a slice is missing or is there twice; fetch the series again")
