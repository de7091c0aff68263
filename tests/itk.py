"""The same grids, transforms and warps in SimpleITK, the reference of the engine's tests."""

from __future__ import annotations

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.transforms import Affine, BSpline, Composite, DisplacementField, Transform

INTERPOLATORS = {"linear": sitk.sitkLinear, "nearest": sitk.sitkNearestNeighbor, "cubic": sitk.sitkBSpline}


def itk_image(array: np.ndarray, grid: Grid, *, vector: bool = False) -> sitk.Image:
    """Return an image of an array on a grid; a vector image has its components last."""
    image = sitk.GetImageFromArray(array, isVector=vector)
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)
    return image


def itk_transform(transform: Transform) -> sitk.Transform:
    """Return a transform as SimpleITK's own."""
    if isinstance(transform, Affine):
        affine = sitk.AffineTransform(transform.ndim)
        affine.SetMatrix(transform.matrix)
        affine.SetTranslation(transform.offset)
        return affine
    if isinstance(transform, BSpline):
        spline = sitk.BSplineTransform(transform.ndim, 3)
        grid = transform.grid
        spline.SetFixedParameters([*map(float, grid.shape[::-1]), *grid.origin, *grid.spacing, *grid.direction])
        spline.SetParameters(transform.coefficients.ravel().tolist())
        return spline
    if isinstance(transform, DisplacementField):
        vectors = np.moveaxis(np.asarray(transform.held.array, dtype=np.float64), 0, -1)
        return sitk.DisplacementFieldTransform(itk_image(np.ascontiguousarray(vectors), transform.grid, vector=True))
    assert isinstance(transform, Composite)
    composite = sitk.CompositeTransform(transform.ndim)
    # ITK applies the transform that was added last first.
    for stage in reversed(transform.stages):
        composite.AddTransform(itk_transform(stage))
    return composite


def itk_warp(
    array: np.ndarray,
    moving: Grid,
    transform: Transform,
    fixed: Grid,
    *,
    interpolation: str = "linear",
    background: float = 0,
) -> np.ndarray:
    """Return one channel warped by SimpleITK in float64, not rounded."""
    image = itk_image(np.asarray(array, dtype=np.float64), moving)
    like = itk_image(np.zeros(fixed.shape, dtype=np.uint8), fixed)
    warped = sitk.Resample(
        image, like, itk_transform(transform), INTERPOLATORS[interpolation], float(background), sitk.sitkFloat64
    )
    return sitk.GetArrayFromImage(warped)
