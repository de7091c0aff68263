"""What one task of a warp does: a region of the output from the box of the moving image that the plan says it needs.

A job is what all tasks of a warp have in common; it is in the graph once, and a task adds its region.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.image import ArraySource, Source, StoreSource
from blocks.kernels.route import route_to_displacement, route_to_index
from blocks.kernels.warp import MOST_VOXELS, displacement_block, warp_block
from blocks.memory import displacement_bytes, warp_bytes
from blocks.plan import Interpolation, halves, held_bytes, localised, read_region, window_bytes
from blocks.region import Region
from blocks.transforms import Composite, Stage, Transform

Voxels = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class WarpJob:
    """What the tasks of one warp have in common.

    Parameters
    ----------
    source
        Where the moving voxels are read.
    transform
        Fixed world points to moving world points.
    fixed, moving
        Grids of the output and of the input.
    interpolation, background
        How voxels are sampled, and the value outside the moving image.
    memory_bytes
        What one task may use.
    """

    source: Source
    transform: Transform
    fixed: Grid
    moving: Grid
    interpolation: Interpolation
    background: float
    memory_bytes: int

    def shard(self, region: Region) -> Voxels:
        """Return the warped voxels ((c,) (z,) y, x) of a region of the fixed grid."""
        out: Voxels | None = None
        for part, stages, read in self._parts(region):
            voxels = self._warped(part, stages, read)
            if part == region:
                out = voxels
                break
            if out is None:
                out = np.empty((self.source.channels or 1, *region.shape), dtype=self.source.dtype)
            out[(slice(None), *part.relative_to(region.start).slices)] = voxels
        assert out is not None
        return out if self.source.channels is not None else out[0]

    def bytes_of(self, region: Region) -> int:
        """Return the bytes that warping a region in one part takes; reads what it needs of a lazy field."""
        stages = localised(self.transform, self.fixed, region=region)
        return self._bytes(region, self._read(region, stages), held_bytes(stages))

    def _parts(self, region: Region) -> Iterator[tuple[Region, tuple[Stage, ...], Region]]:
        """Yield parts of a region that fit the memory, each with what it needs of the transform and of the image."""
        smaller = halves(region)
        if not smaller or window_bytes(self.transform, self.fixed, region=region) <= self.memory_bytes:
            stages = localised(self.transform, self.fixed, region=region)
            read = self._read(region, stages)
            if not smaller or self._bytes(region, read, held_bytes(stages)) <= self.memory_bytes:
                yield region, stages, read
                return
            del stages
        for part in smaller:
            yield from self._parts(part)

    @property
    def _whole(self) -> bool:
        """Whether the moving image lies in memory as the kernels take it: nothing of it need be copied."""
        if not isinstance(self.source, ArraySource) or self.interpolation == "cubic":
            return False
        array = self.source.array
        ready = array.flags.c_contiguous and array.dtype.isnative and array.dtype != np.float16
        return bool(ready) and math.prod(self.moving.shape) <= MOST_VOXELS

    def _bytes(self, region: Region, read: Region, lattice: int) -> int:
        """Return the bytes of warping a region from a box, 32-bit places within the box being one more limit."""
        if read.size > MOST_VOXELS:
            return sys.maxsize
        return warp_bytes(
            read.size,
            region.size,
            itemsize=self.source.dtype.itemsize,
            channels=self.source.channels or 1,
            cubic=self.interpolation == "cubic",
            copied=not self._whole,
            widened=4 if self.source.dtype == np.float16 else 0,
            lattice=lattice,
            chunk=self._chunk,
        )

    @property
    def _chunk(self) -> int:
        """Bytes of one decoded chunk of a stored image."""
        if not isinstance(self.source, StoreSource):
            return 0
        layout = self.source.array.layout
        return math.prod(layout.chunks) * layout.dtype.itemsize

    def _read(self, region: Region, stages: tuple[Stage, ...]) -> Region:
        if self._whole:
            return self.moving.region
        return read_region(Composite(stages), self.fixed, region, self.moving, interpolation=self.interpolation)

    def _warped(self, region: Region, stages: tuple[Stage, ...], read: Region) -> Voxels:
        """Return the voxels (channels, [z,] y, x) of a region from the box it reads."""
        lead = () if self.source.channels is None else (self.source.channels,)
        voxels = np.empty((*lead, *read.shape), self.source.dtype) if read.empty else self.source.read(read)
        return warp_block(
            voxels[None] if self.source.channels is None else voxels,
            read,
            shape=self.moving.shape,
            route=route_to_index(stages, self.fixed, moving=self.moving, region=region),
            interpolation=self.interpolation,
            background=self.background,
        )


@dataclass(frozen=True, eq=False)
class FieldJob:
    """What the tasks of one displacement field have in common.

    Parameters
    ----------
    transform
        Fixed world points to moving world points.
    fixed
        Grid of the field.
    dtype
        float32 or float64.
    """

    transform: Transform
    fixed: Grid
    dtype: np.dtype[Any]

    def shard(self, region: Region) -> Voxels:
        """Return the displacements (ndim, [z,] y, x) of a region of the fixed grid."""
        stages = localised(self.transform, self.fixed, region=region)
        return displacement_block(route_to_displacement(stages, self.fixed, region=region), dtype=self.dtype)

    def bytes_of(self, region: Region) -> int:
        """Return the bytes that computing a region takes."""
        lattice = window_bytes(self.transform, self.fixed, region=region)
        return displacement_bytes(region.size, ndim=self.fixed.ndim, itemsize=self.dtype.itemsize, lattice=lattice)


def compute_shard(job: WarpJob | FieldJob, region: Region) -> Voxels:
    """Return the voxels of one shard: what a task calls."""
    return job.shard(region)
