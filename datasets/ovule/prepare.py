"""prepare.py SOURCE TARGET CASE ...: an ovule under the microscope, seen twice, with its cells.

Both images and both label maps are datasets of one HDF5 file, which states their voxels' size. The moving ones go
through a known deformation when they are built, block by block (warp.json). Nothing is read here.
"""

import json
import sys
from pathlib import Path

FILE = "sample_ovule.h5"


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Refer the images and the label maps of each case to the file."""
    del source
    for case in cases:
        (target / case / "truth").mkdir(parents=True)
        for side in ("fixed", "moving"):
            (target / case / f"{side}.json").write_text(json.dumps({"file": f"{FILE}:raw"}))
            labels = target / case / "truth" / f"{side}_labels_cells.json"
            labels.write_text(json.dumps({"file": f"{FILE}:label"}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
