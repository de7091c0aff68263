"""Half-open boxes of voxels, in array order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True)
class Region:
    """A half-open box of voxels ``start <= index < stop``, in array order (z, y, x).

    Parameters
    ----------
    start, stop
        First index, and one past the last index, an axis. A region whose stop does not exceed its start on some
        axis is empty.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.start) != len(self.stop):
            msg = f"a region needs as many starts as stops, got {self.start} and {self.stop}"
            raise ValueError(msg)

    @classmethod
    def of(cls, shape: Sequence[int]) -> Region:
        """Return the region that covers a whole array of this shape."""
        return cls((0,) * len(shape), tuple(int(n) for n in shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.start)

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis, zero where the region is empty."""
        return tuple(max(0, b - a) for a, b in zip(self.start, self.stop, strict=True))

    @property
    def size(self) -> int:
        """Number of voxels."""
        return math.prod(self.shape)

    @property
    def empty(self) -> bool:
        """Whether the region holds no voxel."""
        return self.size == 0

    @property
    def slices(self) -> tuple[slice, ...]:
        """The region as an index of an array that starts at index zero."""
        return tuple(slice(a, max(a, b)) for a, b in zip(self.start, self.stop, strict=True))

    def intersect(self, other: Region) -> Region:
        """Return the voxels that lie in both regions."""
        start = tuple(max(a, b) for a, b in zip(self.start, other.start, strict=True))
        stop = tuple(min(a, b) for a, b in zip(self.stop, other.stop, strict=True))
        return Region(start, stop)

    def expand(self, halo: int) -> Region:
        """Return the region widened by ``halo`` voxels on every side."""
        return Region(tuple(a - halo for a in self.start), tuple(b + halo for b in self.stop))

    def clip(self, shape: Sequence[int]) -> Region:
        """Return the part of the region inside an array of this shape."""
        return self.intersect(Region.of(shape))

    def relative_to(self, origin: Sequence[int]) -> Region:
        """Return the region counted from ``origin`` instead of from zero."""
        return Region(
            tuple(a - o for a, o in zip(self.start, origin, strict=True)),
            tuple(b - o for b, o in zip(self.stop, origin, strict=True)),
        )

    def contains(self, other: Region) -> bool:
        """Whether every voxel of ``other`` lies in this region."""
        return other.empty or self.intersect(other) == other

    def align(self, block: Sequence[int]) -> Region:
        """Return the smallest region of whole blocks (counted from index zero) around this one."""
        return Region(
            tuple(a // n * n for a, n in zip(self.start, block, strict=True)),
            tuple(-(-b // n) * n for b, n in zip(self.stop, block, strict=True)),
        )

    def split(self, block: Sequence[int]) -> Iterator[Region]:
        """Yield the regions of a fixed lattice of blocks inside this one, in index order, clipped to it."""
        grid = self.align(block)
        starts = [range(a, b, n) for a, b, n in zip(grid.start, grid.stop, block, strict=True)]
        for corner in product(*starts):
            yield Region(corner, tuple(c + n for c, n in zip(corner, block, strict=True))).intersect(self)
