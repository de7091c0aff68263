"""Warped images and displacement fields as lazy arrays, one task a shard.

Everything that tasks have in common (where the voxels are read, the transform, the grids) is one entry of the graph;
a task adds its region. A task reads the box of the moving image that the plan says it needs, in parts where the whole
would exceed the memory it may use, and runs one kernel.
"""

from __future__ import annotations

import itertools
import math
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import xarray as xr
from dask._task_spec import DataNode, Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from blocks.grid import Grid
from blocks.image import ArraySource, Source, grid_of, image_of, kind_of, source_of, unit_of
from blocks.kernels.route import route_to_displacement, route_to_index
from blocks.kernels.warp import MOST_VOXELS, displacement_block, warp_block
from blocks.memory import displacement_bytes, warp_bytes
from blocks.plan import (
    Interpolation,
    checked_interpolation,
    halves,
    held_bytes,
    localised,
    read_region,
    window_bytes,
)
from blocks.region import Region
from blocks.storage import Layout
from blocks.transforms import Affine, BSpline, Composite, Stage, Transform, fold

Voxels = npt.NDArray[Any]

#: Bytes a task may use unless it is told otherwise; it works in parts beyond that.
MEMORY_BYTES = 1 << 30
#: Largest array that is hashed to name a graph.
_HASHED_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class WarpJob:
    """What the tasks of one warp have in common.

    Parameters
    ----------
    source
        Where the moving voxels are read.
    transform
        Fixed world points to moving world points.
    fixed, moving
        Grids of the output and of the input.
    interpolation, background
        How voxels are sampled, and the value outside the moving image.
    memory_bytes
        What one task may use.
    """

    source: Source
    transform: Transform
    fixed: Grid
    moving: Grid
    interpolation: Interpolation
    background: float
    memory_bytes: int

    def shard(self, region: Region) -> Voxels:
        """Return the warped voxels ((c,) (z,) y, x) of a region of the fixed grid."""
        out: Voxels | None = None
        for part, stages, read in self._parts(region):
            voxels = self._warped(part, stages, read)
            if part == region:
                out = voxels
                break
            if out is None:
                out = np.empty((self.source.channels or 1, *region.shape), dtype=self.source.dtype)
            out[(slice(None), *part.relative_to(region.start).slices)] = voxels
        assert out is not None
        return out if self.source.channels is not None else out[0]

    def bytes_of(self, region: Region) -> int:
        """Return the bytes that warping a region in one part takes; reads what it needs of a lazy field."""
        stages = localised(self.transform, self.fixed, region=region)
        return self._bytes(region, self._read(region, stages), held_bytes(stages))

    def _parts(self, region: Region) -> Iterator[tuple[Region, tuple[Stage, ...], Region]]:
        """Yield parts of a region that fit the memory, each with what it needs of the transform and of the image."""
        smaller = halves(region)
        if not smaller or window_bytes(self.transform, self.fixed, region=region) <= self.memory_bytes:
            stages = localised(self.transform, self.fixed, region=region)
            read = self._read(region, stages)
            if not smaller or self._bytes(region, read, held_bytes(stages)) <= self.memory_bytes:
                yield region, stages, read
                return
            del stages
        for part in smaller:
            yield from self._parts(part)

    @property
    def _whole(self) -> bool:
        """Whether the moving image lies in memory as the kernels take it: nothing of it need be copied."""
        if not isinstance(self.source, ArraySource) or self.interpolation == "cubic":
            return False
        array = self.source.array
        ready = array.flags.c_contiguous and array.dtype.isnative and array.dtype != np.float16
        return bool(ready) and math.prod(self.moving.shape) <= MOST_VOXELS

    def _bytes(self, region: Region, read: Region, lattice: int) -> int:
        """Return the bytes of warping a region from a box, 32-bit places within the box being one more limit."""
        if read.size > MOST_VOXELS:
            return sys.maxsize
        return warp_bytes(
            read.size,
            region.size,
            itemsize=self.source.dtype.itemsize,
            channels=self.source.channels or 1,
            cubic=self.interpolation == "cubic",
            copied=not self._whole,
            widened=4 if self.source.dtype == np.float16 else 0,
            lattice=lattice,
        )

    def _read(self, region: Region, stages: tuple[Stage, ...]) -> Region:
        if self._whole:
            return self.moving.region
        return read_region(Composite(stages), self.fixed, region, self.moving, interpolation=self.interpolation)

    def _warped(self, region: Region, stages: tuple[Stage, ...], read: Region) -> Voxels:
        """Return the voxels (channels, [z,] y, x) of a region from the box it reads."""
        lead = () if self.source.channels is None else (self.source.channels,)
        voxels = np.empty((*lead, *read.shape), self.source.dtype) if read.empty else self.source.read(read)
        return warp_block(
            voxels[None] if self.source.channels is None else voxels,
            read,
            shape=self.moving.shape,
            route=route_to_index(stages, self.fixed, moving=self.moving, region=region),
            interpolation=self.interpolation,
            background=self.background,
        )


