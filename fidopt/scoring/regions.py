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
    change, level = _taken(made, real, inside)
    error, signed = np.abs(change).mean(axis=0), change.mean(axis=0)
    bounds = np.quantile(level, [0, 0.25, 0.5, 0.75, 1])
    places = {INSIDE: np.ones(level.shape, dtype=bool)}
    for number, (name, low, high) in enumerate(zip(QUARTERS, bounds[:-1], bounds[1:], strict=True)):
        quarter = (level <= high) & ((level > low) | (number == 0))
        if quarter.any():
            places[name] = quarter
    found = {name: (float(error[place].mean()), float(signed[place].mean())) for name, place in places.items()}
    counts = {name: float(np.count_nonzero(place)) for name, place in places.items()}
    if not inside.all():
        change, _ = _taken(made, real, ~inside)
        found[OUTSIDE] = float(np.abs(change).mean()), float(change.mean())
        counts[OUTSIDE] = float(np.count_nonzero(~inside))
    limits = dict(zip(QUARTERS, zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True), strict=True))
    order = [name for name in (INSIDE, OUTSIDE, *QUARTERS) if name in found]
    return {
        "mae": {name: found[name][0] for name in order},
        # Zero has no sign.
        "bias": {name: found[name][1] + 0.0 for name in order},
        "voxels": {name: counts[name] for name in order},
        "low": {name: limits[name][0] for name in QUARTERS if name in found},
        "high": {name: limits[name][1] for name in QUARTERS if name in found},
    }


def _taken(made: npt.ArrayLike, real: npt.ArrayLike, place: npt.NDArray[np.bool_]) -> tuple[Values, Values]:
    """Return made minus real at the voxels of a place, (channels, n), and their real value, (n,): no more is copied."""
    ours, theirs = (np.asarray(image)[..., place].astype(np.float64) for image in (made, real))
    change = (ours - theirs).reshape(-1, theirs.shape[-1])
    return change, theirs.reshape(change.shape).mean(axis=0)
