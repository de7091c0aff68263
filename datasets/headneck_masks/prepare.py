"""prepare.py SOURCE TARGET CASE ...: the tumours halfway through radiotherapy, as they are; the images are not given.

The masks drawn before radiotherapy and registered onto these lie beside them in the provider's folder. They are no
truth and are left there; outputs.py lays them out as outputs that can be scored.
"""

import shutil
import sys
from pathlib import Path


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Copy each case's label map."""
    for case in cases:
        (target / case / "truth").mkdir(parents=True)
        name = f"{int(case.removeprefix('case'))}_midRT_mask.nii.gz"
        shutil.copyfile(source / "groundtruth_masks" / name, target / case / "truth" / "labels.nii.gz")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
