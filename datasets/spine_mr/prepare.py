"""prepare.py SOURCE TARGET CASE ...: pairs of one neck's contrasts, and of its T2 image and a template, as they are.

A case is named by its fixed and its moving image: ``t2_t1w`` has T2 fixed and T1 moving. Each image keeps its own axes:
the arrays of T2 run to the back, up and to the right, those of T1 to the right, forward and up, and T2* is oblique.
"""

import shutil
import sys
from pathlib import Path

#: Image -> its file and that of its cord.
FILES = {
    "t1w": ("t1w.nii.gz", "t1w_seg-manual.nii.gz"),
    "t2": ("t2.nii.gz", "t2_seg-manual.nii.gz"),
    "t2s": ("t2s.nii.gz", "t2s_seg.nii.gz"),
    "pam50": ("PAM50_small_t2.nii.gz", "PAM50_small_cord.nii.gz"),
}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Copy each case's images and cords."""
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        for side, name in zip(("fixed", "moving"), case.split("_"), strict=True):
            image, cord = FILES[name]
            shutil.copyfile(source / image, folder / f"{side}.nii.gz")
            shutil.copyfile(source / cord, folder / "truth" / f"{side}_labels.nii.gz")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
