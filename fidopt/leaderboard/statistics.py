"""The statistics of a board: a mean's interval, and whether two lines can be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Alternative = Literal["two-sided", "greater", "less"]

#: Chance of calling two equal lines different.
LEVEL = 0.05
#: With fewer pairs no two-sided signed-rank test can reach that level, whatever the cases say.
FEWEST_PAIRS = 6
#: Up to so many pairs the distribution is counted; beyond, the normal one is as good to many digits and far cheaper.
MOST_COUNTED = 60


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % t interval of a mean, or None for fewer than two values.

    ``mean -/+ t s / sqrt n`` with s of n - 1 degrees of freedom and t Student's 97.5 % quantile.
    """
    n = len(values)
    if n < 2:
        return None
    from scipy.stats import t as student

    array = np.asarray(values, dtype=np.float64)
    half = float(student.ppf(1 - LEVEL / 2, n - 1)) * float(array.std(ddof=1)) / math.sqrt(n)
    return float(array.mean()) - half, float(array.mean()) + half


def signed_rank(differences: Sequence[float], *, alternative: Alternative = "two-sided") -> tuple[float, float]:
    """Return Wilcoxon's W+ and its exact p value.

    Zeros are dropped and equal sizes share the mean of their ranks. The distribution of W+ over all signs is counted
    on doubled ranks, which are whole numbers, so that it is exact with ties too.

    Parameters
    ----------
    differences
        One number a pair.
    alternative
        "greater": the differences lie above zero.
    """
    array = np.asarray(differences, dtype=np.float64)
    array = array[array != 0]
    if array.size == 0:
        return 0.0, 1.0
    doubled = _doubled_ranks(np.abs(array))
    positive = int(doubled[array > 0].sum())
    above, below = _tails(doubled, positive) if array.size <= MOST_COUNTED else _normal_tails(doubled, positive)
    found = {"greater": above, "less": below, "two-sided": min(1.0, 2 * min(above, below))}
    return positive / 2, found[alternative]


def _doubled_ranks(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return twice the mid-rank of each size: an integer."""
    smaller = (sizes[:, None] > sizes[None, :]).sum(axis=1)
    equal = (sizes[:, None] == sizes[None, :]).sum(axis=1)
    return np.asarray(2 * smaller + equal + 1, dtype=np.int64)


def _tails(doubled: npt.NDArray[np.int64], positive: int) -> tuple[float, float]:
    """Return the chances of a sum of positive doubled ranks of at least, and of at most, ``positive``."""
    counts, signs = _sums(doubled), 2**doubled.size
    return sum(counts[positive:]) / signs, sum(counts[: positive + 1]) / signs


def _normal_tails(doubled: npt.NDArray[np.int64], positive: int) -> tuple[float, float]:
    """Return the same from the normal distribution, corrected by half a rank."""
    middle, spread = float(doubled.sum()) / 2, math.sqrt(float((doubled**2).sum())) / 2
    away = positive - middle
    above, below = (math.erfc((distance - 1) / (spread * math.sqrt(2))) / 2 for distance in (away, -away))
    return above, below


def _sums(doubled: npt.NDArray[np.int64]) -> list[int]:
    """Return in how many of all choices of signs the positive doubled ranks add up to 0, 1, 2, ..."""
    counts = [1]
    for rank in doubled.tolist():
        longer = counts + [0] * rank
        for total, count in enumerate(counts):
            longer[total + rank] += count
        counts = longer
    return counts
