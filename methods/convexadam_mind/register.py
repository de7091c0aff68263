"""Register a pair by convex_adam_pt at its defaults, and write its voxel displacements as world ones.

The moving image is brought onto the fixed grid first: the function takes two arrays of one grid.
"""

import json
import os
import sys

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import torch
from convexAdam.convex_adam_MIND import convex_adam_pt


def lowest(image: sitk.Image) -> float:
    """Return the lowest value of an image: what lies outside it is taken to be that dark."""
    extremes = sitk.MinimumMaximumImageFilter()
    extremes.Execute(image)
    return extremes.GetMinimum()


def on_grid(path: str, fixed: sitk.Image, outside: float | None, interpolator: int) -> sitk.Image:
    """Return a moving image on the fixed grid; ``outside`` None takes the image's lowest value."""
    image = sitk.ReadImage(path, sitk.sitkFloat32)
    value = lowest(image) if outside is None else outside
    return sitk.Resample(image, fixed, sitk.Transform(), interpolator, value)


def mask_settings(fixed: sitk.Image) -> dict[str, str]:
    """Return the two masks, on the fixed grid, as the function takes them: files in the working folder."""
    paths = {side: os.environ.get(f"FIDOPT_{side.upper()}_MASK") for side in ("fixed", "moving")}
    missing = [side for side, path in paths.items() if not path]
    if missing:
        sys.exit(f"these settings need both images' masks; the dataset gives none for: {', '.join(missing)}")
    sitk.WriteImage(sitk.ReadImage(paths["fixed"]), "fixed_mask.nii.gz")
    sitk.WriteImage(on_grid(paths["moving"], fixed, 0.0, sitk.sitkNearestNeighbor), "moving_mask.nii.gz")
    return {"path_fixed_mask": "fixed_mask.nii.gz", "path_moving_mask": "moving_mask.nii.gz"}


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    threads = int(os.environ["FIDOPT_THREADS"])
    torch.set_num_threads(threads)
    torch.manual_seed(int(os.environ["FIDOPT_SEED"]))
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
    fixed = sitk.ReadImage(fixed_path, sitk.sitkFloat32)
    moving = on_grid(moving_path, fixed, None, sitk.sitkLinear)
    settings = json.loads(os.environ.get("FIDOPT_SETTINGS") or "{}")
    if settings.get("use_mask"):
        settings |= mask_settings(fixed)
    # Arrays x, y, z, as the authors' own command loads them.
    arrays = [torch.from_numpy(sitk.GetArrayFromImage(image).T.copy()) for image in (fixed, moving)]
    write(out, convex_adam_pt(*arrays, device=torch.device(os.environ["FIDOPT_DEVICE"]), **settings), fixed)


def write(out: str, steps: np.ndarray, fixed: sitk.Image) -> None:
    """Write voxel displacements (x, y, z, 3; components along the array's axes) as world ones, along LPS."""
    to_world = np.reshape(fixed.GetDirection(), (3, 3)) * np.array(fixed.GetSpacing())
    world = (steps @ to_world.T).transpose(2, 1, 0, 3)
    field = sitk.GetImageFromArray(world.astype(np.float32), isVector=True)
    field.CopyInformation(fixed)
    sitk.WriteImage(field, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
