"""Warps against SimpleITK in float64: every transform, type and interpolation, on grids as awkward as real ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks.graphs.warp import warp
from blocks.grid import Grid
from blocks.image import image_of
from blocks.transforms import Affine, BSpline, Composite, DisplacementField
from tests import strategies
from tests.itk import itk_warp


def smooth(shape: tuple[int, ...], rng: np.random.Generator, size: float) -> np.ndarray:
    """A smooth displacement field (ndim, *shape) of amplitude ``size``."""
    waves = [np.indices(shape) * rng.uniform(0.05, 0.3, (len(shape),) + (1,) * len(shape)) for _ in shape]
    return np.stack([size * np.sin(wave.sum(axis=0) + rng.uniform(0, 6)) for wave in waves])


def pair(ndim: int) -> tuple[Grid, Grid]:
    """Oblique, anisotropic, odd-sized grids that overlap for the most part."""
    rng = np.random.default_rng(ndim)
    turn, other = strategies.rotation(rng, ndim, most=0.4), strategies.rotation(rng, ndim, most=0.4)
    fixed = Grid.of((23, 41, 57)[-ndim:], spacing=(0.7, 0.9, 1.7)[:ndim], origin=(5, -40, 100)[:ndim], direction=turn)
    moving = Grid.of((27, 45, 51)[-ndim:], spacing=(0.8, 0.8, 1.5)[:ndim], direction=other)
    middle = fixed.world((np.array(fixed.shape) - 1) / 2) - moving.world((np.array(moving.shape) - 1) / 2)
    return fixed, Grid.of(moving.shape, spacing=moving.spacing, origin=middle, direction=other)


def transform_of(kind: str, fixed: Grid) -> Affine | BSpline | DisplacementField | Composite:
    rng = np.random.default_rng(9)
    n = fixed.ndim
    middle = fixed.world((np.array(fixed.shape) - 1) / 2)
    turn = strategies.rotation(rng, n, most=0.2) * 1.05
    affine = Affine.of(turn, middle - turn @ middle + 0.3)
    lattice = strategies.lattice_around(fixed, rng, shape=(7, 8, 9)[-n:], aligned=kind != "turned-bspline")
    spline = BSpline(lattice, rng.normal(size=(n, *lattice.shape)) * 2)
    field = DisplacementField(fixed, smooth(fixed.shape, rng, 3.0).astype(np.float32))
    coarse = strategies.lattice_around(fixed, rng, shape=(9, 13, 17)[-n:], aligned=kind != "turned-field")
    return {
        "affine": affine,
        "bspline": spline,
        "turned-bspline": spline,
        "field": field,
        "coarse-field": DisplacementField(coarse, smooth(coarse.shape, rng, 3.0)),
        "turned-field": DisplacementField(coarse, smooth(coarse.shape, rng, 3.0)),
        "affine-bspline": Composite((affine, spline)),
        "bspline-affine": Composite((spline, affine)),
        "field-bspline-affine": Composite((field, spline, affine)),
    }[kind]


def assert_equals_itk(warped: np.ndarray, expected: np.ndarray) -> None:
    """At most one grey level apart and 99.99 % equal; floats to the rounding of their type."""
    if warped.dtype.kind == "f":
        eps = float(np.finfo(warped.dtype).eps)
        np.testing.assert_allclose(warped.astype(np.float64), expected, rtol=2 * eps, atol=1e-9)
        return
    if warped.dtype.kind == "b":
        expected = np.rint(expected)
    else:
        info = np.iinfo(warped.dtype)
        expected = np.clip(np.rint(expected), info.min, info.max)
    apart = np.abs(warped.astype(np.float64) - expected)
    largest = np.abs(expected).max(initial=0.0)
    if largest > 2**45:
        # Whole numbers beyond what float64 tells apart: both warps are right to the rounding of a position.
        assert apart.max() <= 1e-12 * largest
        return
    assert apart.max(initial=0.0) <= 1
    assert (apart > 0).mean() <= 1e-4


KINDS = [
    "affine",
    "bspline",
    "turned-bspline",
    "field",
    "coarse-field",
    "turned-field",
    "affine-bspline",
    "bspline-affine",
    "field-bspline-affine",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ndim", [2, 3])
def test_every_transform_warps_as_itk_on_oblique_anisotropic_odd_grids(kind, ndim):
    fixed, moving = pair(ndim)
    transform = transform_of(kind, fixed)
    array = np.random.default_rng(1).integers(0, 65536, moving.shape, dtype=np.uint16)
    for interpolation in ("linear", "nearest"):
        warped = warp(image_of(array, moving), transform, fixed, interpolation=interpolation).compute().values
        expected = itk_warp(array, moving, transform, fixed, interpolation=interpolation)
        assert (expected > 0).mean() > 0.4
        assert_equals_itk(warped, expected)


@strategies.QUICK
@given(data=st.data())
def test_any_image_through_any_transform_warps_as_itk(data):
    fixed = data.draw(strategies.grids(least=2))
    moving = data.draw(strategies.moving_grids(fixed))
    transform = data.draw(strategies.transforms(fixed))
    array = data.draw(strategies.voxels(moving.shape, channels=True))
    background = data.draw(st.sampled_from([0, 1]))
    interpolation = data.draw(st.sampled_from(["linear", "nearest"]))
    warped = warp(image_of(array, moving), transform, fixed, interpolation=interpolation, background=background)
    assert warped.dtype == array.dtype
    for channel, result in zip(array, warped.compute().values, strict=True):
        expected = itk_warp(channel, moving, transform, fixed, interpolation=interpolation, background=background)
        assert_equals_itk(result, expected)


@pytest.mark.parametrize("seed", range(8))
def test_voxels_on_the_very_edge_of_a_bsplines_valid_region_move_as_in_itk(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(8, 20, 3))
    spacing, origin = rng.uniform(0.3, 3, 3).round(2), rng.uniform(-100, 100, 3).round(1)
    flip = np.diag(rng.choice([1.0, -1.0], 3))
    fixed = Grid.of(shape, spacing=spacing, origin=origin, direction=flip.ravel())
    # The valid region goes from the first voxel centre to the last one.
    cells = rng.integers(1, 6, 3)
    between = (np.array(shape[::-1]) - 1) * spacing / cells
    lattice = Grid.of(cells[::-1] + 3, spacing=between, origin=origin - flip @ between, direction=flip.ravel())
    transform = BSpline(lattice, rng.normal(size=(3, *lattice.shape)))
    array = rng.normal(size=shape)
    warped = warp(image_of(array, fixed), transform, fixed).compute().values
    np.testing.assert_allclose(warped, itk_warp(array, fixed, transform, fixed), rtol=0, atol=1e-9)
