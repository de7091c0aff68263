"""Fields that come as arrays of voxels without a geometry of their own: Learn2Reg's, ConvexAdam's and DIPY's."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from fidopt.errors import FieldError, InputError
from fidopt.images import nifti
from fidopt.images.conventions.table import Convention, Halves

#: Endings of arrays that NumPy writes.
NUMPY = (".npz", ".npy")
#: Which of the two fields of DIPY's mapping takes fixed points to moving ones: what ``get_forward_field`` returns.
_PULL = 1
#: The axes of a mapping: x, y, z, components, and the two directions.
_MAPPING = 5


def read_array(name: str, meant: Convention, *, fixed: Grid | None) -> tuple[npt.NDArray[Any], Grid]:
    """Return the numbers (ndim, [z,] y, x) of an array's voxels, and the grid they lie on.

    Parameters
    ----------
    name
        NIfTI, .npz or .npy.
    meant
        A convention whose layout is ``array`` or ``mapping``.
    fixed
        The fixed image's grid: where the voxels lie. Without it a NIfTI file's own geometry counts.

    Raises
    ------
    FieldError
        When the array's shape is not a field's, or it has not the fixed image's voxels.
    InputError
        When the file is damaged, or holds objects instead of numbers.
    """
    if name.endswith(NUMPY):
        if fixed is None:
            msg = f"{name}: an array says nothing of where its voxels lie; it is read beside a fixed image alone"
            raise InputError(msg)
        return _whole(_of_numpy(name, meant, fixed), fixed, meant, name=name), fixed
    numbers, file = _of_nifti(name, meant)
    if fixed is not None:
        return _whole(numbers, fixed, meant, name=name), fixed
    if meant.layout == "mapping":
        msg = f"{name}: the header of a mapping of DIPY's holds no image's geometry; it is read beside a fixed image"
        raise InputError(f"{msg} alone")
    return numbers, file.grid(len(numbers))


def refuse_negated(file: nifti.NiftiFile) -> str:
    """Return a file's shape and intent in words, for an error; refuse the intent that readers disagree about."""
    said = f"{file.name}: its shape is {file.shape} with intent {file.intent}"
    if file.intent == nifti.INTENT_DISPLACEMENT:
        msg = f"{said}, but intent 1007 (vector) is expected: readers negate x and y of intent 1006; write it as 1007"
        raise FieldError(f"{msg} with components along LPS")
    return said


def vectors_of(file: nifti.NiftiFile, wanted: str) -> npt.NDArray[Any]:
    """Return the numbers (ndim, [z,] y, x) of a file whose last axis is the components.

    Parameters
    ----------
    wanted
        What is expected, for the error.

    Raises
    ------
    FieldError
        When the shape is another.
    """
    spatial, components = file.shape[:-1], file.shape[-1]
    if components not in (2, 3) or len(spatial) < components or any(n != 1 for n in spatial[components:]):
        msg = f"{file.name}: its shape is {file.shape} with intent {file.intent}; {wanted}, Learn2Reg's (x, y, z, 3)"
        raise FieldError(msg)
    return file.values().reshape((*spatial[:components], components), order="F").T


def xyz(shape: tuple[int, ...]) -> str:
    """Return an array's shape or index as a person has it: x first."""
    return "(" + ", ".join(str(n) for n in reversed(shape)) + ")"


def _of_nifti(name: str, meant: Convention) -> tuple[npt.NDArray[Any], nifti.NiftiFile]:
    if not name.endswith((".nii", ".nii.gz")):
        msg = f"{name}: {meant.tool} writes {meant.writes}"
        raise InputError(msg)
    file = nifti.open_nifti(name)
    said = refuse_negated(file)
    if file.is_vector:
        msg = f"{said}, which means world vectors, not {meant.tool}'s arrays; leave --voxels out, and any convention"
        raise FieldError(msg)
    _refuse_whole_numbers(file.values().dtype, name)
    if meant.layout == "mapping" and len(file.shape) == _MAPPING and file.shape[-2:] == (3, 2):
        return file.values()[..., _PULL].T, file
    return vectors_of(file, f"{meant.tool} writes {meant.writes}"), file


