"""Register a pair by the authors' anatomix and ConvexAdam command at its defaults, and write its field.

The command takes two arrays of one grid: the moving image is brought onto the fixed one first. CT is clipped as the
authors' README does.
"""

import os
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: Hounsfield units that a CT is clipped to.
WINDOW = ("-450", "450")


def lowest(image: sitk.Image) -> float:
    """Return the lowest value of an image: what lies outside it is taken to be that dark."""
    extremes = sitk.MinimumMaximumImageFilter()
    extremes.Execute(image)
    return extremes.GetMinimum()


def clipping() -> list[str]:
    """Return the options that clip each CT."""
    words = []
    for side in ("fixed", "moving"):
        if os.environ[f"FIDOPT_{side.upper()}_MODALITY"] in {"ct", "cbct"}:
            words += [f"--{side}_minclip", WINDOW[0], f"--{side}_maxclip", WINDOW[1]]
    return words


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    fixed, moving = (sitk.ReadImage(path, sitk.sitkFloat32) for path in (fixed_path, moving_path))
    brought = sitk.Resample(moving, fixed, sitk.Transform(), sitk.sitkLinear, lowest(moving))
    sitk.WriteImage(fixed, "fixed_grid.nii.gz")
    sitk.WriteImage(brought, "moving_grid.nii.gz")
    environment, here = Path(os.environ["FIDOPT_ENV"]), Path.cwd()
    source = environment / "source"
    words = ["run_convex_adam_with_network_feats.py", "--exp_name", "fidopt", "--result_path", str(here)]
    words += ["--fixed", str(here / "fixed_grid.nii.gz"), "--moving", str(here / "moving_grid.nii.gz")]
    words += ["--ckpt_path", str(source / "model-weights" / "anatomix.pth"), *clipping()]
    # It finds its network by a path from its own folder.
    told = {**os.environ, "PYTHONPATH": str(source)}
    folder = source / "anatomix" / "registration"
    subprocess.run([environment / "bin" / "python", *words], check=True, cwd=folder, env=told)
    (steps,) = here.glob("disp_*.nii.gz")
    write(out, np.asarray(nibabel.load(steps).dataobj, dtype=np.float64), fixed)


def write(out: str, steps: np.ndarray, fixed: sitk.Image) -> None:
    """Write voxel displacements (x, y, z, 3; along the array's axes) as world ones, along LPS."""
    to_world = np.reshape(fixed.GetDirection(), (3, 3)) * np.array(fixed.GetSpacing())
    world = (steps.reshape(*fixed.GetSize(), 3) @ to_world.T).transpose(2, 1, 0, 3)
    field = sitk.GetImageFromArray(np.ascontiguousarray(world, dtype=np.float32), isVector=True)
    field.CopyInformation(fixed)
    sitk.WriteImage(field, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
