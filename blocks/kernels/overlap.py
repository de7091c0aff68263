"""How often each label occurs in two label maps, and in both at once, block by block: partial, combine, finalize.

A block's labels become rows of a small sorted table before anything is counted: a label such as 614454277 costs one
row, never a table as long as its number. Runs of equal voxels are counted at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled

Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.integer] | npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Voxels of each label.

    Parameters
    ----------
    ids
        (n,) int64: every label that one of the maps holds, the background 0 too, ascending; of a selection, the labels
        that were asked for, in the order they were.
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
        # A selection may be selected from, and is in any order.
        order = np.argsort(self.ids, kind="stable")
        rank = np.searchsorted(self.ids, wanted, sorter=order)
        inside = rank < self.ids.size
        place = np.zeros(wanted.size, dtype=np.intp)
        place[inside] = order[rank[inside]]
        found = inside.copy()
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
    """Return both maps in one of the types that kernels are compiled for: uint8, uint16, int32 or int64.

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
    target = (np.uint8, np.uint16, np.int32, np.int64)[_width(wide)]
    return (
        np.ascontiguousarray(fixed).astype(target, copy=False),
        np.ascontiguousarray(warped).astype(target, copy=False),
    )


def _width(dtype: np.dtype[np.generic]) -> int:
    narrow = [np.can_cast(dtype, target) for target in (np.uint8, np.uint16, np.int32)]
    return narrow.index(True) if any(narrow) else 3


#: Voxels looked at a time for where one of the labels changes.
_PIECE = 4096
#: Spreads the bits of a label over a table (multiplicative hashing: 2**64 over the golden ratio).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@compiled
def _slot(label, keys, rows):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return where in a table a label is, or where it would go: a table is at most half full."""
    mask = np.uint64(rows.size - 1)
    slot = ((np.uint64(label) * _SPREAD) >> np.uint64(32)) & mask
    while rows[slot] >= 0 and keys[slot] != label:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def _with_room(keys, rows, counts, n, room):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return tables that have room for so many more labels, with the rows there are."""
    if 2 * (n + room) <= rows.size:
        return keys, rows, counts
    size = rows.size
    while 2 * (n + room) > size:
        size *= 2
    more, places, wider = np.zeros(size, np.int64), np.full(size, -1, np.int64), np.zeros((3, size // 2), np.int64)
    wider[:, :n] = counts[:, :n]
    for k in range(rows.size):
        if rows[k] >= 0:
            slot = _slot(keys[k], more, places)
            more[slot], places[slot] = keys[k], rows[k]
    return more, places, wider


@compiled
def _runs(a, b, changes, starts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write where runs of equal pairs start in a piece, and then its end; return how many runs there are."""
    length = a.size
    changes[0] = 1
    for i in range(1, length):
        changes[i] = (a[i] != a[i - 1]) | (b[i] != b[i - 1])
    changes[length:] = 0
    words = changes.view(np.uint64)
    n = 0
    for word in range((length + 7) // 8):
        if words[word] != 0:
            for i in range(8 * word, 8 * word + 8):
                starts[n] = i
                n += changes[i]
    starts[n] = length
    return n


@compiled
def _add(a, b, starts, runs, keys, rows, counts, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add the runs of a piece to the counts; return how many rows there are then."""
    first, second, both = counts[0], counts[1], counts[2]
    for k in range(runs):
        start = starts[k]
        run = starts[k + 1] - start
        one, other = np.int64(a[start]), np.int64(b[start])
        slot = _slot(one, keys, rows)
        if rows[slot] < 0:
            keys[slot], rows[slot] = one, n
            n += 1
        row = rows[slot]
        first[row] += run
        both[row] += run * (one == other)
        slot = _slot(other, keys, rows)
        if rows[slot] < 0:
            keys[slot], rows[slot] = other, n
            n += 1
        second[rows[slot]] += run
    return n


@compiled
def _count(fixed, warped):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the labels, ascending, and their voxels (3, n).

    Per voxel both labels are compared with those before them, all of a piece at once; eight answers that nothing
    changed are one comparison. Per run of equal pairs: two look-ups, three additions.
    """
    keys, rows, counts = np.zeros(256, np.int64), np.full(256, -1, np.int64), np.zeros((3, 128), np.int64)
    changes, starts = np.zeros(_PIECE, np.uint8), np.zeros(_PIECE + 1, np.int64)
    n = 0
    for first in range(0, fixed.size, _PIECE):
        a, b = fixed[first : first + _PIECE], warped[first : first + _PIECE]
        runs = _runs(a, b, changes, starts)
        keys, rows, counts = _with_room(keys, rows, counts, n, 2 * runs)
        n = _add(a, b, starts, runs, keys, rows, counts, n)
    ids = np.zeros(n, np.int64)
    for slot in range(rows.size):
        if rows[slot] >= 0:
            ids[rows[slot]] = keys[slot]
    order = np.argsort(ids)
    return ids[order], counts[:, :n][:, order]
