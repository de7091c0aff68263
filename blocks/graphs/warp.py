"""Warped images and displacement fields as lazy arrays, one task a shard.

Everything that tasks have in common (where the voxels are read, the transform, the grids) is one entry of the graph;
a task adds its region. A task reads the box of the moving image that the plan says it needs, in parts where the whole
would exceed the memory it may use, and runs one kernel.
"""

from __future__ import annotations

import math
import uuid
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import xarray as xr
from dask._task_spec import DataNode
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from blocks.graphs.shard_layer import ShardLayer
from blocks.graphs.warp_job import FieldJob, WarpJob
from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, source_of, unit_of
from blocks.plan import Interpolation, checked_interpolation
from blocks.region import Region
from blocks.storage import Layout
from blocks.transforms import Affine, BSpline, Transform, fold

#: Bytes a task may use unless it is told otherwise; it works in parts beyond that.
MEMORY_BYTES = 1 << 30
#: Largest array that is hashed to name a graph.
_HASHED_BYTES = 1 << 20


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
        type, the shard is none, or the image is a lazy result that no task can read.
    MemoryBudgetError
        When a task needs more memory than that, in however small parts; says how much.
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
    shard = _checked_shard(shard, fixed)
    job.check(_middle(fixed, shard or Layout.of(fixed.shape, source.dtype, _dims(fixed)).blocks))
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
    shard = _checked_shard(shard, fixed)
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
    size = shard or Layout.of(fixed.shape, dtype, _dims(fixed)).blocks
    steps = [[min(s, n - a) for a in range(0, n, s)] for n, s in zip(fixed.shape, size, strict=True)]
    token = tokenize(prefix, seed, _named(job.transform), job.fixed, size, str(dtype))
    name, common = f"{prefix}-shard-{token}", f"{prefix}-job-{token}"
    layer = ShardLayer(name, common, job, size=size, channels=channels is not None)
    graph = HighLevelGraph({name: layer, common: {common: DataNode(common, job)}}, {name: {common}, common: set()})
    chunks = tuple(tuple(along) for along in steps)
    return da.Array(graph, name, ((channels,), *chunks) if channels is not None else chunks, dtype=dtype)


def _dims(fixed: Grid) -> tuple[str, ...]:
    return ("z", "y", "x")[-fixed.ndim :]


def _middle(fixed: Grid, shard: tuple[int, ...]) -> Region:
    """Return the shard in the middle of a grid: whole, unless the grid is smaller, and the one that reads most."""
    start = tuple((n - 1) // 2 // s * s for n, s in zip(fixed.shape, shard, strict=True))
    return Region(start, tuple(a + s for a, s in zip(start, shard, strict=True))).clip(fixed.shape)


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


def _checked_background(background: object, dtype: np.dtype[Any]) -> float:
    """Return the background as a value of the image's type."""
    plain: object = background.item() if isinstance(background, np.generic) else background
    number = plain if isinstance(plain, int | float) else None
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        if number is not None and (abs(number) <= most or not math.isfinite(number)):
            return float(number)
        msg = f"the background of {dtype} voxels must be a number of at most {most:g}, got {background!r}"
        raise ValueError(msg)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if number is not None and low <= number <= high and number == int(number):
        return int(number)
    msg = f"the background of {dtype} voxels must be a whole number from {low} to {high}, got {background!r}"
    raise ValueError(msg)


def _checked_shard(shard: tuple[int, ...] | None, fixed: Grid) -> tuple[int, ...] | None:
    """Return the shard that is asked for, which has a voxel an axis at least."""
    if shard is not None and (
        len(shard) != fixed.ndim or not all(isinstance(n, int | np.integer) and n > 0 for n in shard)
    ):
        msg = f"a shard of {fixed.ndim} whole positive numbers is expected, got {shard}"
        raise ValueError(msg)
    return shard
