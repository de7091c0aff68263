"""Register a pair by SimpleITK's symmetric-forces demons, coarse to fine, and write the displacement field."""

import math
import os
import sys

import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: Voxels an axis that become one, coarse to fine, and the iterations at each; see NOTES.md.
LEVELS = ((8, 100), (4, 100), (2, 50), (1, 50))
#: A level is left out when it would leave every axis fewer voxels than this; the finest, when it has more in all.
LEAST_SIDE, MOST_VOXELS = 16, 2**18
#: Width, in voxels, of the Gaussian that smooths the field after each iteration.
FIELD_SIGMA_VOXELS = 1.5
#: Width of the window that brightness and contrast are taken out over, as a part of the image's shortest side, and
#: the part of the mean variance that counts as no contrast.
WINDOW, FLAT = 0.03, 0.1


def read_scalar(path: str) -> sitk.Image:
    """Read an image as float32, a vector image as the mean of its components."""
    image = sitk.ReadImage(path)
    components = image.GetNumberOfComponentsPerPixel()
    if components == 1:
        return sitk.Cast(image, sitk.sitkFloat32)
    channels = [sitk.VectorIndexSelectionCast(image, k, sitk.sitkFloat32) for k in range(components)]
    return sitk.Cast(sitk.NaryAdd(channels) / components, sitk.sitkFloat32)


def lowest(image: sitk.Image) -> float:
    """Return the lowest value of an image: what lies outside it is taken to be that dark."""
    extremes = sitk.MinimumMaximumImageFilter()
    extremes.Execute(image)
    return extremes.GetMinimum()


def blurred(image: sitk.Image, widths: list[float]) -> sitk.Image:
    """Return an image smoothed by a Gaussian of one width an axis, in its unit; a width of 0 leaves an axis alone."""
    for axis, width in enumerate(widths):
        if width > 0:
            image = sitk.RecursiveGaussian(image, width, direction=axis)
    return image


def normalised(image: sitk.Image) -> sitk.Image:
    """Return an image with its local mean taken out and its local contrast made one.

    Demons compare grey values as they are; what a lamp, a coil or a contrast agent does to them over a distance is no
    motion.
    """
    sides = [n * s for n, s in zip(image.GetSize(), image.GetSpacing(), strict=True)]
    window = [max(WINDOW * min(sides), s) for s in image.GetSpacing()]
    detail = image - blurred(image, window)
    variance = blurred(detail * detail, window)
    flat = FLAT * float(sitk.GetArrayViewFromImage(variance).mean())
    return detail / sitk.Sqrt(sitk.Maximum(variance, 0.0) + max(flat, 1e-12))


def coarser(image: sitk.Image, factors: list[int]) -> sitk.Image:
    """Return a smoothed image with ``factors`` voxels made one on each axis, covering the same part of the world."""
    spacing = image.GetSpacing()
    smooth = blurred(image, [0.5 * f * s if f > 1 else 0.0 for f, s in zip(factors, spacing, strict=True)])
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
    field = None
    for factors, iterations in levels(fixed):
        reference, floating = coarser(fixed, factors), coarser(moving, factors)
        registration = sitk.FastSymmetricForcesDemonsRegistrationFilter()
        registration.SetNumberOfIterations(iterations)
        registration.SmoothDisplacementFieldOn()
        registration.SetStandardDeviations([FIELD_SIGMA_VOXELS] * fixed.GetDimension())
        start = () if field is None else (spread(field, reference),)
        field = registration.Execute(reference, floating, *start)
    return spread(field, fixed)


def levels(image: sitk.Image) -> list[tuple[list[int], int]]:
    """Return the factors an axis and the iterations of each level an image is registered at, coarse to fine."""
    size = image.GetSize()
    chosen = []
    for shrink, iterations in LEVELS:
        factors = [max(1, min(shrink, n // LEAST_SIDE)) for n in size]
        wanted = max(factors) == shrink if shrink > 1 else math.prod(size) <= MOST_VOXELS or not chosen
        if wanted:
            chosen.append((factors, iterations))
    return chosen


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
    field = demons(normalised(fixed), normalised(moving))
    field = sitk.Cast(field, sitk.sitkVectorFloat32)
    field.CopyInformation(fixed)
    sitk.WriteImage(field, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
