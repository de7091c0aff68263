"""Write the quantiles of an image's grey values: all that is kept of it."""

import json
import sys
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: How many quantiles are kept, the lowest and the highest value among them.
COUNT = 1001


def main(image: str, out: str) -> None:
    """Read ``image`` and write its quantiles to ``out``."""
    values = sitk.GetArrayFromImage(sitk.ReadImage(image))
    Path(out).write_text(json.dumps(np.quantile(values, np.linspace(0, 1, COUNT)).tolist()), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:3])
