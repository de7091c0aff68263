"""Register a pair by NiftyReg's reg_f3d at its defaults, and write its field along LPS."""

import os
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np

#: NIfTI's intent of a vector whose components readers leave as they are.
VECTOR = 1007


def prepared(path: str, name: str) -> str:
    """Return a file NiftyReg takes: the image's own, or a vector image with its components as channels in time.

    NiftyReg reads channels along the fourth axis; a file of five axes gives it another field without a word.
    """
    image = nibabel.load(path)
    if image.ndim != 5:
        return path
    values = np.asarray(image.dataobj)
    header = image.header.copy()
    header.set_intent("none")
    nibabel.save(nibabel.Nifti1Image(values.reshape(*values.shape[:3], values.shape[4]), None, header), name)
    return name


def main(fixed: str, moving: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    programs = Path(os.environ["FIDOPT_ENV"]) / "nifty_reg"
    threads, dimension = os.environ["FIDOPT_THREADS"], int(os.environ["FIDOPT_DIMENSION"])
    ready, other = prepared(fixed, "fixed_channels.nii.gz"), prepared(moving, "moving_channels.nii.gz")
    # Waiting threads would otherwise spin on a busy machine.
    told = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    f3d = ["-ref", ready, "-flo", other, "-cpp", "cpp.nii", "-res", "warped.nii", "-omp", threads]
    transform = ["-ref", ready, "-disp", "cpp.nii", "ras.nii", "-omp", threads]
    for program, words in (("reg_f3d", f3d), ("reg_transform", transform)):
        subprocess.run([programs / program, *words], check=True, env=told)
    write(out, "ras.nii", nibabel.load(fixed), dimension)


def write(out: str, ras: str, like: nibabel.Nifti1Image, dimension: int) -> None:
    """Write NiftyReg's displacements, which are along RAS, along LPS: the first two components negated."""
    values = np.array(nibabel.load(ras).dataobj, dtype=np.float32)
    field = values.reshape(*like.shape[:dimension], *[1] * (4 - dimension), -1)[..., :dimension]
    field[..., :2] *= -1
    header = like.header.copy()
    header.set_data_dtype(np.float32)
    header.set_intent(VECTOR)
    header.set_slope_inter(1, 0)
    nibabel.save(nibabel.Nifti1Image(field, None, header), out)


if __name__ == "__main__":
    main(*sys.argv[1:4])
