"""prepare.py SOURCE TARGET CASE ...: a prostate in ultrasound, fixed, and in MR, moving, as they are.

A label file holds one structure a volume: the gland first, then up to two small regions. The gland becomes label 1; the
regions become labels 2 and 3 of the set ``regions``, since they lie in the gland and partly beside it. No voxel is in
both regions.
"""

import shutil
import sys
from pathlib import Path

import nibabel
import numpy as np


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write each case's images and label maps."""
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        for side in ("fixed", "moving"):
            shutil.copyfile(source / f"{side}_images" / f"{case}.nii.gz", folder / f"{side}.nii.gz")
            file = nibabel.load(source / f"{side}_labels" / f"{case}.nii.gz")
            structures = binary(np.asanyarray(file.dataobj), name=f"{side}_labels/{case}.nii.gz")
            labels = folder / "truth" / f"{side}_labels"
            write(labels.with_name(f"{labels.name}.nii.gz"), structures[..., 0].astype(np.uint8), file)
            if structures.shape[3] > 1:
                regions = structures[..., 1:] @ np.arange(2, structures.shape[3] + 1)
                write(labels.with_name(f"{labels.name}_regions.nii.gz"), regions.astype(np.uint8), file)


def binary(values: np.ndarray, *, name: str) -> np.ndarray:
    """Return the structures (x, y, z, structure; bool) of a label file, which has no last axis where it holds one."""
    structures = values.reshape(*values.shape[:3], -1)
    if not np.isin(structures, (0, 1)).all():
        raise SystemExit(f"{name}: each volume must hold 0 and 1 alone")
    if (structures[..., 1:].sum(axis=3) > 1).any():
        raise SystemExit(f"{name}: two of the regions share voxels, which one label map cannot hold")
    return structures.astype(bool)


def write(path: Path, labels: np.ndarray, like: nibabel.Nifti1Image) -> None:
    """Write a label map where the file lies that it was taken from."""
    image = nibabel.Nifti1Image(labels, like.affine)
    image.set_sform(like.affine, code=1)
    image.set_qform(None, code=0)
    nibabel.save(image, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
