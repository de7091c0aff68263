"""Hypothesis strategies: grids, regions, chunkings, voxels and transforms as awkward as real ones.

Anisotropic spacings, oblique and reversed directions, odd and single-voxel sizes. Arrays come from a drawn seed, so
that an example stays small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from blocks.grid import Grid
from blocks.region import Region
from blocks.transforms import Affine, BSpline, Composite, DisplacementField, Transform

#: Every type of voxel that a store holds.
INTEGERS = tuple(np.dtype(f"{sign}int{bits}") for sign in ("u", "") for bits in (8, 16, 32, 64))
DTYPES = (np.dtype(bool), *INTEGERS, np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
#: Few examples, no time limit for the first that compiles a kernel, and no shrinking: an example is small as it is.
QUICK = settings(
    max_examples=60,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)
SEEDS = st.integers(0, 2**32 - 1)


def rotation(rng: np.random.Generator, ndim: int, *, most: float = np.pi) -> np.ndarray:
    """Return a random rotation matrix by at most ``most`` radians about each axis."""
    matrix = np.eye(ndim)
    for a, b in [(0, 1), (0, 2), (1, 2)] if ndim == 3 else [(0, 1)]:
        turn = np.eye(ndim)
        angle = rng.uniform(-most, most)
        turn[a, a] = turn[b, b] = np.cos(angle)
        turn[a, b], turn[b, a] = -np.sin(angle), np.sin(angle)
        matrix = turn @ matrix
    return matrix


@st.composite
def directions(draw: st.DrawFn, ndim: int) -> np.ndarray:
    """Draw direction cosines (ndim, ndim): plain, reversed and permuted, or oblique."""
    kind = draw(st.sampled_from(["plain", "axes", "oblique"]))
    rng = np.random.default_rng(draw(SEEDS))
    if kind == "plain":
        return np.eye(ndim)
    if kind == "axes":
        return np.eye(ndim)[rng.permutation(ndim)] * rng.choice([-1.0, 1.0], ndim)
    return rotation(rng, ndim)


@st.composite
def grids(draw: st.DrawFn, *, ndim: int | None = None, least: int = 1, most: int = 14) -> Grid:
    """Draw a grid of 2 or 3 axes with between ``least`` and ``most`` voxels each."""
    n = draw(st.sampled_from([2, 3])) if ndim is None else ndim
    shape = draw(st.tuples(*[st.integers(least, most)] * n))
    spacing = draw(st.tuples(*[st.sampled_from([0.3, 0.75, 1.0, 1.366, 2.5])] * n))
    origin = draw(st.tuples(*[st.sampled_from([-37.25, 0.0, 11.9])] * n))
    return Grid.of(shape, spacing=spacing, origin=origin, direction=draw(directions(n)).ravel())


@st.composite
def regions(draw: st.DrawFn, shape: tuple[int, ...], *, empty: bool = False) -> Region:
    """Draw a region inside an array of this shape, not empty unless asked for."""
    start, stop = [], []
    for n in shape:
        a = draw(st.integers(0, n - 1))
        start.append(a)
        stop.append(draw(st.integers(a if empty else a + 1, n)))
    return Region(tuple(start), tuple(stop))


@st.composite
def shards(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draw the voxels an axis of a shard, at least a third of the shape so that a test has few of them."""
    return draw(st.tuples(*[st.integers(max(1, n // 3), n) for n in shape]))


@st.composite
def voxels(
    draw: st.DrawFn, shape: tuple[int, ...], *, dtype: np.dtype[Any] | None = None, channels: bool = False
) -> np.ndarray:
    """Draw noise over the whole range of a type, with a few channels first where asked for."""
    kind = draw(st.sampled_from(DTYPES)) if dtype is None else np.dtype(dtype)
    rng = np.random.default_rng(draw(SEEDS))
    size = (draw(st.integers(1, 3)), *shape) if channels else shape
    if kind.kind == "b":
        return rng.random(size) < 0.5
    if kind.kind == "f":
        return (rng.normal(size=size) * 100).astype(kind)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, size, dtype=kind, endpoint=True)


@st.composite
def moving_grids(draw: st.DrawFn, fixed: Grid, *, most: int = 14) -> Grid:
    """Draw a grid of another shape and direction whose centre lies near the middle of ``fixed``."""
    grid = draw(grids(ndim=fixed.ndim, most=most))
    middle = fixed.world((np.array(fixed.shape) - 1) / 2)
    shift = np.array(draw(st.tuples(*[st.sampled_from([-1.5, 0.0, 0.5])] * fixed.ndim))) * fixed.spacing
    origin = middle + shift - grid.matrix @ ((np.array(grid.shape[::-1]) - 1) / 2)
    return Grid.of(grid.shape, spacing=grid.spacing, origin=origin, direction=grid.direction)


@st.composite
def affines(draw: st.DrawFn, fixed: Grid) -> Affine:
    """Draw the identity, a translation, a scaling along the axes, or a general affine about the grid's middle."""
    n = fixed.ndim
    rng = np.random.default_rng(draw(SEEDS))
    middle = fixed.world((np.array(fixed.shape) - 1) / 2)
    shift = rng.uniform(-2, 2, n) * fixed.spacing
    kind = draw(st.sampled_from(["identity", "translation", "scaling", "general"]))
    if kind == "identity":
        return Affine.identity(n)
    if kind == "translation":
        return Affine.translation(shift)
    matrix = np.diag(rng.uniform(0.7, 1.4, n))
    if kind == "general":
        matrix = rotation(rng, n, most=0.4) @ matrix + rng.uniform(-0.05, 0.05, (n, n))
    return Affine.of(matrix, middle - matrix @ middle + shift)


def lattice_around(fixed: Grid, rng: np.random.Generator, *, shape: tuple[int, ...], aligned: bool) -> Grid:
    """Return a grid of a shape that covers a fixed grid more or less, along its axes or not."""
    n = fixed.ndim
    cells = np.maximum(np.array(shape[::-1]) - 3, 1)
    extent = np.array(fixed.shape[::-1]) * fixed.spacing * rng.uniform(0.7, 1.3, n)
    spacing = np.maximum(extent / cells, 1e-3)
    turn = fixed.direction_matrix if aligned else rotation(rng, n, most=0.5) @ fixed.direction_matrix
    middle = fixed.world((np.array(fixed.shape) - 1) / 2)
    origin = middle - (turn * spacing) @ ((np.array(shape[::-1]) - 1) / 2)
    return Grid.of(shape, spacing=spacing, origin=origin, direction=turn.ravel())


@st.composite
def bsplines(draw: st.DrawFn, fixed: Grid, *, aligned: bool | None = None) -> BSpline:
    """Draw a B-spline whose valid region covers a fixed grid, or a part of it, displacing by some voxels."""
    rng = np.random.default_rng(draw(SEEDS))
    shape = draw(st.tuples(*[st.integers(4, 8)] * fixed.ndim))
    along = draw(st.booleans()) if aligned is None else aligned
    lattice = lattice_around(fixed, rng, shape=shape, aligned=along)
    size = draw(st.sampled_from([0.5, 3.0])) * float(np.mean(fixed.spacing))
    return BSpline(lattice, rng.normal(size=(fixed.ndim, *shape)) * size)


@st.composite
def fields(draw: st.DrawFn, fixed: Grid, *, aligned: bool | None = None) -> DisplacementField:
    """Draw a field on the fixed grid itself, on a lattice along its axes, or on one that is turned against it."""
    rng = np.random.default_rng(draw(SEEDS))
    kinds = ["turned"] if aligned is False else ["same", "aligned"] if aligned else ["same", "aligned", "turned"]
    kind = draw(st.sampled_from(kinds))
    grid = fixed
    if kind != "same":
        shape = draw(st.tuples(*[st.integers(1, 9)] * fixed.ndim))
        grid = lattice_around(fixed, rng, shape=shape, aligned=kind == "aligned")
    size = draw(st.sampled_from([0.5, 3.0])) * float(np.mean(fixed.spacing))
    vectors = (rng.normal(size=(fixed.ndim, *grid.shape)) * size).astype(draw(st.sampled_from(["f4", "f8"])))
    return DisplacementField(grid, vectors)


@st.composite
def transforms(draw: st.DrawFn, fixed: Grid) -> Transform:
    """Draw any transform, composites among them."""
    stage = st.one_of(affines(fixed), bsplines(fixed), fields(fixed))
    if draw(st.booleans()):
        return draw(stage)
    return Composite(tuple(draw(st.lists(stage, min_size=1, max_size=3))))