@dataclass(frozen=True, eq=False)
class FieldJob:
    """What the tasks of one displacement field have in common.

    Parameters
    ----------
    transform
        Fixed world points to moving world points.
    fixed
        Grid of the field.
    dtype
        float32 or float64.
    """

    transform: Transform
    fixed: Grid
    dtype: np.dtype[Any]

    def shard(self, region: Region) -> Voxels:
        """Return the displacements (ndim, [z,] y, x) of a region of the fixed grid."""
        stages = localised(self.transform, self.fixed, region=region)
        return displacement_block(route_to_displacement(stages, self.fixed, region=region), dtype=self.dtype)

    def bytes_of(self, region: Region) -> int:
        """Return the bytes that computing a region takes."""
        lattice = window_bytes(self.transform, self.fixed, region=region)
        return displacement_bytes(region.size, ndim=self.fixed.ndim, itemsize=self.dtype.itemsize, lattice=lattice)


def warp(
    image: xr.DataArray,
    transform: Transform,
    like: xr.DataArray | Grid,
    *,
    interpolation: Interpolation = "linear",
    background: float = 0,
    shard: tuple[int, ...] | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> xr.DataArray:
    """Return the moving image read at the transform of every voxel of a fixed grid; nothing is computed yet.

    The voxels are the same bits whatever the shards, the scheduler and the number of workers.

    Parameters
    ----------
    image
        The moving image ((c,) (z,) y, x): in memory, or as :func:`blocks.open_image` returns it.
    transform
        Fixed world points to moving world points.
    like
        The fixed image, or its grid.
    interpolation
        ``"linear"``, ``"nearest"`` (values unchanged, as label maps need), or ``"cubic"`` (B-spline of order 3).
        Integers are rounded half to even and clamped to their type.
    background
        Value of a voxel whose point lies outside the moving image.
    shard
        Voxels a task computes, spatial axes; by default one shard of the store it would be written to.
    memory_bytes
        What one task may use; it works in parts where its shard needs more.

    Raises
    ------
    ValueError
        When the numbers of axes differ, the interpolation is unknown, the background is not a value of the image's
        type, or the image is a lazy result that no task can read.
    """
    fixed = like if isinstance(like, Grid) else grid_of(like)
    moving = grid_of(image)
    _check_axes(transform, fixed, moving)
    source = source_of(image)
    job = WarpJob(
        source,
        transform,
        fixed,
        moving,
        checked_interpolation(interpolation),
        _checked_background(background, source.dtype),
        memory_bytes,
    )
    seed = (_identity(image.data), moving, interpolation, job.background)
    data = _lazy("warp", job, fixed, source.dtype, channels=source.channels, shard=shard, seed=seed)
    return image_of(data, fixed, unit=unit_of(image), kind=kind_of(image), name=image.name)


def displacement(
    transform: Transform,
    like: xr.DataArray | Grid,
    *,
    dtype: npt.DTypeLike = np.float32,
    shard: tuple[int, ...] | None = None,
) -> xr.DataArray:
    """Return u(x) = T(x) - x at every voxel of a fixed grid, (c, [z,] y, x) with c in the order x, y, z; lazy.

    Parameters
    ----------
    transform
        Fixed world points to moving world points.
    like
        The fixed image, or its grid.
    dtype
        float32 or float64; vectors are computed in float64.
    shard
        Voxels a task computes, spatial axes; by default one shard of the store it would be written to.
    """
    fixed = like if isinstance(like, Grid) else grid_of(like)
    _check_axes(transform, fixed, fixed)
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        msg = f"a displacement field is float32 or float64, got {kind}"
        raise ValueError(msg)
    job = FieldJob(transform, fixed, kind)
    data = _lazy("displacement", job, fixed, kind, channels=fixed.ndim, shard=shard, seed=())
    unit = None if isinstance(like, Grid) else unit_of(like)
    return image_of(data, fixed, unit=unit, name="displacement")


def _lazy(
    prefix: str,
    job: WarpJob | FieldJob,
    fixed: Grid,
    dtype: np.dtype[Any],
    *,
    channels: int | None,
    shard: tuple[int, ...] | None,
    seed: object,
) -> da.Array:
    """Return a lazy array whose tasks each compute one shard of a job."""
    dims = ("z", "y", "x")[-fixed.ndim :]
    size = shard or Layout.of(fixed.shape, dtype, dims).blocks
    steps = [[min(s, n - a) for a in range(0, n, s)] for n, s in zip(fixed.shape, size, strict=True)]
    token = tokenize(prefix, seed, _named(job.transform), job.fixed, size, str(dtype))
    name, common = f"{prefix}-shard-{token}", f"{prefix}-job-{token}"
    lead = () if channels is None else (0,)
    tasks = {}
    for index in itertools.product(*(range(len(along)) for along in steps)):
        start = tuple(i * s for i, s in zip(index, size, strict=True))
        region = Region(start, tuple(a + s for a, s in zip(start, size, strict=True))).clip(fixed.shape)
        key = (name, *lead, *index)
        tasks[key] = Task(key, _compute_shard, TaskRef(common), region)
    layers = {name: tasks, common: {common: DataNode(common, job)}}
    graph = HighLevelGraph(layers, {name: {common}, common: set()})
    chunks = tuple(tuple(along) for along in steps)
    return da.Array(graph, name, ((channels,), *chunks) if channels is not None else chunks, dtype=dtype)


def _compute_shard(job: WarpJob | FieldJob, region: Region) -> Voxels:
    return job.shard(region)


def _identity(array: Any) -> object:  # noqa: ANN401 - a NumPy array, a lazy one, or the vectors of a field
    """Return what names an array in a graph: a lazy array's name, a small array itself, else nothing but this call.

    Hashing a large array costs as much as warping it.
    """
    if isinstance(array, np.ndarray) and array.nbytes > _HASHED_BYTES:
        return uuid.uuid4().hex
    return getattr(array, "name", array)


def _named(transform: Transform) -> list[object]:
    """Return what names a transform in a graph."""
    names: list[object] = []
    for stage in fold(transform):
        if isinstance(stage, Affine):
            names.append(stage)
        elif isinstance(stage, BSpline):
            names += [stage.grid, _identity(stage.coefficients)]
        else:
            names += [stage.grid, _identity(stage.vectors)]
    return names


def _check_axes(transform: Transform, fixed: Grid, moving: Grid) -> None:
    if len({transform.ndim, fixed.ndim, moving.ndim}) > 1:
        msg = f"the transform has {transform.ndim} axes, the fixed grid {fixed.ndim} and the moving image {moving.ndim}"
        raise ValueError(f"{msg}: they must agree; give a single plane an axis of one voxel")


def _checked_background(background: float, dtype: np.dtype[Any]) -> float:
    """Return the background as a value of the image's type."""
    if dtype.kind == "f":
        return float(background)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not (background == int(background) and low <= background <= high):
        msg = f"the background of {dtype} voxels must be a whole number from {low} to {high}, got {background}"
        raise ValueError(msg)
    return int(background)
