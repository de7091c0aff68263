"""prepare.py SOURCE TARGET CASE ...: the baseline scan fixed, the follow-up moving, both as they are.

The lung masks become the label set ``lungs``. Of the landmark pairs those are kept that lie inside both images: the
provider's images are cut smaller than the scans the points were placed on.
"""

import shutil
import sys
from pathlib import Path

import numpy as np

from blocks.image import grid_of
from fidopt.images.landmarks import read_landmarks, write_landmarks
from fidopt.images.readers import read_image

SIDES = {"fixed": "baseline", "moving": "followup"}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write the one case."""
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        points, inside = {}, []
        for side, visit in SIDES.items():
            image = source / f"3DCT_lung_{visit}.mha"
            shutil.copyfile(image, folder / f"{side}.mha")
            shutil.copyfile(source / f"3DCT_lung_{visit}_mask.mha", folder / "truth" / f"{side}_labels_lungs.mha")
            points[side] = read_landmarks(source / f"{visit}_landmarks.txt", ndim=3)
            inside.append(grid_of(read_image(image)).inside(points[side]))
        for side in SIDES:
            write_landmarks(folder / "truth" / f"{side}_landmarks.csv", points[side][np.logical_and(*inside)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
