"""Register an atlas to an image by affine mutual information and demons, and carry its labels over."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: Voxels an axis that become one, and the iterations of the demons at each level.
LEVELS = ((4, 60), (2, 40))


def scalar(path: Path) -> sitk.Image:
    """Return an image as float32, a vector image as the mean of its components."""
    image = sitk.ReadImage(str(path))
    count = image.GetNumberOfComponentsPerPixel()
    if count == 1:
        return sitk.Cast(image, sitk.sitkFloat32)
    return sitk.NaryAdd([sitk.VectorIndexSelectionCast(image, k, sitk.sitkFloat32) for k in range(count)]) / count


def affine(image: sitk.Image, atlas: sitk.Image, seed: int) -> sitk.Transform:
    """Return the affine transform, image to atlas, of the highest mutual information."""
    method = sitk.ImageRegistrationMethod()
    start = sitk.CenteredTransformInitializer(
        image,
        atlas,
        sitk.AffineTransform(image.GetDimension()),
        sitk.CenteredTransformInitializerFilter.GEOMETRY,
    )
    method.SetInitialTransform(start, inPlace=False)
    method.SetMetricAsMattesMutualInformation(32)
    method.SetMetricSamplingStrategy(method.RANDOM)
    method.SetMetricSamplingPercentage(0.2, seed + 1)
    method.SetInterpolator(sitk.sitkLinear)
    method.SetOptimizerAsRegularStepGradientDescent(1.0, 1e-4, 200)
    method.SetOptimizerScalesFromPhysicalShift()
    method.SetShrinkFactorsPerLevel([4, 2])
    method.SetSmoothingSigmasPerLevel([2, 1])
    return method.Execute(image, atlas)


def coarser(image: sitk.Image, factor: int) -> sitk.Image:
    """Return a smoothed image with ``factor`` voxels made one on each axis that is long enough."""
    factors = [factor if n >= 8 * factor else 1 for n in image.GetSize()]
    return sitk.BinShrink(image, factors)


def demons(image: sitk.Image, atlas: sitk.Image) -> sitk.Transform:
    """Return the displacements, image to atlas, of two images of one grid and like grey values."""
    field = None
    for factor, iterations in LEVELS:
        fixed, moving = coarser(image, factor), coarser(atlas, factor)
        step = sitk.FastSymmetricForcesDemonsRegistrationFilter()
        step.SetNumberOfIterations(iterations)
        step.SetStandardDeviations([1.5] * image.GetDimension())
        start = () if field is None else (sitk.Resample(field, fixed),)
        field = step.Execute(sitk.HistogramMatching(fixed, moving), moving, *start)
    return sitk.DisplacementFieldTransform(sitk.Resample(field, image, sitk.Transform(), sitk.sitkLinear, 0.0))


def main(path: str, out: str) -> None:
    """Segment ``path`` into the folder ``out``."""
    atlas_folder = Path(os.environ["FIDOPT_ENV"]) / "atlas"
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(int(os.environ["FIDOPT_THREADS"]))
    image, atlas = scalar(Path(path)), scalar(atlas_folder / "image.nii.gz")
    coarse = affine(image, atlas, int(os.environ["FIDOPT_SEED"]))
    lowest = float(np.min(sitk.GetArrayViewFromImage(atlas)))
    fine = demons(image, sitk.Resample(atlas, image, coarse, sitk.sitkLinear, lowest))
    # The last one added is applied to a point first.
    whole = sitk.CompositeTransform([coarse, fine])
    labels = sitk.ReadImage(str(atlas_folder / "labels.nii.gz"))
    carried = sitk.Resample(labels, image, whole, sitk.sitkNearestNeighbor, 0)
    sitk.WriteImage(carried, f"{out}/labels.nii.gz", useCompression=True)
    shutil.copy(atlas_folder / "labels.json", out)


if __name__ == "__main__":
    main(*sys.argv[1:3])
