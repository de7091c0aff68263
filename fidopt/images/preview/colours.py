"""From numbers to colours: greys of an image, a hue a label, a scale that goes both ways from 1, one that rises."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]
Floats = npt.NDArray[np.float64]

#: What is told apart by two colours, which people who see two of the three primaries tell apart too.
TRUE: Colour = (0, 200, 255)
MADE: Colour = (255, 140, 0)
BOTH: Colour = (255, 255, 255)
WRONG: Colour = (255, 60, 60)
FOLD: Colour = (255, 230, 0)

#: Percentiles of the values that become black and white.
PERCENTILES = (1.0, 99.0)

#: Anchors of the two scales, evenly spaced.
_BOTH_WAYS: Sequence[Colour] = ((8, 48, 120), (66, 133, 200), (246, 246, 246), (214, 96, 77), (110, 5, 30))
_RISING: Sequence[Colour] = ((0, 0, 0), (70, 15, 110), (170, 40, 100), (240, 110, 40), (255, 215, 90), (255, 255, 230))


@dataclass(frozen=True)
class Scale:
    """Colours of numbers between two bounds; what lies beyond has the bound's.

    Parameters
    ----------
    low, high
        The bounds.
    ticks
        Numbers to write beside the scale.
    both_ways
        Logarithmic, with white in the middle, which is the geometric mean of the bounds; else it rises from black.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    both_ways: bool = False

    def place(self, values: npt.ArrayLike) -> Floats:
        """Return where numbers lie between the bounds, 0 to 1; NaN at 0."""
        array = np.asarray(values, dtype=np.float64)
        if self.both_ways:
            known = np.log(np.maximum(np.nan_to_num(array, nan=self.low), 1e-9) / self.low)
            return np.asarray(np.clip(known / np.log(self.high / self.low), 0, 1))
        return np.clip((np.nan_to_num(array, nan=self.low) - self.low) / (self.high - self.low), 0, 1)

    def colours(self, values: npt.ArrayLike) -> Picture:
        """Return the colours (..., 3) of numbers."""
        anchors = np.array(_BOTH_WAYS if self.both_ways else _RISING, dtype=np.float64)
        place = self.place(values) * (len(anchors) - 1)
        low = np.minimum(place.astype(np.intp), len(anchors) - 2)
        part = (place - low)[..., np.newaxis]
        mixed: Picture = np.rint(anchors[low] * (1 - part) + anchors[low + 1] * part).astype(np.uint8)
        return mixed


def rising(most: float) -> Scale:
    """Return a scale from 0 to the round number, of 1, 2 and 5 times powers of ten, at or above ``most``."""
    top = rounded_up(most) if np.isfinite(most) and most > 0 else 1.0
    return Scale(0.0, top, (0.0, top / 2, top))


def rounded_up(value: float) -> float:
    """Return the first number of 1, 2, 5, 10, 20, ... (and their tenths) that is not below a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9)))


def window_of(planes: Sequence[npt.NDArray[np.floating]]) -> tuple[float, float]:
    """Return the values that become black and white, by the percentiles of what is finite."""
    values = np.concatenate([plane[np.isfinite(plane)].ravel() for plane in planes])
    if values.size == 0:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(values, PERCENTILES))
    # Mostly background: the percentiles meet, the extremes do not.
    return (low, high) if high > low else (float(values.min()), float(values.max()))


def greys(plane: npt.NDArray[np.floating], window: tuple[float, float]) -> Picture:
    """Return a plane (rows, columns, 1 or 3 channels) as a picture whose black and white are the window's."""
    low, high = window
    scale = 255.0 / (high - low) if high > low else 0.0
    known = np.nan_to_num(plane, nan=low, posinf=high, neginf=low)
    grey = np.clip((known - low) * scale, 0, 255).astype(np.uint8)
    return np.broadcast_to(grey, (*grey.shape[:2], 3)).copy()


def label_colours(labels: npt.NDArray[np.floating]) -> Picture:
    """Return a colour a label: black for zero, else a hue that neighbouring numbers do not share."""
    values, inverse = np.unique(labels, return_inverse=True)
    table = np.array([label_colour(int(value)) for value in values], dtype=np.uint8)
    colours: Picture = table[inverse.reshape(labels.shape)]
    return colours


def label_colour(label: int) -> Colour:
    """Return a label's colour."""
    if label == 0:
        return (0, 0, 0)
    # Steps of the golden ratio spread any run of labels around the circle of hues.
    red, green, blue = colorsys.hsv_to_rgb(label * 0.618033988749895 % 1.0, 0.75, 1.0)
    return (round(255 * red), round(255 * green), round(255 * blue))
