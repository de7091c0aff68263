"""prepare.py SOURCE TARGET CASE ...: one region of a whole slide, seen twice.

Both images are the slide as it is scanned; the moving one is given another stain and a known deformation when it is
built, block by block (warp.json). Nothing is read here.
"""

import json
import sys
from pathlib import Path


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Refer both images of each case to the slide."""
    del source
    for case in cases:
        (target / case).mkdir(parents=True)
        for image in ("fixed", "moving"):
            (target / case / f"{image}.json").write_text(json.dumps({"file": "cmu_small_region.svs"}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
