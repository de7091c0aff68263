"""Label maps: whole numbers, however a tool stored them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fidopt.errors import InputError

#: Farthest that a stored label may be from the whole number it stands for.
TOLERANCE = 1e-3


def whole_labels(values: npt.NDArray[Any], *, name: str) -> npt.NDArray[Any]:
    """Return a label map as integers.

    Integers and booleans are kept as they are, ids of any size included. Floats within :data:`TOLERANCE` of whole
    numbers are rounded, to the smallest type that holds them.

    Parameters
    ----------
    values
        Labels ([z,] y, x).
    name
        What an error calls the file.

    Raises
    ------
    InputError
        When a value is not a whole number; the message lists the first few.
    """
    if values.dtype.kind in "iub":
        return values
    rounded = np.rint(values)
    # NaN and infinities are never close, so that they are listed with the rest; beyond 2^53 floats skip integers.
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(values - rounded) <= TOLERANCE) & (np.abs(rounded) <= 2.0**53))
    if wrong.any():
        found = np.unique(values[wrong])
        listed = ", ".join(f"{v:g}" for v in found[:8]) + (", ..." if found.size > 8 else "")
        msg = f"{name}: a label map holds whole numbers, but {int(wrong.sum())} voxels hold {listed}"
        raise InputError(f"{msg}; was it interpolated? write it with nearest-neighbour interpolation")
    low, high = (int(rounded.min()), int(rounded.max())) if rounded.size else (0, 0)
    return np.asarray(rounded.astype(_smallest(low, high)))


def _smallest(low: int, high: int) -> type[np.integer[Any]]:
    kinds = (np.uint8, np.uint16, np.uint32, np.uint64) if low >= 0 else (np.int8, np.int16, np.int32, np.int64)
    return next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
