"""Mean and spread of many values, block by block: partial, combine, finalize.

The values of one block become three numbers; blocks are combined in the order of a fixed lattice, so that the answer
has the same bits however the image was cut and whoever computed which part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Side of the lattice blocks that reductions run over, in voxels, counted from voxel zero of the whole image.
LATTICE = 64


@dataclass(frozen=True, slots=True)
class Moments:
    """How many values there are, their mean, and the sum of their squared distances from it."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0


def partial(values: npt.NDArray[np.float64]) -> Moments:
    """Return the moments of one block of values (any shape, float64).

    Distances are taken from the first value before anything is summed: a block of one repeated value has a spread of
    exactly zero, and a small spread on a large mean keeps its digits.
    """
    if values.size == 0:
        return Moments()
    pivot = float(values.flat[0])
    shifted = values.ravel() - pivot
    mean = float(shifted.mean())
    shifted -= mean
    # The second term takes back what rounding left in the mean.
    squares = float(np.square(shifted).sum()) - float(shifted.sum()) ** 2 / values.size
    return Moments(int(values.size), pivot + mean, max(squares, 0.0))


def combine(parts: Iterable[Moments]) -> Moments:
    """Return the moments of all the parts' values, taken in the order given (Chan, Golub and LeVeque, 1983)."""
    total = Moments()
    for part in parts:
        if part.count == 0:
            continue
        if total.count == 0:
            total = part
            continue
        count = total.count + part.count
        step = part.mean - total.mean
        mean = total.mean + step * (part.count / count)
        squares = total.squares + part.squares + step * step * (total.count * (part.count / count))
        total = Moments(count, mean, squares)
    return total


def deviation(moments: Moments) -> float | None:
    """Return the population standard deviation, or None where there was no value."""
    return math.sqrt(moments.squares / moments.count) if moments.count else None
