"""prepare.py SOURCE TARGET CASE ...: a whole mouse brain, a stack of planes, seen twice.

Both images are the stack as it is delivered: planes from the back to the front, rows from the top to the bottom,
columns from the left to the right, 50 um apart and 40 x 40 um wide. The moving one is given another brightness and a
known deformation when it is built, block by block (warp.json). Nothing is read here.
"""

import json
import sys
from pathlib import Path

STACK = {"file": "planes/*.tif", "spacing": [0.04, 0.04, 0.05], "unit": "mm", "axes": "psl"}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Refer both images of each case to the planes."""
    del source
    for case in cases:
        (target / case).mkdir(parents=True)
        for image in ("fixed", "moving"):
            (target / case / f"{image}.json").write_text(json.dumps(STACK))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
