"""Displacement fields as other tools write them, made one thing: u(x) in the world (LPS), or refused."""

from __future__ import annotations

import math
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
from fidopt.images.conventions import CONTRACT, Convention, Pair, Reading, arrays, niftyreg
from fidopt.images.conventions import convention as find
from fidopt.images.readers import NIFTI, is_store, refusing

#: A stored field of more bytes is read region by region instead of whole.
LAZY_BYTES = 1 << 30
#: Voxels whose numbers are turned into displacements at a time.
SLAB = 1 << 18


def read_field(path: str | Path, *, convention: str = CONTRACT.name, fixed: Grid | None = None) -> DisplacementField:
    """Read a displacement field: the fixed point x matches x + u(x) in the moving image.

    Read are NIfTI (five axes, intent 1007), MetaImage, NRRD and OME-Zarr with their components x, y[, z] along the
    world's axes (LPS), in the image's unit, and what other tools write, each by its convention.

    Parameters
    ----------
    path
        The file or store.
    convention
        What its numbers mean (:data:`fidopt.images.conventions.CONVENTIONS`); by default the contract's.
    fixed
        The grid of the fixed image. It replaces the geometry of arrays of voxels (Learn2Reg, ConvexAdam, DIPY), which
        leave theirs out or state another; .npz and .npy need it.

    Returns
    -------
    DisplacementField
        World displacements (ndim, [z,] y, x) on the file's grid, or of an array on ``fixed``; every value finite.

    Raises
    ------
    FieldError
        When the file says it is something else, its shape is not a field's, or a value is not finite.
    InputError
        When the file is damaged.
    UsageError
        When there is no such convention.
    """
    name, meant = str(path), find(convention)
    with refusing(name):
        if meant.layout == "field":
            vectors, grid, meant = _read(name, meant)
        else:
            vectors, grid = arrays.read_array(name, meant, fixed=fixed)
        if tuple(vectors.shape) != (grid.ndim, *grid.shape):
            msg = f"{name}: a field on {arrays.xyz(grid.shape)} voxels has {grid.ndim} components, got {vectors.shape}"
            raise FieldError(f"{msg} (components, [z,] y, x)")
        # Numbers that a float32 holds may mean displacements that none does: what they mean is what is checked.
        with np.errstate(over="ignore", invalid="ignore"):
            displacements = _displacements(vectors, grid, meant.reading(grid.ndim))
        check_finite(displacements, name=name)
        return DisplacementField(grid, displacements)


def check_finite(vectors: Any, *, name: str) -> None:  # noqa: ANN401 - an array, or what is sliced like one
    """Refuse a field with a value that is not finite, or that no float32 holds: errors of that size have no square.

    Parameters
    ----------
    vectors
        (ndim, [z,] y, x); read a shard at a time.
    name
        What the error calls the file.

    Raises
    ------
    FieldError
        With how many voxels are not, and where the first is.
    """
    wrong, what = 0, "beyond what a float32 holds"
    first: tuple[int, ...] | None = None
    whole = Region.of(vectors.shape[1:])
    for part in whole.split((SHARD[whole.ndim],) * whole.ndim):
        values = np.asarray(vectors[(slice(None), *part.slices)])
        with np.errstate(over="ignore"):
            bad = ~np.isfinite(values.astype(np.float32, copy=False)).all(axis=0)
        if not bad.any():
            continue
        what = what if np.isfinite(values).all() else "not finite"
        wrong += int(bad.sum())
        voxel = tuple(int(v) + a for v, a in zip(np.argwhere(bad)[0], part.start, strict=True))
        first = voxel if first is None else min(first, voxel)
    if first is not None:
        which = "1 voxel is" if wrong == 1 else f"{wrong} voxels are"
        msg = f"{name}: {which} {what} in the field, the first at index {arrays.xyz(first)} (x first, from 0)"
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


def _read(name: str, meant: Convention) -> tuple[Any, Grid, Convention]:
    """Return vectors ((ndim, [z,] y, x) if they are a field's) and grid of a file or store, and what they mean."""
    if is_store(name):
        return (*_from_store(name), meant)
    if name.endswith(NIFTI):
        file = nifti.open_nifti(name)
        said = niftyreg.kind_of(file)
        if meant.by_header or said is not None:
            meant = niftyreg.convention_of(file, said, meant)
        return (*_from_nifti(file), meant)
    if name.endswith(volumes.ENDINGS):
        return (*volumes.read_volume(name), meant)
    msg = f"{name}: a displacement field is {', '.join((*NIFTI, *volumes.ENDINGS))} or .ome.zarr"
    raise InputError(msg)


def _from_store(name: str) -> tuple[Any, Grid]:
    image = open_image(name)
    grid = grid_of(image)
    if image.nbytes <= LAZY_BYTES:
        return np.asarray(compute(image)), grid
    return StoredVectors(source_of(image), tuple(image.shape), image.dtype), grid


def _from_nifti(file: nifti.NiftiFile) -> tuple[npt.NDArray[Any], Grid]:
    said = arrays.refuse_negated(file)
    wanted = "a field has five axes (x, y, z, 1, components) and intent 1007"
    if not file.is_vector:
        msg = (
            f"{said}; {wanted}; if it holds Learn2Reg's displacements in voxels, `fidopt score --voxels` reads it, and"
        )
        raise FieldError(f"{msg} what other tools mean is said with a convention (`--convention`, or TOOL:FILE)")
    return arrays.vectors_of(file, wanted), file.grid(file.shape[-1])


def _displacements(vectors: Any, grid: Grid, reading: Reading) -> Any:  # noqa: ANN401 - as check_finite
    """Return what numbers (ndim, [z,] y, x) mean: as they are where they mean the contract's, else turned by slabs."""
    if reading == Reading.written(grid.ndim):
        return vectors
    kind = np.float64 if vectors.dtype == np.float64 else np.float32
    found = np.empty((grid.ndim, *grid.shape), dtype=kind)
    step = max(1, SLAB // math.prod(grid.shape[1:]))
    for part in grid.region.split((step, *grid.shape[1:])):
        numbers = np.asarray(vectors[(slice(None), *part.slices)], dtype=np.float64).reshape(grid.ndim, -1).T
        axes = [np.arange(first, stop) for first, stop in zip(part.start, part.stop, strict=True)]
        index = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, grid.ndim)
        world = reading.displacements(numbers, Pair(grid, grid, grid.world(index)))
        found[(slice(None), *part.slices)] = world.T.reshape(grid.ndim, *part.shape)
    return found
