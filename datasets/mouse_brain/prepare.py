"""prepare.py SOURCE TARGET CASE ...: a whole mouse brain, a stack of planes, seen twice.

Both images are the stack as it is delivered: planes from the back to the front, rows from the top to the bottom,
columns from the left to the right, 50 um apart and 40 x 40 um wide. The moving one is given another brightness and a
known deformation when it is built, block by block. Nothing is read here.
"""

import json
import sys
from pathlib import Path

STACK = {"file": "planes/*.tif", "spacing": [0.04, 0.04, 0.05], "unit": "mm", "axes": "psl"}
#: The second acquisition: dimmer, under a light of its own.
SECOND = {"mix": [[0.8]], "offset": [40.0], "slope": [0.06, -0.04, 0.05], "curve": 0.04, "noise": 12.0, "seed": 12}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Refer both images of each case to the planes."""
    del source
    for case in cases:
        (target / case).mkdir(parents=True)
        for image in ("fixed", "moving"):
            look = {"appearance": SECOND} if image == "moving" else {}
            (target / case / f"{image}.json").write_text(json.dumps(STACK | look))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
