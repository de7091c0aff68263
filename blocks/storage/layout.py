"""How arrays are laid out on disk: the unit read, the unit written, and which voxels a shard holds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.region import Region

#: Voxels a side of a chunk (the unit read) and of a shard (the unit written), by the number of spatial axes.
CHUNK = {2: 512, 3: 64}
SHARD = {2: 4096, 3: 256}
#: Kinds of types an image holds: bool, signed and unsigned integers, floats.
_KINDS = "biuf"


class StoreError(OSError):
    """A store that is missing, unfinished, damaged, or not an OME-Zarr store."""


def voxel_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the type of an image's voxels in the machine's byte order.

    Raises
    ------
    ValueError
        When it is not a boolean, an integer or a float of at most 64 bits.
    """
    # By its letter and size: C's long long is a type of its own, which no store knows.
    kind = np.dtype(np.dtype(dtype).str)
    if kind.kind not in _KINDS or kind.itemsize > 8:
        msg = f"an image holds booleans, integers and floats of at most 64 bits, got {kind}; convert it first"
        raise ValueError(msg)
    return kind.newbyteorder("=")


@dataclass(frozen=True)
class Layout:
    """How an array is laid out on disk; axes ((c,) (z,) y, x).

    Parameters
    ----------
    shape, chunks, shards
        Voxels an axis of the array, of the unit read, and of the unit written (None where there is none).
    dtype
        Type of a voxel, in the machine's byte order.
    names
        Names of the axes.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    dtype: np.dtype[Any]
    names: tuple[str, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: npt.DTypeLike, names: tuple[str, ...]) -> Layout:
        """Return the layout every store is written in: square chunks, all channels in a chunk, shards of whole chunks.

        Raises
        ------
        ValueError
            When the type is not a boolean, an integer or a float.
        """
        kind = voxel_type(dtype)
        channels = tuple(n for n, name in zip(shape, names, strict=True) if name == "c")
        spatial = shape[len(channels) :]
        chunk, most = CHUNK[len(spatial)], SHARD[len(spatial)]
        shards = tuple(min(most, -(-n // chunk) * chunk) for n in spatial)
        chunks = (*channels, *(chunk for _ in spatial))
        return cls(shape, chunks, (*channels, *shards), kind, names)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Voxels an axis of the unit written: a shard, or a chunk where the array is not sharded."""
        return self.chunks if self.shards is None else self.shards

    @property
    def blocks_along(self) -> tuple[int, ...]:
        """Number of shards (or chunks) an axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.blocks, strict=True))

    def indices(self) -> list[tuple[int, ...]]:
        """Return the index of every shard, in index order."""
        return list(product(*(range(n) for n in self.blocks_along)))

    def region(self, index: tuple[int, ...]) -> Region:
        """Return the voxels of a shard inside the array, all axes."""
        start = tuple(i * b for i, b in zip(index, self.blocks, strict=True))
        return Region(start, tuple(a + b for a, b in zip(start, self.blocks, strict=True))).clip(self.shape)
