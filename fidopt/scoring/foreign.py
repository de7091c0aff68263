"""A case's field as another tool wrote it: its files found, read by its convention, and brought onto the grid."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import blocks
from blocks.execute import compute
from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt.errors import FieldError, UsageError
from fidopt.images.conventions import CONTRACT, Convention, convention
from fidopt.images.transforms import read_transforms

#: The convention that ``--voxels`` stands for.
VOXELS = "learn2reg"
#: What the names of files hold that go from the moving image to the fixed one.
_INVERSE = "Inverse"


def meant(name: str | None, *, voxels: bool = False) -> Convention:
    """Return the convention that is asked for by its name, by ``--voxels``, or, where nothing is said, the contract's.

    Raises
    ------
    UsageError
        When there is no such convention, or the two ask for different ones.
    """
    if voxels and name not in (None, VOXELS):
        msg = f"--voxels is --convention {VOXELS}, and --convention {name} was given too; leave one of them out"
        raise UsageError(msg)
    return convention(VOXELS if voxels else name or CONTRACT.name)


def files_of(folder: Path, tool: Convention, *, case: str) -> tuple[Path, ...]:
    """Return the files of a case's transform under their tool's own names, the first applied to the fixed point first.

    Parameters
    ----------
    folder
        The case's own folder.
    tool
        Whose names are looked for.
    case
        What an error calls the case.

    Raises
    ------
    FieldError
        When several files have one such name.
    """
    for way in tool.files:
        found = [_matches(folder, pattern, tool) for pattern in way]
        if all(found):
            several = next((files for files in found if len(files) > 1), None)
            if several is None:
                return tuple(files[0] for files in found)
            msg = f"{case} has several files of {tool.tool}'s ({', '.join(file.name for file in several)}); keep one"
            raise FieldError(msg)
    return ()


def read_foreign(paths: Sequence[Path], tool: Convention, grid: Grid, *, large: bool) -> DisplacementField:
    """Read files by a tool's convention as one field.

    Parameters
    ----------
    paths
        Transforms and fields; the first is applied to the fixed point first.
    tool
        What they mean.
    grid
        The fixed image's.
    large
        Whether the dataset is too large for fields to be computed in memory.

    Returns
    -------
    DisplacementField
        A field's file on its own grid where that is the fixed image's or the dataset is large; else the displacements
        at every voxel of ``grid``, float32.

    Raises
    ------
    FieldError
        When a field leaves a part of the fixed image uncovered, or a transform of a large dataset would have to be
        written as a field first.
    InputError
        When a file is damaged or is none of the tool's.
    """
    transform = read_transforms([f"{tool.name}:{path}" for path in paths], fixed=grid)
    said = ", ".join(map(str, paths))
    if isinstance(transform, DisplacementField):
        if large or transform.grid.matches(grid):
            return transform
        corners = list(itertools.product(*[(0, n - 1) for n in grid.shape]))
        if not transform.grid.inside(grid.world(corners)).all():
            msg = f"{said}: the field leaves a part of the fixed image uncovered; write it on the fixed image's grid"
            raise FieldError(msg)
    elif large:
        msg = f"{said}: transforms of a large dataset are scored as a field; write it: fidopt field {tool.name}:FILE"
        raise FieldError(f"{msg} DVF.ome.zarr --like fixed.ome.zarr")
    vectors = np.asarray(compute(blocks.displacement(transform, grid)))
    if not np.isfinite(vectors).all():
        msg = f"{said}: displacements are not finite, or larger than a float32 holds"
        raise FieldError(msg)
    return DisplacementField(grid, vectors)


def _matches(folder: Path, pattern: str, tool: Convention) -> list[Path]:
    """Return the files of one name, of a tool that numbers them the last alone."""
    found = sorted((path for path in folder.glob(pattern) if _INVERSE not in path.name), key=_number)
    return found[-1:] if tool.numbered else found


def _number(path: Path) -> tuple[int, str]:
    numbers = re.findall(r"\d+", path.name)
    return (int(numbers[-1]) if numbers else -1, path.name)
