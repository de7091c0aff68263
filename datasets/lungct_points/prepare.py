"""prepare.py SOURCE TARGET CASE ...: the points and lung masks of three pairs whose images are not given.

The provider's points are voxel coordinates of the fixed image's grid, which is its mask's; both sides are on it.
"""

import shutil
import sys
from pathlib import Path

import nibabel
import numpy as np

from fidopt.images.landmarks import write_landmarks

SIDES = {"fixed": "0000", "moving": "0001"}
SETS = {"landmarksTr": "landmarks", "keypointsTr": "landmarks_keypoints"}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write each case's mask and both sets of points."""
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        mask = source / "masksTr" / f"{case}_0000.nii.gz"
        shutil.copyfile(mask, folder / "fixed_mask.nii.gz")
        affine = nibabel.load(mask).affine
        for where, name in SETS.items():
            for side, number in SIDES.items():
                voxels = np.loadtxt(source / where / f"{case}_{number}.csv", delimiter=",", ndmin=2)
                # NIfTI's world has x to the right and y to the front; ITK's has x to the left and y to the back.
                world = (voxels @ affine[:3, :3].T + affine[:3, 3]) * [-1, -1, 1]
                write_landmarks(folder / "truth" / f"{side}_{name}.csv", world + 0.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
