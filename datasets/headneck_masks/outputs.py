"""outputs.py SOURCE TARGET [CASE ...]: the masks drawn before radiotherapy and registered, as outputs to be scored.

SOURCE is the provider's folder. Each case gets what a segmentation method leaves: ``TARGET/<case>/labels.nii.gz``, the
provider's file as it is, and ``labels.json``, the names of its values, which are the truth's. Without cases, all that
are there are laid out::

    python datasets/headneck_masks/outputs.py archives/headneck_masks outputs

The provider publishes their Dice (dice.csv in the same folder), so that they check how a segmentation is scored.
"""

import json
import re
import shutil
import sys
from pathlib import Path

NAMES = {"1": "primary tumour", "2": "lymph nodes"}


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Copy each case's mask, and write its names."""
    found = {}
    for path in (source / "prediction_masks").glob("*_preRT_mask_registered.nii.gz"):
        if number := re.match(r"[0-9]+", path.name):
            found[f"case{int(number[0]):02d}"] = path
    absent = sorted(set(cases) - set(found))
    if absent or not found:
        raise SystemExit(f"{source}/prediction_masks: no mask of {', '.join(absent) or 'any case'} there")
    for case in cases or sorted(found):
        (target / case).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found[case], target / case / "labels.nii.gz")
        (target / case / "labels.json").write_text(json.dumps(NAMES, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
