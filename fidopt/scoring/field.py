"""The field that a method returned for a case: found, read, held against the fixed grid, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.errors import FieldError, InputError
from fidopt.images.fields import read_field

#: Endings that a field may have.
ENDINGS = (".nii.gz", ".nii", ".mha", ".mhd", ".nrrd", ".nhdr", ".ome.zarr")
#: Farthest that two geometries may be apart and count as one: NIfTI keeps its header in float32.
TOLERANCE = 1e-6


def find_field(folder: Path, case: Case) -> Path | None:
    """Return where a case's field is: ``<folder>/<case>/DVF.*``, or Learn2Reg's ``<folder>/disp_FFFF_MMMM.*``.

    Raises
    ------
    FieldError
        When there are several; the message names them.
    """
    numbers = case.dataset.cases[case.name].learn2reg
    stems = [folder / case.name / "DVF", *([folder / f"disp_{numbers}"] if numbers else [])]
    found = [path for stem in stems for ending in ENDINGS if (path := stem.with_name(stem.name + ending)).exists()]
    if len(found) > 1:
        msg = f"{case.dataset.name}/{case.name} has several fields ({', '.join(map(str, found))}); keep one"
        raise FieldError(msg)
    return found[0] if found else None


def read_scored_field(path: Path, case: Case, *, voxels: bool = False) -> DisplacementField:
    """Read a field and hold it against the case's fixed grid.

    Parameters
    ----------
    path
        A file or store, or the folder that a method wrote ``DVF.*`` in.
    case
        Gives the fixed grid.
    voxels
        The components are voxels along the index axes, as Learn2Reg has them.

    Returns
    -------
    DisplacementField
        World displacements (ndim, [z,] y, x) of the file's type, on exactly the fixed grid; every value finite.

    Raises
    ------
    FieldError
        When there is none, it lies on another grid, or it is not a field of finite numbers.
    """
    where = _in_folder(path) if path.is_dir() and path.suffix != ".zarr" else path
    grid = case.fixed_grid()
    try:
        field = read_field(where, voxels=voxels, fixed=grid)
    except FieldError:
        raise
    except InputError as error:
        raise FieldError(str(error)) from error
    kind = np.dtype(field.vectors.dtype)
    if kind.kind != "f":
        msg = f"{where}: the field holds {kind}; write its displacements as float32"
        raise FieldError(msg)
    if not field.grid.matches(grid, tolerance=TOLERANCE):
        msg = f"{where}: the field lies on another grid than the fixed image; write it on the fixed image's own"
        msg = f"{msg}: the field has {_said(field.grid)}; the fixed image has {_said(grid)}"
        raise FieldError(msg)
    return DisplacementField(grid, field.vectors)


def zero_field(grid: Grid) -> DisplacementField:
    """Return the field that moves nothing: what an unregistered pair is scored through."""
    return DisplacementField(grid, np.broadcast_to(np.float32(0), (grid.ndim, *grid.shape)))


def _in_folder(folder: Path) -> Path:
    found = [folder / f"DVF{ending}" for ending in ENDINGS if (folder / f"DVF{ending}").exists()]
    if len(found) != 1:
        there = ", ".join(path.name for path in found) or "none"
        msg = f"{folder}: one field named DVF.nii.gz or DVF.ome.zarr is expected, there is {there}"
        raise FieldError(msg)
    return found[0]


def _said(grid: Grid) -> str:
    size = " x ".join(str(n) for n in reversed(grid.shape))
    numbers = {"spacing": grid.spacing, "origin": grid.origin, "direction": grid.direction}
    said = ", ".join(f"{name} ({', '.join(f'{v:.9g}' for v in values)})" for name, values in numbers.items())
    return f"{size} voxels (x, y, z), {said}"
