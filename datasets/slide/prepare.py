"""prepare.py SOURCE TARGET CASE ...: one region of a whole slide, seen twice.

Both images are the slide as it is scanned; the moving one is given another stain and a known deformation when it is
built, block by block. Nothing is read here.
"""

import json
import sys
from pathlib import Path

#: The second stain: a mixture of the first one's colours, under a light of its own.
SECOND = {
    "mix": [[0.75, 0.1, 0.1], [0.1, 0.6, 0.3], [0.05, 0.25, 0.7]],
    "offset": [10.0, 0.0, -2.0],
    "slope": [0.02, -0.015],
    "curve": 0.02,
    "noise": 2.0,
    "seed": 11,
}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Refer both images of each case to the slide."""
    del source
    for case in cases:
        (target / case).mkdir(parents=True)
        for image in ("fixed", "moving"):
            look = {"appearance": SECOND} if image == "moving" else {}
            (target / case / f"{image}.json").write_text(json.dumps({"file": "cmu_small_region.svs"} | look))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
