"""Register a pair by SimpleITK's symmetric-forces demons, coarse to fine, and write the displacement field."""

import os
import sys

import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: Voxels an axis that become one, coarse to fine, and the iterations at each; see NOTES.md.
LEVELS = ((8, 100), (4, 100), (2, 50), (1, 20))
#: A level is left out when it would leave an axis fewer voxels than this.
LEAST_VOXELS = 16
#: Width, in voxels, of the Gaussian that regularises the field after each iteration: the filter's own default is 1.
FIELD_SIGMA_VOXELS = 1.5


def read_scalar(path: str) -> sitk.Image:
    """Read an image as float32, a vector image as the mean of its components."""
    image = sitk.ReadImage(path)
    components = image.GetNumberOfComponentsPerPixel()
    if components == 1:
        return sitk.Cast(image, sitk.sitkFloat32)
    channels = [sitk.VectorIndexSelectionCast(image, k, sitk.sitkFloat32) for k in range(components)]
    return sitk.NaryAdd(channels) / components


def lowest(image: sitk.Image) -> float:
    """Return the lowest value of an image: what lies outside it is taken to be that dark."""
    extremes = sitk.MinimumMaximumImageFilter()
    extremes.Execute(image)
    return extremes.GetMinimum()


def coarser(image: sitk.Image, factors: list[int]) -> sitk.Image:
    """Return a smoothed image with ``factors`` voxels made one on each axis, covering the same part of the world."""
    spacing = image.GetSpacing()
    smooth = image
    for axis, factor in enumerate(factors):
        if factor > 1:
            smooth = sitk.RecursiveGaussian(smooth, 0.5 * factor * spacing[axis], direction=axis)
    size = [-(-n // f) for n, f in zip(image.GetSize(), factors, strict=True)]
    middle = image.TransformContinuousIndexToPhysicalPoint([(f - 1) / 2 for f in factors])
    wide = [s * f for s, f in zip(spacing, factors, strict=True)]
    return sitk.Resample(smooth, size, sitk.Transform(), sitk.sitkLinear, middle, wide, image.GetDirection())


def demons(fixed: sitk.Image, moving: sitk.Image) -> sitk.Image:
    """Return the displacement field (float64 vectors, LPS) that takes points of ``fixed`` to points of ``moving``.

    Parameters
    ----------
    fixed, moving
        Scalar images on one grid.
    """
    dimension = fixed.GetDimension()
    field = None
    for shrink, iterations in LEVELS:
        factors = [max(1, min(shrink, n // LEAST_VOXELS)) for n in fixed.GetSize()]
        if shrink > 1 and max(factors) < shrink:
            continue
        reference, floating = coarser(fixed, factors), coarser(moving, factors)
        registration = sitk.FastSymmetricForcesDemonsRegistrationFilter()
        registration.SetNumberOfIterations(iterations)
        registration.SmoothDisplacementFieldOn()
        registration.SetStandardDeviations([FIELD_SIGMA_VOXELS] * dimension)
        if field is None:
            field = registration.Execute(reference, floating)
        else:
            start = spread(field, reference)
            field = registration.Execute(reference, floating, start)
    return field


def spread(field: sitk.Image, grid: sitk.Image) -> sitk.Image:
    """Return a coarser field on a finer grid; beyond its outer voxel centres its edge values hold."""
    resample = sitk.ResampleImageFilter()
    resample.SetReferenceImage(grid)
    resample.SetInterpolator(sitk.sitkLinear)
    resample.UseNearestNeighborExtrapolatorOn()
    resample.SetOutputPixelType(sitk.sitkVectorFloat64)
    return resample.Execute(field)


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid as float32."""
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(int(os.environ["FIDOPT_THREADS"]))
    fixed, moving = read_scalar(fixed_path), read_scalar(moving_path)
    moving = sitk.Resample(moving, fixed, sitk.Transform(), sitk.sitkLinear, lowest(moving))
    moving = sitk.HistogramMatching(
        moving, fixed, numberOfHistogramLevels=1024, numberOfMatchPoints=7, thresholdAtMeanIntensity=True
    )
    field = sitk.Cast(demons(fixed, moving), sitk.sitkVectorFloat32)
    field.CopyInformation(fixed)
    sitk.WriteImage(field, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
