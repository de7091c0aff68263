"""Otsu's threshold of an image, block by block: ranges are joined, then histograms over the joint range are added.

The threshold is scikit-image's for a float image (``threshold_otsu``, 256 equal bins from the least to the greatest
value, the centre of the bin below the best cut), a bin's width at most from ITK's ``OtsuThresholdImageFilter`` with as
many bins. Values that are not finite are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled

#: Equal bins between the least and the greatest value.
BINS = 256

#: Values turned into float64 at a time.
_PIECE = 1 << 20

Counts = npt.NDArray[np.int64]


def grey(voxels: npt.NDArray[np.generic], *, coloured: bool) -> npt.NDArray[Any]:
    """Return one value a voxel: the mean of the channels in float64 where there are several.

    Parameters
    ----------
    voxels
        ((c,) [z,] y, x), real.
    coloured
        Whether the first axis is of channels.
    """
    if not coloured:
        return voxels
    return voxels[0] if voxels.shape[0] == 1 else np.asarray(voxels.mean(axis=0, dtype=np.float64))


def partial_range(values: npt.NDArray[np.generic]) -> tuple[float, float]:
    """Return the least and the greatest finite value of a block, or (inf, -inf) where it has none."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if finite.size == 0:
        return math.inf, -math.inf
    return float(finite.min()), float(finite.max())


def combine_ranges(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the range that holds every part's range."""
    low, high = math.inf, -math.inf
    for a, b in parts:
        low, high = min(low, a), max(high, b)
    return low, high


def partial(values: npt.NDArray[np.generic], *, low: float, high: float, bins: int = BINS) -> Counts:
    """Count a block's values (any shape and real type) in equal bins from ``low`` to ``high``, both included.

    Returns
    -------
    counts
        (bins,) int64, as ``numpy.histogram`` counts them; histograms of blocks are added with ``+``.
    """
    counts = np.zeros(bins, dtype=np.int64)
    if high > low:
        edges = np.linspace(low, high, bins + 1)
        flat = values.ravel()
        for start in range(0, flat.size, _PIECE):
            _count(flat[start : start + _PIECE].astype(np.float64), edges, bins / (high - low), counts)
    else:
        counts[0] = int(np.count_nonzero(values == low))
    return counts


@compiled
def _count(values, edges, scale, counts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    bins = counts.size
    low = edges[0]
    high = edges[bins]
    for value in values:
        if value >= low and value <= high:
            k = min(int((value - low) * scale), bins - 1)
            # A value on an edge may land one bin off by rounding; the edges decide.
            if value < edges[k]:
                k -= 1
            elif k < bins - 1 and value >= edges[k + 1]:
                k += 1
            counts[k] += 1


def otsu(counts: Counts, *, low: float, high: float) -> float:
    """Return the threshold that parts a histogram into the two classes furthest apart (Otsu, 1979).

    Parameters
    ----------
    counts
        (bins,) int64, the values in equal bins from ``low`` to ``high``.

    Returns
    -------
    threshold
        Centre of the last bin of the lower class: a value above it is foreground. An image of one value has its value
        as threshold, and no foreground.
    """
    if high <= low:
        return low
    edges = np.linspace(low, high, counts.size + 1)
    centres = (edges[:-1] + edges[1:]) / 2.0
    weights = counts.astype(np.float64)
    below, above = np.cumsum(weights), np.cumsum(weights[::-1])[::-1]
    sums = weights * centres
    mean_below = np.cumsum(sums) / np.maximum(below, 1.0)
    mean_above = np.cumsum(sums[::-1])[::-1] / np.maximum(above, 1.0)
    between = below[:-1] * above[1:] * (mean_below[:-1] - mean_above[1:]) ** 2
    return float(centres[int(np.argmax(between))])
