"""What one task of a warp does: a region of the output from the box of the moving image that the plan says it needs.

A job is what all tasks of a warp have in common; it is in the graph once, and a task adds its region.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.image import ArraySource, Source, StoreSource
from blocks.kernels.route import route_to_displacement, route_to_index
from blocks.kernels.warp import MOST_VOXELS, displacement_block, warp_block
from blocks.memory import MemoryBudgetError, displacement_bytes, warp_bytes
from blocks.plan import Interpolation, around, halves, held_bytes, localised, others_read, read_boxes, window_bytes
from blocks.region import Region
from blocks.storage.cache import CHUNKS
from blocks.storage.scratch import SCRATCH
from blocks.transforms import Composite, Stage, Transform

Voxels = npt.NDArray[Any]
#: Decoded chunks are kept for the next task in what a task leaves over, at most this part of its memory.
_KEPT = 3


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

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel of the result."""
        return self.source.dtype

    def shard(self, region: Region, *, into: Voxels | None = None) -> Voxels:
        """Return the warped voxels ((c,) (z,) y, x) of a region of the fixed grid.

        Parameters
        ----------
        region
            Array order, spatial axes.
        into
            Memory that they may be made in, of their shape and type; by default a new array.

        Raises
        ------
        MemoryBudgetError
            When even its smallest parts need more memory than there is.
        """
        out = None if into is None else into.reshape(self.source.channels or 1, *region.shape)
        for part, stages, boxes, spare in self._parts(region, whole=region):
            if part == region:
                out = self._warped(part, stages, boxes, spare=spare, out=out)
                break
            voxels = self._warped(part, stages, boxes, spare=spare)
            if out is None:
                out = np.empty((self.source.channels or 1, *region.shape), dtype=self.source.dtype)
            out[(slice(None), *part.relative_to(region.start).slices)] = voxels
            # Else it would be held while the next part is made.
            del voxels
        assert out is not None
        return out if self.source.channels is not None else out[0]

    def bytes_of(self, region: Region) -> int:
        """Return the bytes that warping a region in one part takes; reads what it needs of a lazy field."""
        stages = localised(self.transform, self.fixed, region=region)
        return self._bytes(region, self._boxes(region, stages), held_bytes(stages), whole=region)

    def least_bytes(self, region: Region) -> int:
        """Return the bytes that warping a region takes in its smallest parts.

        It is what the largest of them takes in the middle, and a voxel more on every side of its box: enough for any
        other part where the transform is affine. Another one may be refused when its turn comes.
        """
        part = region
        while smaller := halves(part):
            part = smaller[1]
        start = tuple(a + (n - m) // 2 for a, n, m in zip(region.start, region.shape, part.shape, strict=True))
        part = Region(start, tuple(a + n for a, n in zip(start, part.shape, strict=True)))
        stages = localised(self.transform, self.fixed, region=part)
        boxes = [box.expand(1) for box in self._boxes(part, stages)]
        return self._bytes(part, boxes, held_bytes(stages), whole=region)

    def check(self, region: Region) -> None:
        """See that a region can be computed within the memory, before anything is read.

        Raises
        ------
        MemoryBudgetError
            When it needs more, with how much.
        """
        least = self.least_bytes(region)
        if least > self.memory_bytes and self.bytes_of(region) > self.memory_bytes:
            raise self._refused(region, least)

    def _refused(self, region: Region, least: int) -> MemoryBudgetError:
        shard = " x ".join(map(str, region.shape))
        msg = (
            f"a task that warps a shard of {shard} voxels of {self.source.dtype} needs {_mib(least)} MiB at least, "
            f"got {self.memory_bytes / 2**20:.1f} MiB; give workers more memory, or fewer threads to share it"
        )
        return MemoryBudgetError(msg)

    def _parts(self, region: Region, *, whole: Region) -> Iterator[tuple[Region, tuple[Stage, ...], list[Region], int]]:
        """Yield parts of a region that fit the memory.

        Each comes with what it needs of the transform, what it reads of the image, and the memory it leaves over.
        """
        smaller, needed = halves(region), sys.maxsize
        if not smaller or window_bytes(self.transform, self.fixed, region=region) <= self.memory_bytes:
            stages = localised(self.transform, self.fixed, region=region)
            boxes = self._boxes(region, stages)
            needed = self._bytes(region, boxes, held_bytes(stages), whole=whole)
            if needed <= self.memory_bytes:
                yield region, stages, boxes, self.memory_bytes - needed
                return
            del stages
        if not smaller:
            raise self._refused(whole, needed)
        for part in smaller:
            yield from self._parts(part, whole=whole)

    @property
    def _whole(self) -> bool:
        """Whether the moving image lies in memory as the kernels take it: nothing of it need be copied."""
        if not isinstance(self.source, ArraySource) or self.interpolation == "cubic":
            return False
        array = self.source.array
        ready = array.flags.c_contiguous and array.dtype.isnative and array.dtype != np.float16
        return bool(ready) and math.prod(self.moving.shape) <= MOST_VOXELS

    def _bytes(self, region: Region, boxes: list[Region], lattice: int, *, whole: Region) -> int:
        """Return the bytes of warping a part of a shard, 32-bit places within its box being one more limit."""
        read = around(boxes, region.ndim)
        if read.size > MOST_VOXELS:
            return sys.maxsize
        channels = self.source.channels or 1
        needed = warp_bytes(
            read.size,
            region.size,
            itemsize=self.source.dtype.itemsize,
            channels=channels,
            cubic=self.interpolation == "cubic",
            copied=not self._whole,
            widened=4 if self.source.dtype == np.float16 else 0,
            lattice=lattice,
            chunk=self._chunk,
        )
        # The parts are put together in the shard.
        return needed if region == whole else needed + whole.size * channels * self.source.dtype.itemsize

    @property
    def _chunk(self) -> int:
        """Bytes of one chunk of a stored image, decoded and as it is stored, which may be as much."""
        if not isinstance(self.source, StoreSource):
            return 0
        layout = self.source.array.layout
        return 2 * math.prod(layout.chunks) * layout.dtype.itemsize

    def _boxes(self, region: Region, stages: tuple[Stage, ...]) -> list[Region]:
        if self._whole:
            return [self.moving.region]
        return read_boxes(Composite(stages), self.fixed, region, self.moving, interpolation=self.interpolation)

    def _warped(
        self,
        region: Region,
        stages: tuple[Stage, ...],
        boxes: list[Region],
        *,
        spare: int,
        out: Voxels | None = None,
    ) -> Voxels:
        """Return the voxels (channels, [z,] y, x) of a region from the boxes it reads, in ``out`` where it is given."""
        read = around(boxes, region.ndim)
        others = self._others(region, stages, read)
        with self._voxels(read, boxes, spare, others=others) as voxels:
            return warp_block(
                voxels[None] if self.source.channels is None else voxels,
                read,
                shape=self.moving.shape,
                route=route_to_index(stages, self.fixed, moving=self.moving, region=region),
                interpolation=self.interpolation,
                background=self.background,
                out=out,
            )

    def _others(self, region: Region, stages: tuple[Stage, ...], read: Region) -> list[Region]:
        """Return what the tasks around read of an image that lies in a store."""
        if not isinstance(self.source, StoreSource) or read.empty:
            return []
        return others_read(stages, self.fixed, region, self.moving, read=read)

    @contextmanager
    def _voxels(self, read: Region, boxes: list[Region], spare: int, *, others: list[Region]) -> Iterator[Voxels]:
        """Give what boxes hold of the moving image, in memory that is lent where it is read from a store."""
        shape = (*(() if self.source.channels is None else (self.source.channels,)), *read.shape)
        if not boxes:
            yield np.empty(shape, dtype=self.source.dtype)
        elif not isinstance(self.source, StoreSource):
            yield self.source.read(read, touched=boxes)
        else:
            size = math.prod(shape) * self.source.dtype.itemsize
            with SCRATCH.lent(size, most=size + spare) as memory:
                left = spare - (memory.nbytes - size)
                into = memory[:size].view(self.source.dtype).reshape(shape)
                with CHUNKS.room(min(left, self.memory_bytes // _KEPT)):
                    yield self.source.read(read, touched=boxes, others=others, into=into)


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

    def shard(self, region: Region, *, into: Voxels | None = None) -> Voxels:
        """Return the displacements (ndim, [z,] y, x) of a region of the fixed grid, in ``into`` where it is given."""
        stages = localised(self.transform, self.fixed, region=region)
        return displacement_block(route_to_displacement(stages, self.fixed, region=region), dtype=self.dtype, out=into)

    def bytes_of(self, region: Region) -> int:
        """Return the bytes that computing a region takes."""
        lattice = window_bytes(self.transform, self.fixed, region=region)
        return displacement_bytes(region.size, ndim=self.fixed.ndim, itemsize=self.dtype.itemsize, lattice=lattice)


def compute_shard(job: WarpJob | FieldJob, region: Region) -> Voxels:
    """Return the voxels of one shard: what a task calls."""
    return job.shard(region)


def _mib(size: int) -> str:
    """Return bytes in MiB, rounded up to a tenth."""
    return f"{math.ceil(size / 2**20 * 10) / 10:.1f}"
