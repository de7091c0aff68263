"""prepare.py SOURCE TARGET CASE ...: an ovule under the microscope, seen twice, with its cells.

Both images and both label maps are datasets of one HDF5 file, which states their voxels' size. The moving ones go
through a known deformation when they are built, block by block. Nothing is read here.
"""

import json
import sys
from pathlib import Path

FILE = "sample_ovule.h5"
#: The second acquisition: dimmer, under a light of its own.
SECOND = {"mix": [[0.85]], "offset": [6.0], "slope": [0.05, -0.05, 0.03], "curve": 0.03, "noise": 3.0, "seed": 13}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Refer the images and the label maps of each case to the file."""
    del source
    for case in cases:
        (target / case / "truth").mkdir(parents=True)
        for side in ("fixed", "moving"):
            look = {"appearance": SECOND} if side == "moving" else {}
            (target / case / f"{side}.json").write_text(json.dumps({"file": f"{FILE}:raw"} | look))
            labels = target / case / "truth" / f"{side}_labels_cells.json"
            labels.write_text(json.dumps({"file": f"{FILE}:label"}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
