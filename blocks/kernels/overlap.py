"""How often each label occurs in two label maps, and in both at once, block by block: partial, combine, finalize.

A block's labels become rows of a small sorted table before anything is counted: a label such as 614454277 costs one
row, never a table as long as its number. Runs of equal voxels are counted at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.integer] | npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Voxels of each label.

    Parameters
    ----------
    ids
        (n,) int64, ascending: every label that one of the maps holds, the background 0 too.
    fixed, warped, both
        (n,) int64: voxels of the label in the first map, in the second, and in both at one place.
    """

    ids: Integers
    fixed: Integers
    warped: Integers
    both: Integers

    def select(self, ids: Iterable[int]) -> LabelCounts:
        """Return the counts of these labels, in the order given; zeros for a label that neither map holds."""
        wanted = np.array(list(ids), dtype=np.int64)
        place = np.searchsorted(self.ids, wanted)
        found = np.zeros(wanted.size, dtype=bool)
        inside = place < self.ids.size
        found[inside] = self.ids[place[inside]] == wanted[inside]
        columns = []
        for counts in (self.fixed, self.warped, self.both):
            column = np.zeros(wanted.size, dtype=np.int64)
            column[found] = counts[place[found]]
            columns.append(column)
        return LabelCounts(wanted, columns[0], columns[1], columns[2])


def partial(fixed: Labels, warped: Labels) -> LabelCounts:
    """Count the labels of one block of two maps.

    Parameters
    ----------
    fixed, warped
        Label maps of one shape, any integer type or bool.
    """
    if fixed.shape != warped.shape:
        msg = f"label maps are counted voxel by voxel and need one shape, got {fixed.shape} and {warped.shape}"
        raise ValueError(msg)
    first, second = common_type(fixed, warped)
    ids, counts = _count(first.ravel(), second.ravel())
    return LabelCounts(ids, counts[0], counts[1], counts[2])


def combine(parts: Iterable[LabelCounts]) -> LabelCounts:
    """Return the counts of all the parts together."""
    known = list(parts)
    nothing = np.zeros(0, dtype=np.int64)
    ids = np.unique(np.concatenate([part.ids for part in known])) if known else nothing
    totals = np.zeros((3, ids.size), dtype=np.int64)
    for part in known:
        rows = np.searchsorted(ids, part.ids)
        totals[:, rows] += np.stack((part.fixed, part.warped, part.both))
    return LabelCounts(ids, totals[0], totals[1], totals[2])


def dice(counts: LabelCounts) -> npt.NDArray[np.float64]:
    """Return each label's Dice, (n,): 0 where only one map holds it, NaN where neither does and there is no answer."""
    with np.errstate(invalid="ignore"):
        return np.asarray(2.0 * counts.both / (counts.fixed + counts.warped))


def distinct(labels: Labels) -> Integers:
    """Return the labels that a map holds, ascending, without the background 0: (n,) int64."""
    plain = common_type(labels, labels)[0].ravel()
    ids = _count(plain, plain)[0]
    return np.asarray(ids[ids != 0])


def common_type(fixed: Labels, warped: Labels) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Return both maps in one of the three types that kernels are compiled for: uint8, int32 or int64.

    Raises
    ------
    ValueError
        When a map is not of integers, or holds a number beyond int64.
    """
    for labels in (fixed, warped):
        if labels.dtype.kind not in "bui":
            msg = f"a label map holds integers, got {labels.dtype}"
            raise ValueError(msg)
        if labels.dtype == np.uint64 and labels.size and int(labels.max()) > np.iinfo(np.int64).max:
            msg = f"a label map holds the label {int(labels.max())}, which is beyond the largest int64"
            raise ValueError(msg)
    wide = max((labels.dtype for labels in (fixed, warped)), key=_width)
    target = (np.uint8, np.int32, np.int64)[_width(wide)]
    return (
        np.ascontiguousarray(fixed).astype(target, copy=False),
        np.ascontiguousarray(warped).astype(target, copy=False),
    )


def _width(dtype: np.dtype[np.generic]) -> int:
    if dtype in (np.dtype(bool), np.dtype(np.uint8)):
        return 0
    return 1 if np.can_cast(dtype, np.int32) else 2


@numba.njit(cache=True, nogil=True)
def _count(fixed, warped):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    # Rows of the table, ascending; `n` of them are in use.
    ids = np.zeros(64, dtype=np.int64)
    counts = np.zeros((3, 64), dtype=np.int64)
    n = 0
    start = 0
    size = fixed.size
    while start < size:
        first = fixed[start]
        second = warped[start]
        stop = start + 1
        while stop < size and fixed[stop] == first and warped[stop] == second:
            stop += 1
        for column in range(2):
            label = np.int64(first) if column == 0 else np.int64(second)
            row = np.searchsorted(ids[:n], label)
            if row == n or ids[row] != label:
                if n == ids.size:
                    ids = np.concatenate((ids, np.zeros_like(ids)))
                    counts = np.concatenate((counts, np.zeros_like(counts)), axis=1)
                for k in range(n, row, -1):
                    ids[k] = ids[k - 1]
                    for c in range(3):
                        counts[c, k] = counts[c, k - 1]
                ids[row] = label
                for c in range(3):
                    counts[c, row] = 0
                n += 1
            counts[column, row] += stop - start
            if column == 1 and first == second:
                counts[2, row] += stop - start
        start = stop
    return ids[:n].copy(), counts[:, :n].copy()
