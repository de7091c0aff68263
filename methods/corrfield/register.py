"""Register a pair of lungs by the authors' corrField at its defaults, and write its displacements as a field.

The pair is brought onto the fixed image's axes at the authors' resolution: an axis finer than 1 mm is brought to 1 mm,
and a volume that still has more than 50 million voxels is coarsened evenly.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: The finest spacing of the authors' scans, in mm, and the most voxels a GPU is given.
FINEST_MM, MOST_VOXELS = 1.0, 50e6


def lowest(image: sitk.Image) -> float:
    """Return the lowest value of an image: what lies outside it is taken to be that dark."""
    extremes = sitk.MinimumMaximumImageFilter()
    extremes.Execute(image)
    return extremes.GetMinimum()


def working_grid(fixed: sitk.Image) -> sitk.Image:
    """Return the grid the pair is registered on: ``fixed`` itself where it is coarse and small enough."""
    spacing, size = np.array(fixed.GetSpacing()), np.array(fixed.GetSize())
    wanted = np.maximum(spacing, FINEST_MM)
    count = np.ceil(size * spacing / wanted - 1e-6)
    if np.prod(count) > MOST_VOXELS:
        wanted = wanted * (np.prod(count) / MOST_VOXELS) ** (1 / 3)
        count = np.floor(size * spacing / wanted)
    if np.allclose(wanted, spacing):
        return fixed
    corner = ((size - 1) - (count - 1) * wanted / spacing) / 2
    grid = sitk.Image([int(n) for n in count], sitk.sitkUInt8)
    grid.SetSpacing([float(s) for s in wanted])
    grid.SetOrigin(fixed.TransformContinuousIndexToPhysicalPoint([float(c) for c in corner]))
    grid.SetDirection(fixed.GetDirection())
    return grid


def brought(path: str, grid: sitk.Image, name: str, *, mask: bool = False) -> str:
    """Write an image on a grid, a mask by its nearest voxel, and return the file's name."""
    image = sitk.ReadImage(path, sitk.sitkFloat32)
    how, outside = (sitk.sitkNearestNeighbor, 0.0) if mask else (sitk.sitkLinear, lowest(image))
    sitk.WriteImage(sitk.Resample(image, grid, sitk.Transform(), how, outside), name)
    return name


def write(out: str, steps: np.ndarray, grid: sitk.Image, fixed: sitk.Image) -> None:
    """Write voxel displacements (x, y, z, 3; along the array's axes) on ``grid`` as world ones (LPS) on ``fixed``."""
    to_world = np.reshape(grid.GetDirection(), (3, 3)) * np.array(grid.GetSpacing())
    world = (steps @ to_world.T).transpose(2, 1, 0, 3)
    field = sitk.GetImageFromArray(np.ascontiguousarray(world, dtype=np.float64), isVector=True)
    field.CopyInformation(grid)
    resample = sitk.ResampleImageFilter()
    resample.SetReferenceImage(fixed)
    resample.SetInterpolator(sitk.sitkLinear)
    resample.UseNearestNeighborExtrapolatorOn()
    resample.SetOutputPixelType(sitk.sitkVectorFloat32)
    written = resample.Execute(field)
    written.CopyInformation(fixed)
    sitk.WriteImage(written, out, useCompression=True)


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    mask = os.environ.get("FIDOPT_FIXED_MASK")
    if not mask:
        sys.exit("corrField looks for its keypoints inside the fixed lung mask, and the dataset gives none")
    fixed = sitk.ReadImage(fixed_path, sitk.sitkFloat32)
    grid = working_grid(fixed)
    files = [
        brought(fixed_path, grid, "fixed_grid.nii.gz"),
        brought(moving_path, grid, "moving_grid.nii.gz"),
        brought(mask, grid, "mask_grid.nii.gz", mask=True),
    ]
    copy = json.loads(os.environ.get("FIDOPT_SETTINGS") or "{}").get("copy")
    environment = Path(os.environ["FIDOPT_ENV"])
    if copy == "l2r":
        source = environment / "source_l2r"
        if not source.is_dir():
            sys.exit("corrfield@l2r needs the organisers' copy: set FIDOPT_CORRFIELD_L2R_SOURCE, and set it up again")
        words = [str(Path(__file__).with_name("organisers.py")), str(source), *files, "corrfield.nii.gz"]
    else:
        program = str(environment / "source" / "corrfield.py")
        words = [program, "-F", files[0], "-M", files[1], "-m", files[2], "-O", "corrfield"]
    subprocess.run([environment / "bin" / "python", *words], check=True)
    steps = np.asarray(nibabel.load("corrfield.nii.gz").dataobj, dtype=np.float64)
    write(out, steps.reshape(*grid.GetSize(), 3), grid, fixed)


if __name__ == "__main__":
    main(*sys.argv[1:4])
