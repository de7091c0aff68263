"""Dense displacement fields, as ITK reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.region import Region
from blocks.transforms.affine import as_points
from blocks.transforms.box import AffineBox
from blocks.transforms.extremes import Table, extremes
from blocks.transforms.lattice import lattice_index, window_of
from blocks.transforms.window import Window

Floats = npt.NDArray[np.float64]

#: Voxels a side of the boxes that points are read in where the field is lazy: a chunk of a store, about.
_BOX = 64


class Vectors(Protocol):
    """Displacements that give NumPy arrays when sliced: an array in memory, or a lazy one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(ndim, [z,] y, x)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a component."""

    def __getitem__(self, index: tuple[slice, ...], /) -> Any:  # noqa: ANN401 - anything np.asarray takes
        """Return a box of it."""


@dataclass(frozen=True, eq=False)
class DisplacementField:
    """``y = x + u(x)``, u read linearly between voxels, zero outside the field's voxels.

    Within half a voxel of the outer centres the value of the outer voxel holds.

    Parameters
    ----------
    grid
        Where the vectors are.
    vectors
        Displacements (ndim, *grid.shape), components x, y, z in the world, in the image's unit: float32 or float64 in
        memory, or anything that gives such arrays when sliced.
    """

    grid: Grid
    vectors: Vectors = field(repr=False)

    def __post_init__(self) -> None:
        expected = (self.grid.ndim, *self.grid.shape)
        if tuple(self.vectors.shape) != expected:
            msg = f"a displacement field on a grid of shape {self.grid.shape} needs vectors of shape {expected}"
            raise ValueError(f"{msg}, components first, got {tuple(self.vectors.shape)}")
        if np.dtype(self.vectors.dtype).kind not in "fiu":
            msg = f"a displacement field holds real numbers, got {self.vectors.dtype}"
            raise ValueError(msg)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.grid.ndim

    @property
    def in_memory(self) -> bool:
        """Whether the vectors, or a window of them, are in memory."""
        return isinstance(self.vectors, np.ndarray | Window)

    @property
    def kind(self) -> np.dtype[Any]:
        """Type of the vectors in memory: float32 where they are, else float64."""
        own = np.dtype(self.vectors.dtype)
        return np.dtype(np.float32 if own.newbyteorder("=") == np.float32 else np.float64)

    @cached_property
    def held(self) -> Window:
        """All there is of the vectors in memory, as the kernels take them: read and converted at the first call."""
        if isinstance(self.vectors, Window):
            return self.vectors
        whole = self.window(self.grid.region)
        return Window(whole if whole.flags.c_contiguous else whole.copy(), (0,) * self.ndim, self.grid.shape)

    @cached_property
    def _table(self) -> Table:
        return Table.of(self.held.array)

    def window(self, region: Region) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
        """Return the vectors (ndim, *region.shape) of a region inside the grid, of the type ``kind``."""
        return np.asarray(self.vectors[(slice(None), *region.slices)], dtype=self.kind)

    def window_region(self, box: AffineBox) -> Region:
        """Return the field's voxels that the points of a set read: empty where the field does not reach them."""
        return self._window_region(*box.index_hull(self.grid))

    def _window_region(self, lower: Floats, upper: Floats) -> Region:
        """Return the voxels that points between two continuous indices (ndim,; x, y, z) read."""
        size = np.array(self.grid.shape[::-1], dtype=np.float64)
        if (lower >= size - 0.5).any() or (upper < -0.5).any():
            return Region((0,) * self.ndim, (0,) * self.ndim)
        # The last centre is read as the second voxel of a pair, and what lies before the first one with a pair too.
        low = np.minimum(np.floor(np.maximum(lower, 0)), size - 2)
        high = np.floor(np.clip(upper, 0, size - 1)) + 1
        slices = window_of(low, high, self.grid.shape)
        return Region(tuple(s.start for s in slices), tuple(s.stop for s in slices))

    def points(self, points: npt.ArrayLike) -> Floats:
        """Return where fixed world points (n, ndim; x, y, z) are in the moving image's world (n, ndim).

        Of a lazy field only the boxes that points lie in are read, one at a time; a point's bits depend on it alone.
        """
        fixed = as_points(points, self.ndim)
        index = lattice_index(self.grid, fixed)
        taps, inside = [], np.ones(len(fixed), dtype=bool)
        for axis, size in enumerate(self.grid.shape[::-1]):
            cell, weights, within = linear_axis(index[:, axis], size)
            taps.append((cell, weights))
            inside &= within
        moved = fixed.copy()
        for near in self._near(np.stack([cell for cell, _ in taps]), inside):
            moved[near] += self._read([(cell[near], weights[:, near]) for cell, weights in taps])
        return moved

    def _near(self, cells: npt.NDArray[np.intp], inside: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.intp]]:
        """Yield which points (their numbers) are read together: of a lazy field those within one small box."""
        found = np.flatnonzero(inside)
        if self.in_memory or not found.size:
            yield from [found] if found.size else []
            return
        _, box = np.unique(cells[:, found] // _BOX, axis=1, return_inverse=True)
        order = np.argsort(box.ravel(), kind="stable")
        yield from np.split(found[order], np.flatnonzero(np.diff(box.ravel()[order])) + 1)

    def _read(self, taps: list[tuple[npt.NDArray[np.intp], Floats]]) -> Floats:
        """Return the displacements (n, ndim) at points, from their cells and weights along x, y, z."""
        start = [int(cell.min()) for cell, _ in taps]
        stop = [int(cell.max()) + len(weights) for cell, weights in taps]
        window = self.window(Region(tuple(start[::-1]), tuple(stop[::-1])))
        total = np.zeros((self.ndim, taps[0][0].size))
        for corner in product(*(range(len(weights)) for _, weights in taps)):
            weight = np.ones(total.shape[1])
            for (_, weights), side in zip(taps, corner, strict=True):
                weight = weight * weights[side]
            at: list[Any] = [cell + side - a for (cell, _), side, a in zip(taps, corner, start, strict=True)]
            total += weight * window[(slice(None), *at[::-1])]
        return total.T

    def bound(self, box: AffineBox) -> AffineBox:
        """Return a set around the moving points of a set of fixed points, from the vectors those points read."""
        lower, upper = box.index_hull(self.grid)
        least, most = np.zeros(lower.shape), np.zeros(lower.shape)
        for at in np.ndindex(lower.shape[:-1]):
            least[at], most[at] = self._extremes(self._window_region(lower[at], upper[at]))
        # Some of its points may lie beyond the field's voxels, where nothing moves.
        beyond = ((lower < -0.5) | (upper >= np.array(self.grid.shape[::-1]) - 0.5)).any(axis=-1, keepdims=True)
        return box.displaced(np.where(beyond, np.minimum(least, 0), least), np.where(beyond, np.maximum(most, 0), most))

    def _extremes(self, region: Region) -> tuple[Floats, Floats]:
        """Return values (ndim,) that the least and the largest vector of a region do not exceed; zero where none is."""
        if isinstance(self.vectors, Window):
            region = region.intersect(self.vectors.region)
        if region.empty:
            return np.zeros(self.ndim), np.zeros(self.ndim)
        if self.in_memory:
            return self._table.over(region.relative_to(self.held.start).slices)
        return extremes(self.window(region))

    def local(self, region: Region) -> DisplacementField:
        """Return the same field with a region of its vectors in memory, and nothing else of it."""
        if self.in_memory:
            return self
        if region.empty:
            # Nothing of it is used, but a pair of voxels can then be looked at anywhere.
            region = Region((0,) * self.ndim, tuple(min(n, 2) for n in self.grid.shape))
        return DisplacementField(self.grid, Window(self.window(region), region.start, self.grid.shape))


def linear_axis(index: Floats, size: int) -> tuple[npt.NDArray[np.intp], Floats, npt.NDArray[np.bool_]]:
    """Return, for continuous indices (n,) along one axis of a field, what linear reading needs there.

    Returns
    -------
    cell
        (n,) index of the first of the two voxels.
    weights
        (2, n), or (1, n) on an axis of one voxel; zero outside the field's voxels.
    inside
        (n,) whether the index lies within the field's voxels, [-0.5, size - 0.5).
    """
    with np.errstate(invalid="ignore"):
        inside = (index >= -0.5) & (index < size - 0.5)
    held = np.clip(np.where(inside, index, 0.0), 0.0, size - 1.0)
    if size == 1:
        return np.zeros(len(index), dtype=np.intp), np.where(inside, 1.0, 0.0)[None], inside
    # The last centre is the second voxel of the last pair, so that both voxels of a pair always exist.
    cell = np.minimum(np.floor(held), size - 2.0).astype(np.intp)
    fraction = held - cell
    return cell, np.where(inside, np.stack([1.0 - fraction, fraction]), 0.0), inside
