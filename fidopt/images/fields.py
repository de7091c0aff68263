"""Displacement fields as other tools write them, made one thing: u(x) in the world (LPS), or refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of, open_image, source_of
from blocks.region import Region
from blocks.storage import SHARD
from blocks.transforms import DisplacementField
from fidopt.errors import FieldError, InputError
from fidopt.images import nifti, volumes
from fidopt.images.readers import NIFTI, is_store, refusing

#: A stored field of more bytes is read region by region instead of whole.
LAZY_BYTES = 1 << 30


def read_field(path: str | Path, *, voxels: bool = False, fixed: Grid | None = None) -> DisplacementField:
    """Read a displacement field: the fixed point x matches x + u(x) in the moving image.

    Read are NIfTI (five axes, intent 1007), MetaImage, NRRD and OME-Zarr with their components x, y[, z] along the
    world's axes (LPS), in the image's unit.

    Parameters
    ----------
    path
        The file or store.
    voxels
        The components are voxels along the index axes, as Learn2Reg has them: component k moves along the k-th
        axis of the file's array (x, y, z). A NIfTI file then needs no intent, and may have four axes.
    fixed
        The grid of the fixed image; with ``voxels`` it replaces the file's geometry, which Learn2Reg leaves out.

    Returns
    -------
    DisplacementField
        World displacements (ndim, [z,] y, x) on the file's grid, or on ``fixed`` with ``voxels``; every value finite.

    Raises
    ------
    FieldError
        When the file says it is something else, its shape is not a field's, or a value is not finite.
    InputError
        When the file is damaged.
    """
    name = str(path)
    with refusing(name):
        vectors, grid = _read(name, voxels=voxels)
        if tuple(vectors.shape) != (grid.ndim, *grid.shape):
            msg = f"{name}: a field on {_xyz(grid.shape)} voxels has {grid.ndim} components, got {vectors.shape}"
            raise FieldError(f"{msg} (components, [z,] y, x)")
        check_finite(vectors, name=name)
        if voxels:
            return _from_voxels(vectors, grid if fixed is None else fixed, name=name)
        return DisplacementField(grid, vectors)


def check_finite(vectors: Any, *, name: str) -> None:  # noqa: ANN401 - an array, or what is sliced like one
    """Refuse a field with a value that is not finite.

    Parameters
    ----------
    vectors
        (ndim, [z,] y, x); read a shard at a time.
    name
        What the error calls the file.

    Raises
    ------
    FieldError
        With how many voxels are not finite, and where the first is.
    """
    wrong = 0
    first: tuple[int, ...] | None = None
    whole = Region.of(vectors.shape[1:])
    for part in whole.split((SHARD[whole.ndim],) * whole.ndim):
        bad = ~np.isfinite(np.asarray(vectors[(slice(None), *part.slices)])).all(axis=0)
        if not bad.any():
            continue
        wrong += int(bad.sum())
        voxel = tuple(int(v) + a for v, a in zip(np.argwhere(bad)[0], part.start, strict=True))
        first = voxel if first is None else min(first, voxel)
    if first is not None:
        which = "1 voxel is" if wrong == 1 else f"{wrong} voxels are"
        msg = f"{name}: {which} not finite in the field, the first at index {_xyz(first)} (x first, from 0)"
        raise FieldError(msg)


@dataclass(frozen=True)
class StoredVectors:
    """A field in a store, read region by region when it is sliced.

    Parameters
    ----------
    source
        Where a region is read from (:func:`blocks.image.source_of`).
    shape, dtype
        (ndim, [z,] y, x), and the type of a value.
    """

    source: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, index: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the vectors of a region, a slice an axis (a missing one is whole)."""
        parts = [*index, *[slice(None)] * (self.ndim - len(index))]
        bounds = [part.indices(n) for part, n in zip(parts[1:], self.shape[1:], strict=True)]
        region = Region(tuple(b[0] for b in bounds), tuple(b[1] for b in bounds))
        return np.asarray(self.source.read(region)[parts[0]])


def _read(name: str, *, voxels: bool) -> tuple[Any, Grid]:
    """Return vectors ((ndim, [z,] y, x) if they are a field's) and grid of a file or store."""
    if is_store(name):
        return _from_store(name)
    if name.endswith(NIFTI):
        return _from_nifti(name, voxels=voxels)
    if name.endswith(volumes.ENDINGS):
        return volumes.read_volume(name)
    msg = f"{name}: a displacement field is {', '.join((*NIFTI, *volumes.ENDINGS))} or .ome.zarr"
    raise InputError(msg)


def _from_store(name: str) -> tuple[Any, Grid]:
    image = open_image(name)
    grid = grid_of(image)
    if image.nbytes <= LAZY_BYTES:
        return np.asarray(compute(image)), grid
    return StoredVectors(source_of(image), tuple(image.shape), image.dtype), grid


def _from_nifti(name: str, *, voxels: bool) -> tuple[npt.NDArray[Any], Grid]:
    file = nifti.open_nifti(name)
    said = f"{name}: its shape is {file.shape} with intent {file.intent}"
    wanted = "a field has five axes (x, y, z, 1, components) and intent 1007"
    if file.intent == nifti.INTENT_DISPLACEMENT:
        msg = f"{said}, but intent 1007 (vector) is expected: readers negate x and y of intent 1006; write it as 1007"
        raise FieldError(f"{msg} with components along LPS")
    if voxels and file.is_vector:
        msg = f"{said}, which means world vectors, not Learn2Reg's voxels; leave --voxels out"
        raise FieldError(msg)
    if not voxels and not file.is_vector:
        msg = f"{said}; {wanted}; if it holds Learn2Reg's displacements in voxels, `fidopt score --voxels` reads it"
        raise FieldError(msg)
    spatial, components = file.shape[:-1], file.shape[-1]
    if components not in (2, 3) or len(spatial) < components or any(n != 1 for n in spatial[components:]):
        msg = f"{said}; {wanted}, Learn2Reg's (x, y, z, 3)"
        raise FieldError(msg)
    shape = (*spatial[:components], components)
    return file.values().reshape(shape, order="F").T, file.grid(components)


def _from_voxels(vectors: Any, grid: Grid, *, name: str) -> DisplacementField:  # noqa: ANN401 - as check_finite
    if vectors.shape[1:] != grid.shape:
        msg = f"{name}: the field has {_xyz(vectors.shape[1:])} voxels, the fixed image {_xyz(grid.shape)} (x, y, z)"
        raise FieldError(msg)
    steps = np.asarray(vectors[:])
    kind = np.float64 if steps.dtype == np.float64 else np.float32
    world = np.tensordot(grid.matrix, steps.astype(np.float64), axes=1)
    return DisplacementField(grid, world.astype(kind))


def _xyz(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(str(n) for n in reversed(shape)) + ")"
