"""Register a pair by deedsBCV at its defaults, and write its displacements as the field of the fixed image's grid.

deedsBCV reads two arrays of one size and no geometry, and counts in voxels: the pair is brought onto one grid of cubic
voxels first, as many as the fixed image has.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: Spacings that differ by less than this part count as cubic.
CUBIC = 1e-3


def lowest(image: sitk.Image) -> float:
    """Return the lowest value of an image: what lies outside it is taken to be that dark."""
    extremes = sitk.MinimumMaximumImageFilter()
    extremes.Execute(image)
    return extremes.GetMinimum()


def cubic_grid(fixed: sitk.Image) -> sitk.Image:
    """Return an empty image of cubic voxels, as many as ``fixed`` has, that covers it from face to face."""
    spacing, size = np.array(fixed.GetSpacing()), np.array(fixed.GetSize())
    if np.ptp(spacing) <= CUBIC * spacing.min():
        return fixed
    side = float(np.prod(spacing) ** (1 / 3))
    count = np.maximum(1, np.ceil(size * spacing / side - 1e-6)).astype(int)
    # The middle of both grids is one point of the world.
    corner = ((size - 1) - (count - 1) * side / spacing) / 2
    grid = sitk.Image([int(n) for n in count], sitk.sitkUInt8)
    grid.SetSpacing([side] * 3)
    grid.SetOrigin(fixed.TransformContinuousIndexToPhysicalPoint([float(c) for c in corner]))
    grid.SetDirection(fixed.GetDirection())
    return grid


def brought(image: sitk.Image, grid: sitk.Image, name: str) -> Path:
    """Write an image, resampled linearly onto a grid, and return the file."""
    resampled = sitk.Resample(image, grid, sitk.Transform(), sitk.sitkLinear, lowest(image), sitk.sitkFloat32)
    sitk.WriteImage(resampled, name)
    return Path(name).resolve()


def read_steps(path: Path, size: tuple[int, ...]) -> np.ndarray:
    """Return the voxel displacements (3, x, y, z; along the axes x, y, z) of a file of deedsBCV, on ``size`` voxels.

    The file holds three volumes of a coarser grid, x fastest: along the second axis, the first, the third.
    """
    values = np.fromfile(path, dtype="<f4")
    step = round((np.prod(size) * 3 / len(values)) ** (1 / 3))
    coarse = next(
        (
            shape
            for spacing in (step, *range(1, 17))
            if np.prod(shape := [n // spacing for n in size]) * 3 == len(values)
        ),
        None,
    )
    if coarse is None:
        sys.exit(f"{path} holds {len(values)} numbers, which fit no grid of control points of {size} voxels")
    volumes = values.reshape(3, *coarse[::-1]).transpose(0, 3, 2, 1)[[1, 0, 2]]
    for axis, (fine, few) in enumerate(zip(size, coarse, strict=True), start=1):
        volumes = stretched(volumes, axis, np.arange(fine) * (few / fine))
    return volumes


def stretched(values: np.ndarray, axis: int, at: np.ndarray) -> np.ndarray:
    """Return values read linearly at positions along an axis, the last one holding beyond it."""
    last = values.shape[axis] - 1
    low = np.minimum(np.floor(at).astype(int), last)
    shape = [-1 if k == axis else 1 for k in range(values.ndim)]
    part = (at - low).reshape(shape)
    below, above = np.take(values, low, axis), np.take(values, np.minimum(low + 1, last), axis)
    return below * (1 - part) + above * part


def field_of(steps: np.ndarray, grid: sitk.Image) -> sitk.Image:
    """Return voxel displacements (3, x, y, z) as a field of world displacements (LPS) on a grid."""
    to_world = np.reshape(grid.GetDirection(), (3, 3)) * np.array(grid.GetSpacing())
    world = np.tensordot(to_world, steps, axes=1).transpose(3, 2, 1, 0)
    field = sitk.GetImageFromArray(np.ascontiguousarray(world, dtype=np.float64), isVector=True)
    field.CopyInformation(grid)
    return field


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(int(os.environ["FIDOPT_THREADS"]))
    fixed, moving = (sitk.ReadImage(path, sitk.sitkFloat32) for path in (fixed_path, moving_path))
    grid = cubic_grid(fixed)
    files = [brought(image, grid, name) for image, name in ((fixed, "cubic.nii.gz"), (moving, "floating.nii.gz"))]
    program = Path(os.environ["FIDOPT_ENV"]) / "deedsBCV"
    subprocess.run([program, "-F", files[0], "-M", files[1], "-O", Path("deeds").resolve()], check=True)
    field = field_of(read_steps(Path("deeds_displacements.dat"), grid.GetSize()), grid)
    resample = sitk.ResampleImageFilter()
    resample.SetReferenceImage(fixed)
    resample.SetInterpolator(sitk.sitkLinear)
    resample.UseNearestNeighborExtrapolatorOn()
    resample.SetOutputPixelType(sitk.sitkVectorFloat32)
    written = resample.Execute(field)
    written.CopyInformation(fixed)
    sitk.WriteImage(written, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
