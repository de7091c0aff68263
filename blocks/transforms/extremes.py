"""The least and the largest of each component over any box of a lattice, signed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32] | npt.NDArray[np.float64]

#: Stands for an infinite displacement, so that a zero of a matrix times it is zero.
FAR = 1e100
#: Voxels a side of the blocks of a table.
SIDE = 16
#: Boxes of at most so many voxels are looked at themselves.
_SMALL = 1 << 15


def extremes(box: npt.NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the least and the largest value (ndim,) of each component of a box (ndim, [z,] y, x).

    NaN moves a point nowhere that can be read, so it does not count; a component of NaN alone is [0, 0].
    """
    axes = tuple(range(1, box.ndim))
    return _held(np.fmin.reduce(box, axis=axes), np.fmax.reduce(box, axis=axes))


@dataclass(frozen=True, eq=False)
class Table:
    """The extremes of blocks of 16 voxels a side: the array is gone through once, however many boxes are asked for.

    Parameters
    ----------
    array
        (ndim, [z,] y, x).
    least, most
        (ndim, blocks an axis).
    """

    array: Vectors
    least: Vectors
    most: Vectors

    @classmethod
    def of(cls, array: Vectors) -> Table:
        """Return the table of an array."""
        slabs = [array[:, a : a + SIDE] for a in range(0, array.shape[1], SIDE)]
        # Both of a slab before the next slab: it is still in the cache.
        ends = [(np.minimum.reduce(slab, axis=1), np.maximum.reduce(slab, axis=1)) for slab in slabs]
        least, most = (np.stack(found, axis=1) for found in zip(*ends, strict=True))
        for axis in range(2, array.ndim):
            starts = np.arange(0, array.shape[axis], SIDE)
            least, most = np.minimum.reduceat(least, starts, axis), np.maximum.reduceat(most, starts, axis)
        return cls(array, least, most)

    def over(self, box: tuple[slice, ...]) -> tuple[Floats, Floats]:
        """Return values (ndim,) that the least and the largest of each component in a box (z, y, x) do not exceed."""
        voxels = self.array[(slice(None), *box)]
        if voxels[0].size <= _SMALL:
            return extremes(voxels)
        blocks = (slice(None), *(slice(s.start // SIDE, -(-s.stop // SIDE)) for s in box))
        least, most = self.least[blocks], self.most[blocks]
        if not (np.isfinite(least).all() and np.isfinite(most).all()):
            return extremes(voxels)
        return extremes(least)[0], extremes(most)[1]


def _held(least: npt.NDArray[np.floating], most: npt.NDArray[np.floating]) -> tuple[Floats, Floats]:
    low, high = least.astype(np.float64), most.astype(np.float64)
    if np.isfinite(low).all() and np.isfinite(high).all():
        return low, high
    low, high = (np.asarray(np.nan_to_num(end, nan=0.0, neginf=-FAR, posinf=FAR)) for end in (low, high))
    return low, high
