"""Structural similarity of two images inside a mask: partial, combine, finalize.

The map is that of Wang, Bovik, Sheikh and Simoncelli (IEEE Transactions on Image Processing 13(4), 2004) with the usual
window of the field's libraries: seven voxels along each axis, all of one weight, sample (co)variances, K1 = 0.01 and
K2 = 0.03. Both images are 0 outside the mask, and whatever lies outside the image is outside the mask: the mean over
the mask's voxels depends on what is inside it alone, and not on how far the image goes on around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.floating] | npt.NDArray[np.integer]
Mask = npt.NDArray[np.bool_]

#: Voxels of the window along each axis, and how far it reaches from its middle.
WINDOW = 7
RADIUS = WINDOW // 2
#: What keeps the quotients away from 0 over 0, as parts of the dynamic range.
K1, K2 = 0.01, 0.03
#: Bytes of one statistic of the planes in work.
_BYTES = 1 << 23


@dataclass(frozen=True, slots=True)
class Similarity:
    """What the map adds up to over the mask.

    Parameters
    ----------
    total
        Sum of the map.
    count
        Voxels of the mask.
    """

    total: float
    count: int

    @property
    def mean(self) -> float | None:
        """The structural similarity; None where the mask is empty."""
        return self.total / self.count if self.count else None


def similarity_map(first: Values, second: Values, *, dynamic_range: float) -> Floats:
    """Return the map wherever the whole window fits.

    Parameters
    ----------
    first, second
        Images of one shape, ([z,] y, x), of at least :data:`WINDOW` voxels along each axis.
    dynamic_range
        Of the intensities.

    Returns
    -------
    map
        float64, six voxels shorter along each axis.
    """
    x, y = (np.asarray(image, dtype=np.float64) for image in (first, second))
    size = WINDOW**x.ndim
    sample = size / (size - 1)
    mean_x, mean_y = (_window_mean(image, size) for image in (x, y))
    variance_x = (_window_mean(x * x, size) - mean_x * mean_x) * sample
    variance_y = (_window_mean(y * y, size) - mean_y * mean_y) * sample
    covariance = (_window_mean(x * y, size) - mean_x * mean_y) * sample
    c1, c2 = (K1 * dynamic_range) ** 2, (K2 * dynamic_range) ** 2
    above = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return np.asarray(above / ((mean_x * mean_x + mean_y * mean_y + c1) * (variance_x + variance_y + c2)))


def partial(
    first: Values, second: Values, mask: Mask, *, dynamic_range: float, core: tuple[slice, ...] | None = None
) -> Similarity:
    """Add up the map over the mask's voxels in one block.

    Parameters
    ----------
    first, second
        Images of one shape, ([z,] y, x); finite inside the mask.
    mask
        The same shape.
    dynamic_range
        Of the intensities.
    core
        The part of the block whose voxels count; the rest, up to :data:`RADIUS` voxels on each side, is what their
        windows reach. By default all of it. Where the block holds less around its core, the image ends there.
    """
    shape = mask.shape
    inner = core or tuple(slice(0, n) for n in shape)
    around = [
        (max(0, RADIUS - part.start), max(0, RADIUS - (n - part.stop))) for part, n in zip(inner, shape, strict=True)
    ]
    reach = tuple(
        slice(max(0, part.start - RADIUS), min(n, part.stop + RADIUS)) for part, n in zip(inner, shape, strict=True)
    )
    seen = np.pad(mask[reach], around)
    images = [np.pad(np.where(mask[reach], image[reach], 0.0), around) for image in (first, second)]
    counted = seen[tuple(slice(RADIUS, n - RADIUS) for n in seen.shape)]
    # A sum a plane, added up exactly: it makes no difference how many planes are in work at a time.
    planes: list[float] = []
    step = max(1, _BYTES // max(1, 8 * math.prod(seen.shape[1:])))
    for start in range(0, counted.shape[0], step):
        rows = slice(start, min(start + step, counted.shape[0]) + 2 * RADIUS)
        values = similarity_map(images[0][rows], images[1][rows], dynamic_range=dynamic_range)
        inside = counted[start : start + step]
        planes += [float(np.sum(plane[where])) for plane, where in zip(values, inside, strict=True)]
    return Similarity(math.fsum(planes), int(np.count_nonzero(counted)))


def combine(parts: Iterable[Similarity]) -> Similarity:
    """Return what the parts add up to."""
    known = list(parts)
    return Similarity(math.fsum(part.total for part in known), sum(part.count for part in known))


def _window_mean(image: Floats, size: int) -> Floats:
    """Return the mean over the window wherever it fits."""
    for axis in range(image.ndim):
        length = image.shape[axis] - WINDOW + 1
        total = np.zeros((*image.shape[:axis], length, *image.shape[axis + 1 :]))
        for shift in range(WINDOW):
            total += image[(slice(None),) * axis + (slice(shift, shift + length),)]
        image = total
    return image / size
