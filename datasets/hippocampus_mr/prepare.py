"""prepare.py SOURCE TARGET CASE ...: the crops of two people's hippocampi, as they are.

A case ``033_046`` has crop 033 fixed and crop 046 moving. Two of the crops have their first voxel at the world's
origin, the others at (1, 1, 1) of NIfTI's world; the files are kept so.
"""

import shutil
import sys
from pathlib import Path


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Copy each case's images and label maps."""
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        for side, number in zip(("fixed", "moving"), case.split("_"), strict=True):
            name = f"hippocampus_{number}.nii.gz"
            shutil.copyfile(source / "images" / name, folder / f"{side}.nii.gz")
            shutil.copyfile(source / "labels" / name, folder / "truth" / f"{side}_labels.nii.gz")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
