"""How well two images sit together, from their intensities alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.transforms import Affine
from fidopt.alignment.starts import Side, read_at

Floats = npt.NDArray[np.float64]

#: Bins a side of the joint histogram.
BINS = 64
#: Most points of the fixed body that are looked at, evenly taken.
POINTS = 1 << 18
#: Between which percentiles of its body an image's values are told apart.
_PERCENTILES = (1.0, 99.0)


@dataclass(frozen=True)
class Score:
    """How well a transform puts two images together.

    Parameters
    ----------
    overlap
        Dice of the two bodies, from 0 to 1.
    information
        Normalised mutual information over the part common to both bodies, from 1 to 2; 1 where there is no such part.
    """

    overlap: float
    information: float

    @property
    def value(self) -> float:
        """Return the overlap times what the information has above 1: it rises by chance as the common part shrinks."""
        return self.overlap * (self.information - 1.0)


class Scorer:
    """Scores transforms of one pair; what does not depend on the transform is worked out once.

    Parameters
    ----------
    fixed, moving
        The pair.
    """

    def __init__(self, fixed: Side, moving: Side) -> None:
        self._fixed, self._moving = fixed, moving
        points = fixed.body.points()
        self._points = points[:: -(-len(points) // POINTS)]
        self._values = read_at(fixed, self._points)
        self._fixed_range = limits(fixed)
        self._moving_range = limits(moving)

    def score(self, transform: Affine) -> Score:
        """Return how well a transform (fixed world -> moving world) puts the pair together."""
        there = transform.points(self._points)
        common = self._moving.body.at(there)
        both = float(common.mean()) * self._fixed.body.volume
        overlap = 2 * both / (self._fixed.body.volume + self._moving.body.volume)
        ours, theirs = self._values[common], read_at(self._moving, there[common])
        return Score(overlap, information(ours, theirs, ranges=(self._fixed_range, self._moving_range)))


def information(a: Floats, b: Floats, *, ranges: tuple[tuple[float, float], tuple[float, float]]) -> float:
    """Return the normalised mutual information of two lists of values: (H(a) + H(b)) / H(a, b) (Studholme, 1999).

    Parameters
    ----------
    a, b
        (n,) values at the same places.
    ranges
        Least and greatest value told apart, of each; what lies beyond counts as the nearest of them.

    Returns
    -------
    float
        From 1, where one says nothing of the other, to 2; 1 where there are no values, or one of the two never changes.
    """
    cells = _bins(a, ranges[0]) * BINS + _bins(b, ranges[1])
    counts = np.bincount(cells, minlength=BINS * BINS).reshape(BINS, BINS)
    joint = _entropy(counts)
    if joint <= 0.0:
        return 1.0
    return (_entropy(counts.sum(axis=0)) + _entropy(counts.sum(axis=1))) / joint


def limits(side: Side) -> tuple[float, float]:
    """Return the values an image is told apart between: nearly all of its body, without padding and specks."""
    values = side.image.values[side.body.on(side.grid)]
    low, high = np.percentile(values, _PERCENTILES)
    return float(low), float(high)


def _bins(values: Floats, within: tuple[float, float]) -> npt.NDArray[np.int64]:
    """Return each value's bin, of equal bins over a range."""
    low, high = within
    width = (high - low) / BINS
    return np.clip((values - low) / width if width > 0 else np.zeros_like(values), 0, BINS - 1).astype(np.int64)


def _entropy(counts: npt.NDArray[np.int64]) -> float:
    shares = counts[counts > 0] / max(int(counts.sum()), 1)
    return float(-(shares * np.log(shares)).sum())