def _of_numpy(name: str, meant: Convention, fixed: Grid) -> npt.NDArray[Any]:
    """Return an array's numbers (ndim, [z,] y, x); in the file its axes are x, y[, z], the components first or last."""
    array = _load(name)
    _refuse_whole_numbers(array.dtype, name)
    size, ndim = fixed.shape[::-1], fixed.ndim
    if meant.layout == "mapping" and array.shape[-2:] == (ndim, 2):
        array = array[..., _PULL]
    first = array.shape[:1] == (ndim,) and _fits(array.shape[1:], size)
    last = array.shape[-1:] == (ndim,) and _fits(array.shape[:-1], size)
    if first == last:
        axes, why = ", ".join("xyz"[:ndim]), "both would fit" if first else "neither fits"
        msg = f"{name}: an array ({ndim}, {axes}) or ({axes}, {ndim}) of the fixed image's {xyz(fixed.shape)} voxels,"
        raise FieldError(f"{msg} or of half as many an axis, is expected, got {array.shape}: {why}")
    moved = np.moveaxis(array, -1, 0) if last else array
    kind = np.float64 if array.dtype == np.float64 else np.float32
    return np.asarray(moved.transpose(0, *range(ndim, 0, -1)), dtype=kind)


def _refuse_whole_numbers(kind: np.dtype[Any], name: str) -> None:
    """Refuse an array whose displacements were rounded or cut to its type."""
    if kind.kind != "f":
        msg = f"{name}: the array holds {kind}; write its displacements as float32"
        raise FieldError(msg)


def _load(name: str) -> npt.NDArray[Any]:
    if not Path(name).is_file():
        msg = f"{name}: there is no such file"
        raise InputError(msg)
    try:
        # Pickled objects run code when they are loaded.
        with Path(name).open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            if len(loaded.files) == 1:
                return np.asarray(loaded[loaded.files[0]])
            held = ", ".join(loaded.files) or "nothing"
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        msg = f"{name}: an array of NumPy's is expected, which cannot be read ({' '.join(str(error).split())}): it was"
        raise InputError(f"{msg} cut short, is damaged or holds objects; fetch or write it again") from error
    msg = f"{name}: one array is expected, there is {held}; keep the field alone"
    raise InputError(msg)


def _fits(shape: tuple[int, ...], size: tuple[int, ...]) -> bool:
    """Whether an array has an image's voxels, or half as many along every axis."""
    return shape == size or _is_half(shape, size)


def _is_half(shape: tuple[int, ...], size: tuple[int, ...]) -> bool:
    return len(shape) == len(size) and all(few in {n // 2, -(-n // 2)} for few, n in zip(shape, size, strict=True))


def _whole(numbers: npt.NDArray[Any], fixed: Grid, meant: Convention, *, name: str) -> npt.NDArray[Any]:
    """Return numbers (ndim, [z,] y, x) at every voxel of the fixed image; those of half the resolution are spread."""
    got = numbers.shape[1:]
    if got == fixed.shape or len(got) != fixed.ndim:
        return numbers
    if meant.layout != "array" or not _is_half(got, fixed.shape):
        msg = f"{name}: the field has {xyz(got)} voxels, the fixed image {xyz(fixed.shape)} (x, y, z)"
        raise FieldError(msg)
    return np.stack(list(_spread(numbers, fixed.shape, meant.halves, name=name)))


def _spread(
    numbers: npt.NDArray[Any], shape: tuple[int, ...], halves: Halves, *, name: str
) -> Iterator[npt.NDArray[Any]]:
    """Yield each component of half the resolution at every voxel of the whole one."""
    if halves == "middles":
        for component in numbers:
            values = component
            for axis, count in enumerate(shape):
                values = _between(values, axis, (np.arange(count) - 0.5) / 2)
            yield values.astype(numbers.dtype)
        return
    from scipy.ndimage import zoom

    half = numbers.shape[1:]
    if any(2 * few != n for few, n in zip(half, shape, strict=True)):
        msg = f"{name}: the field has {xyz(half)} voxels, twice which is not the fixed image's {xyz(shape)} (x, y, z)"
        raise FieldError(f"{msg}: Learn2Reg's scripts double them")
    for component in numbers:
        # As the organisers' scripts of 2020 and 2021 double a submission: a spline of order 2, ends on ends.
        yield np.asarray(zoom(component.astype(np.float32), 2, order=2), dtype=np.float32)


def _between(values: npt.NDArray[Any], axis: int, at: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return values read linearly at positions along an axis, the first and the last holding beyond them."""
    last = values.shape[axis] - 1
    held = np.clip(at, 0, last)
    low = np.minimum(held.astype(np.intp), max(0, last - 1))
    part = (held - low).reshape([-1 if k == axis else 1 for k in range(values.ndim)])
    below, above = np.take(values, low, axis), np.take(values, np.minimum(low + 1, last), axis)
    return np.asarray(below * (1 - part) + above * part)
