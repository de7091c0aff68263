"""A grid to and from ITK's and NIfTI's own ways of saying where voxels lie.

With :mod:`blocks.grid` and :mod:`blocks.image`, the only place that turns array order (z, y, x) into world order
(x, y, z) or back.
"""

from __future__ import annotations

import locale
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from fidopt.errors import InputError

#: Shortest relative disagreement between a NIfTI sform's scales and its pixdim that counts as a contradiction.
SCALE_TOLERANCE = 1e-3


def grid_of_geometry(
    size: Sequence[int], spacing: Sequence[float], origin: Sequence[float], direction: Sequence[float], *, ndim: int
) -> Grid:
    """Return the grid of the first ``ndim`` axes of a geometry in world order.

    Parameters
    ----------
    size, spacing, origin, direction
        As ITK has them: x first, the direction row-major; there may be more axes than ``ndim`` (time, components).
    """
    axes = len(size)
    cosines = np.asarray(direction, dtype=np.float64).reshape((axes, axes))[:ndim, :ndim]
    # Adding zero turns the -0.0 that ITK makes of a flipped zero into 0.0.
    return Grid.of(
        tuple(reversed(size[:ndim])),
        spacing=spacing[:ndim],
        origin=[float(v) + 0.0 for v in origin[:ndim]],
        direction=[float(v) + 0.0 for v in cosines.ravel()],
    )


def grid_from_sitk(image: sitk.Image) -> Grid:
    """Return the grid of a SimpleITK image; a fourth axis is left out."""
    ndim = min(3, image.GetDimension())
    return grid_of_geometry(image.GetSize(), image.GetSpacing(), image.GetOrigin(), image.GetDirection(), ndim=ndim)


def apply_grid_to_sitk(image: sitk.Image, grid: Grid) -> None:
    """Give a SimpleITK image of the grid's size the grid's spacing, origin and direction."""
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)


def grid_from_nifti(header: Any, *, ndim: int, name: str) -> Grid:  # noqa: ANN401 - nibabel is untyped
    """Return the grid that ITK reads from a NIfTI header, in millimetres (its ``xyzt_units`` are honoured).

    ITK takes the qform unless there is none or the sform is the scanner's. It is asked itself, with a header of the
    spatial axes alone, so that volumes and vectors have the geometry of a plain image.

    Parameters
    ----------
    header
        nibabel header as it lies in the file (read with ``check=False``: nibabel turns a zero spacing into one).
    ndim
        Number of spatial axes, 2 or 3.
    name
        What an error calls the file.
    """
    _refuse_bad_scales(header, ndim=ndim, name=name)
    plain = header.copy()
    dim = np.ones(8, dtype=np.int64)
    dim[0] = ndim
    dim[1 : ndim + 1] = header["dim"][1 : ndim + 1]
    plain["dim"] = dim
    plain["intent_code"] = 0
    plain["datatype"], plain["bitpix"] = 2, 8  # of no matter to the geometry, and ITK speaks of one it does not know
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "geometry.nii"
        path.write_bytes(plain.binaryblock + b"\0" * 4)
        reader = sitk.ImageFileReader()
        reader.SetFileName(str(path))
        try:
            with quiet():
                reader.ReadImageInformation()
        except RuntimeError as error:
            reason = "its axes are sheared" if "orthonormal" in str(error) else last_line(error)
            msg = f"{name}: the header holds no geometry that ITK accepts: {reason}"
            raise InputError(f"{msg}; resample it onto a right-angled grid") from error
    return grid_of_geometry(reader.GetSize(), reader.GetSpacing(), reader.GetOrigin(), reader.GetDirection(), ndim=ndim)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings off the terminal, and the process's locale as it is: GDCM sets it to C, and text is ASCII then."""
    warns, before = sitk.ProcessObject.GetGlobalWarningDisplay(), locale.setlocale(locale.LC_ALL)
    sitk.ProcessObject.SetGlobalWarningDisplay(False)  # noqa: FBT003 - SimpleITK takes it by position
    try:
        yield
    finally:
        sitk.ProcessObject.SetGlobalWarningDisplay(warns)
        locale.setlocale(locale.LC_ALL, before)


def nifti_header(grid: Grid) -> Any:  # noqa: ANN401 - nibabel is untyped
    """Return the nibabel header in which ITK writes this geometry (qform and sform, both the scanner's)."""
    cosines = grid.direction_matrix
    if not np.allclose(cosines.T @ cosines, np.eye(grid.ndim), atol=1e-4):
        msg = f"NIfTI holds a direction with right angles, got {grid.direction}; write a .mha, or resample it first"
        raise InputError(msg)
    if not all(1e-30 < v < 1e30 for v in grid.spacing):
        msg = f"NIfTI holds a spacing of 32 bits, got {grid.spacing}; write a .mha"
        raise InputError(msg)
    image = sitk.Image([2] * grid.ndim, sitk.sitkUInt8)
    apply_grid_to_sitk(image, grid)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "geometry.nii")
        sitk.WriteImage(image, path)
        return nibabel.load(path).header.copy()


def last_line(error: BaseException) -> str:
    """Return the line of a library's long message that says what is wrong: the first of an error, else the last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "ERROR:" in line and line.partition("ERROR:")[2].strip()), None)
    if said is None:
        return lines[-1] if lines else type(error).__name__
    return re.sub(r"\w+\(0x[0-9a-f]+\): ", "", said.partition("ERROR:")[2].strip())


def _refuse_bad_scales(header: Any, *, ndim: int, name: str) -> None:  # noqa: ANN401 - nibabel is untyped
    pixdim = np.asarray(header["pixdim"][1 : ndim + 1], dtype=np.float64)
    for axis, value in zip("xyz", pixdim, strict=False):
        if not np.isfinite(value) or value <= 0:
            msg = f"{name}: the spacing (pixdim) along {axis} must be positive, got {value:g}; mend the header"
            raise InputError(msg)
    qform, sform = int(header["qform_code"]), int(header["sform_code"])
    if ndim == 3 and sform > 0 and (qform == 0 or sform == 1):
        scales = np.linalg.norm(header.get_sform()[:3, :3], axis=0)
        if not np.allclose(scales, pixdim, rtol=SCALE_TOLERANCE):
            msg = (
                f"{name}: the spacing is {_numbers(pixdim)} in pixdim and {_numbers(scales)} in the sform;"
                " mend the header so that both agree"
            )
            raise InputError(msg)


def _numbers(values: Sequence[float] | np.ndarray[Any, Any]) -> str:
    return "(" + ", ".join(f"{float(v):g}" for v in values) + ")"
