"""prepare.py SOURCE TARGET CASE ...: pairs of neighbouring stained sections, the haematoxylin and eosin one fixed.

The points of a pair are given in one order; where one list is longer, its last points have no partner and are left
out.
"""

import shutil
import sys
from pathlib import Path

import numpy as np

from fidopt.images.landmarks import write_landmarks

FILES = {
    "rat_kidney": ("rat-kidney_/scale-5pc/Rat-Kidney_HE", "rat-kidney_/scale-5pc/Rat-Kidney_PanCytokeratin"),
    "lesions": ("lesions_/scale-5pc/Izd2-29-041-w35_HE", "lesions_/scale-5pc/Izd2-29-041-w35_proSPC"),
}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write each case's pictures and points."""
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        points = [points_of(source / f"{name}.csv") for name in FILES[case]]
        pairs = min(len(one) for one in points)
        for side, name, values in zip(("fixed", "moving"), FILES[case], points, strict=True):
            shutil.copyfile(source / f"{name}.jpg", folder / f"{side}.jpg")
            write_landmarks(folder / "truth" / f"{side}_landmarks.csv", values[:pairs])


def points_of(path: Path) -> np.ndarray:
    """Return the pixel positions (n, 2; x, y) of a table with a number, X and Y."""
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2), ndmin=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
