"""Where a synthesis is wrong: its error inside and outside the mask, and in the four quarters of the real intensities.

A quarter holds the voxels between two quartiles of the real image inside the mask, the upper one included: in a CT air
and lung, fat, soft tissue, bone. One that no voxel lies in, where many have one value, is left out. What is measured:
``mae``, the mean absolute error; ``bias``, the mean of made minus real; ``voxels``; ``low`` and ``high``, the real
values that bound a quarter. Sums are taken in one order, in float64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

#: Names of the regions: all that is scored, the rest of the image, and the quarters from the darkest.
INSIDE, OUTSIDE = "inside", "outside"
QUARTERS = ("quarter 1", "quarter 2", "quarter 3", "quarter 4")


def regions(made: npt.ArrayLike, real: npt.ArrayLike, mask: npt.ArrayLike) -> dict[str, dict[str, float]]:
    """Return what was measured -> region -> value.

    Parameters
    ----------
    made, real
        The synthetic image and the real one, ((c,) (z,) y, x); of several channels errors are averaged, and the
        quarters are those of their mean.
    mask
        Where it is scored, ((z,) y, x), not 0.

    Returns
    -------
    dict
        Empty where the mask is.
    """
    inside = np.asarray(mask) != 0
    if not inside.any():
        return {}
    truth = np.asarray(real, dtype=np.float64)
    change = np.asarray(made, dtype=np.float64) - truth
    error, signed, level = (_flat(values, inside.ndim) for values in (np.abs(change), change, truth))
    places = {INSIDE: inside} | ({} if inside.all() else {OUTSIDE: ~inside})
    bounds = np.quantile(level[inside], [0, 0.25, 0.5, 0.75, 1])
    for number, (name, low, high) in enumerate(zip(QUARTERS, bounds[:-1], bounds[1:], strict=True)):
        quarter = inside & (level <= high) & ((level > low) | (number == 0))
        if quarter.any():
            places[name] = quarter
    limits = dict(zip(QUARTERS, zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True), strict=True))
    return {
        "mae": {name: float(error[place].mean()) for name, place in places.items()},
        "bias": {name: float(signed[place].mean()) for name, place in places.items()},
        "voxels": {name: float(np.count_nonzero(place)) for name, place in places.items()},
        "low": {name: limits[name][0] for name in QUARTERS if name in places},
        "high": {name: limits[name][1] for name in QUARTERS if name in places},
    }


def _flat(values: Values, ndim: int) -> Values:
    """Return the mean over the channels, where there are any."""
    return np.asarray(values.mean(axis=0)) if values.ndim > ndim else values
