"""A volume whose planes are files of their own, in the natural order of their names."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fidopt.errors import InputError
from fidopt.images import tiff
from fidopt.images.calibration import Calibration
from fidopt.images.lazy import lazy
from fidopt.images.tiff import TiffVoxels

#: What makes a name a pattern.
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class StackVoxels:
    """Planes ([c,] z, y, x) that are read from their files when they are sliced.

    Parameters
    ----------
    planes
        One a file, all of one shape and type.
    """

    planes: tuple[TiffVoxels, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis."""
        *channels, height, width = self.planes[0].shape
        return (*channels, len(self.planes), height, width)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        return self.planes[0].dtype

    @property
    def channels(self) -> bool:
        """Whether the first axis is of channels."""
        return self.planes[0].channels

    @property
    def segment(self) -> tuple[int, ...] | None:
        """Spatial shape of what is decoded at a time."""
        inside = self.planes[0].segment
        return None if inside is None else (1, *inside)

    def __getitem__(self, index: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the voxels of a box, a slice an axis."""
        *channels, along, rows, columns = index
        parts = [plane[(*channels, rows, columns)] for plane in self.planes[along]]
        return np.stack(parts, axis=len(channels))


def is_stack(name: str) -> bool:
    """Tell whether a name is a pattern, or a folder that holds TIFF files."""
    if _WILD.search(Path(name).name) and not Path(name).exists():
        return True
    return Path(name).is_dir() and any(_is_plane(path) for path in Path(name).iterdir())


def read_stack(name: str) -> tuple[Any, Calibration]:
    """Read the planes of a folder, or of a pattern such as ``planes/*.tif``, as a volume.

    Returns
    -------
    tuple of dask array and Calibration
        Voxels ([c,] z, y, x), lazy; the planes in the natural order of their names (2 before 10). The calibration is
        the first plane's, along x and y; a stack of files says nothing of z.

    Raises
    ------
    InputError
        When there is no plane, or one differs from the first in shape or type.
    """
    paths = plane_files(name)
    first, said = tiff.open_tiff(paths[0])
    planes = [first]
    for path in paths[1:]:
        plane, _ = tiff.open_tiff(path)
        if (plane.shape, plane.dtype) != (first.shape, first.dtype):
            expected, got = (f"{' x '.join(map(str, p.shape))} of {p.dtype}" for p in (first, plane))
            msg = f"{name}: the planes of a stack are of one kind: {paths[0].name} is {expected}, {path.name} is {got}"
            raise InputError(f"{msg}; take it out of the stack")
        planes.append(plane)
    if first.ndim - first.channels != 2:
        msg = f"{paths[0]}: a plane (y, x) is expected in each file of a stack, got {first.shape}"
        raise InputError(f"{msg}; convert the file by itself")
    spacing = None if said.spacing is None else (*said.spacing, float("nan"))
    return lazy(StackVoxels(tuple(planes))), Calibration(spacing, said.unit, said.channels)


def plane_files(name: str) -> Sequence[Path]:
    """Return the files of a stack in the natural order of their names.

    Raises
    ------
    InputError
        When there is none.
    """
    folder = Path(name)
    found = list(folder.iterdir()) if folder.is_dir() else [Path(path) for path in glob.glob(name)]  # noqa: PTH207
    planes = sorted((path for path in found if _is_plane(path)), key=_natural)
    if not planes:
        msg = f"{name}: no plane that ends in {' or '.join(tiff.ENDINGS)} is there"
        raise InputError(msg)
    return planes


def _is_plane(path: Path) -> bool:
    return path.name.lower().endswith(tiff.ENDINGS) and not path.name.startswith(".")


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return what a name is sorted by: its numbers as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]
