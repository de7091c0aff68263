"""A box of vectors on a lattice, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.region import Region


@dataclass(frozen=True, eq=False)
class Window:
    """A box of a field's vectors in memory, indexed as if it were the whole.

    Parameters
    ----------
    array
        (ndim, *box shape), float32 or float64.
    start
        First index of the box, array order.
    whole
        Shape of the field, array order.
    """

    array: npt.NDArray[np.float32] | npt.NDArray[np.float64] = field(repr=False)
    start: tuple[int, ...]
    whole: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all the vectors, (ndim, [z,] y, x)."""
        return (len(self.array), *self.whole)

    @property
    def region(self) -> Region:
        """The box."""
        return Region(self.start, tuple(a + n for a, n in zip(self.start, self.array.shape[1:], strict=True)))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a component."""
        return self.array.dtype

    def __getitem__(self, index: tuple[slice, ...], /) -> npt.NDArray[np.floating]:
        """Return a box of the field, which must lie in this one."""
        box = Region(tuple(s.start for s in index[1:]), tuple(s.stop for s in index[1:]))
        if not self.region.contains(box):
            msg = f"voxels {index[1:]} of a displacement field are not in the window that was read for them"
            raise IndexError(msg)
        return self.array[(slice(None), *box.relative_to(self.start).slices)]
