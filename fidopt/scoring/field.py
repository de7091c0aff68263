"""The field that a method returned for a case: found, read, held against the fixed grid, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.errors import FieldError, InputError
from fidopt.images.conventions import CONTRACT, Convention, arrays
from fidopt.images.fields import read_field
from fidopt.scoring.foreign import files_of, read_foreign
from fidopt.scoring.levels import fixed_grids

#: Endings that a field may have.
ENDINGS = (".nii.gz", ".nii", ".mha", ".mhd", ".nrrd", ".nhdr", ".ome.zarr")
#: Farthest that two geometries may be apart and count as one: NIfTI keeps its header in float32.
TOLERANCE = 1e-6


def find_field(folder: Path, case: Case, *, endings: tuple[str, ...] = ENDINGS) -> Path | None:
    """Return where a case's field is: ``<folder>/<case>/DVF.*``, or Learn2Reg's ``<folder>/disp_FFFF_MMMM.*``.

    Parameters
    ----------
    folder, case
        Where is looked, and for whose.
    endings
        What its name may end in.

    Raises
    ------
    FieldError
        When there are several; the message names them.
    """
    numbers = case.dataset.cases[case.name].learn2reg
    stems = [folder / case.name / "DVF", *([folder / f"disp_{numbers}"] if numbers else [])]
    found = [path for stem in stems for ending in endings if (path := stem.with_name(stem.name + ending)).exists()]
    if len(found) > 1:
        msg = f"{case.dataset.name}/{case.name} has several fields ({', '.join(map(str, found))}); keep one"
        raise FieldError(msg)
    return found[0] if found else None


def find_files(folder: Path, case: Case, tool: Convention) -> tuple[Path, ...]:
    """Return the files of a case's field: one under the contract's names, else those under the tool's own.

    Raises
    ------
    FieldError
        When there are several.
    """
    field = find_field(folder, case, endings=ENDINGS if tool.layout == "field" else (*ENDINGS, *arrays.NUMPY))
    if field is not None:
        return (field,)
    return files_of(folder / case.name, tool, case=f"{case.dataset.name}/{case.name}")


def read_scored_field(
    path: Path | Sequence[Path], case: Case, *, convention: Convention = CONTRACT
) -> DisplacementField:
    """Read a field and hold it against the case's fixed grid, or of a large dataset against what it has to cover.

    Parameters
    ----------
    path
        A file or store, or the folder that a method wrote ``DVF.*`` in; by another convention several transforms too,
        the first applied to the fixed point first.
    case
        Gives the fixed grid.
    convention
        Which tool's files they are, and what they mean.

    Returns
    -------
    DisplacementField
        World displacements (ndim, [z,] y, x) of the file's type, every value finite: on exactly the fixed grid; of a
        large dataset on exactly one of the fixed image's levels, or on a grid of its own that covers the image.

    Raises
    ------
    FieldError
        When there is none, it lies on another grid, or it is not a field of finite numbers.
    """
    paths = [_in_folder(path)] if isinstance(path, Path) else list(path)
    where, grid = paths[0], case.fixed_grid()
    try:
        if convention is CONTRACT:
            field = read_field(where)
        else:
            field = read_foreign(paths, convention, grid, large=case.dataset.large)
    except FieldError:
        raise
    except InputError as error:
        raise FieldError(str(error)) from error
    kind = np.dtype(field.vectors.dtype)
    if kind.kind != "f":
        msg = f"{where}: the field holds {kind}; write its displacements as float32"
        raise FieldError(msg)
    grids = fixed_grids(case) if case.dataset.large else [grid]
    # A header in float32 lies beside the grid it means.
    meant = next((level for level in grids if field.grid.matches(level, tolerance=TOLERANCE)), None)
    if meant is not None:
        return DisplacementField(meant, field.vectors)
    if not case.dataset.large:
        msg = f"{where}: the field lies on another grid than the fixed image; write it on the fixed image's own"
        msg = f"{msg}: the field has {said(field.grid)}; the fixed image has {said(grid)}"
        raise FieldError(msg)
    refuse_uncovered(field.grid, grid, where=str(where))
    return field


def refuse_uncovered(grid: Grid, fixed: Grid, *, where: str) -> None:
    """Refuse the grid of a field that does not lie along the fixed image's axes, or leaves a part of it uncovered.

    Parameters
    ----------
    grid, fixed
        The field's grid, and the fixed image's.
    where
        What the error calls the field.

    Raises
    ------
    FieldError
        When the axes differ, or some fixed voxel's centre has no nearest voxel in the field.
    """
    if not np.allclose(grid.direction, fixed.direction, rtol=0, atol=TOLERANCE):
        msg = f"{where}: the field's axes are not the fixed image's; write it on a coarser grid along the same axes"
        raise FieldError(f"{msg}: the field has {said(grid)}; the fixed image has {said(fixed)}")
    last = np.array(fixed.shape, dtype=np.float64) - 1
    first, end = grid.index(fixed.world(np.stack([np.zeros_like(last), last])))
    bare = (first < -0.5) | (end >= np.array(grid.shape) - 0.5)
    if bare.any():
        axes = " and ".join(name for name, lacks in zip("zyx"[-grid.ndim :], bare, strict=True) if lacks)
        msg = f"{where}: the field does not cover the fixed image along {axes}; every fixed voxel's centre needs a"
        msg = f"{msg} nearest voxel in the field: the field has {said(grid)}; the fixed image has {said(fixed)}"
        raise FieldError(msg)


def zero_field(grid: Grid) -> DisplacementField:
    """Return the field that moves nothing: what an unregistered pair is scored through."""
    return DisplacementField(grid, np.broadcast_to(np.float32(0), (grid.ndim, *grid.shape)))


def _in_folder(folder: Path) -> Path:
    """Return the field in a method's folder; what is no such folder is the field itself."""
    if not folder.is_dir() or folder.suffix == ".zarr":
        return folder
    found = [folder / f"DVF{ending}" for ending in ENDINGS if (folder / f"DVF{ending}").exists()]
    if len(found) != 1:
        there = ", ".join(path.name for path in found) or "none"
        msg = f"{folder}: one field named DVF.nii.gz or DVF.ome.zarr is expected, there is {there}"
        raise FieldError(msg)
    return found[0]


def said(grid: Grid) -> str:
    """Return a grid in words, for a message."""
    size = " x ".join(str(n) for n in reversed(grid.shape))
    numbers = {"spacing": grid.spacing, "origin": grid.origin, "direction": grid.direction}
    said = ", ".join(f"{name} ({', '.join(f'{v:.9g}' for v in values)})" for name, values in numbers.items())
    return f"{size} voxels (x, y, z), {said}"
