"""How regular a displacement field of any size is, lazily: one task a tile, one that adds up in the lattice's order.

A tile is whole blocks of the fixed lattice (:data:`blocks.kernels.moments.LATTICE`) and reads one voxel beyond itself:
from a store or an array by itself, so that a field of any size takes the memory of the tiles in work. Of a lazy result
each block is computed once and its neighbours' faces are cut out of it; a layer of its blocks is then in memory. What
the tiles add is combined by the lattice and not by the tiles: the same bits for any blocks, scheduler and workers.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import xarray as xr
from dask._task_spec import DataNode, Task, TaskRef
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from blocks.grid import Grid
from blocks.image import StoreSource, channels_of, grid_of
from blocks.image.source import stored_source
from blocks.kernels import jacobian
from blocks.kernels.jacobian import HALO, MARGIN, OFFSET, Regularity
from blocks.kernels.moments import LATTICE
from blocks.region import Region
from blocks.storage import SHARD
from blocks.transforms import DisplacementField

#: Voxels a side of a tile of a field in memory, by the number of axes; of any other a tile is a shard.
TILE = {2: 16 * LATTICE, 3: 2 * LATTICE}

Voxels = npt.NDArray[Any]
Tile = list[tuple[tuple[int, ...], tuple[Regularity, ...]]]


@dataclass(frozen=True, eq=False)
class Piece:
    """Voxels of a part of an image.

    Parameters
    ----------
    slot
        Which image: 0 is the field, 1 and on the masks.
    region
        Which part of it, spatial axes.
    array
        Its voxels ((c,) (z,) y, x), or what gives them when it is sliced.
    """

    slot: int
    region: Region
    array: Any

    def load(self, region: Region) -> Piece:
        """Return the part of the piece in a region, in memory."""
        if isinstance(self.array, np.ndarray):
            return self
        part = self.region.intersect(region)
        lead = (slice(None),) * (len(self.array.shape) - region.ndim)
        voxels = self.array[(*lead, *part.relative_to(self.region.start).slices)]
        return Piece(self.slot, part, np.asarray(voxels))


@dataclass(frozen=True)
class Stored:
    """Voxels of a store that are read when they are sliced, a slice an axis."""

    source: StoreSource

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis ((c,) (z,) y, x)."""
        lead = () if self.source.channels is None else (self.source.channels,)
        return (*lead, *self.source.shape)

    def __getitem__(self, index: tuple[slice, ...]) -> Voxels:
        """Return the voxels of a box; all channels, whatever is asked."""
        bounds = [part.indices(n) for part, n in zip(index, self.shape, strict=True)][-len(self.source.shape) :]
        region = Region(tuple(b[0] for b in bounds), tuple(b[1] for b in bounds))
        return np.asarray(self.source.read(region))


@dataclass(frozen=True)
class Mosaic:
    """Voxels of one image in pieces, read by region."""

    pieces: tuple[Piece, ...]

    def read(self, region: Region) -> Voxels:
        """Return the voxels of a region that the pieces cover."""
        first = self.pieces[0].array
        lead = first.shape[: first.ndim - region.ndim]
        whole = tuple(slice(None) for _ in lead)
        out: Voxels | None = None
        for piece in self.pieces:
            part = piece.region.intersect(region)
            if part.empty:
                continue
            voxels: Voxels = piece.array[(*whole, *part.relative_to(piece.region.start).slices)]
            if part == region:
                return voxels
            if out is None:
                out = np.empty((*lead, *region.shape), dtype=first.dtype)
            out[(*whole, *part.relative_to(region.start).slices)] = voxels
        assert out is not None
        return out

    def mask(self, region: Region) -> npt.NDArray[np.bool_]:
        """Return which voxels of a region are not zero."""
        return np.asarray(self.read(region) != 0)


@dataclass(frozen=True)
class RegularityJob:
    """What the tasks of one field have in common.

    Parameters
    ----------
    grid
        The field's.
    masked
        For each answer, whether a mask says which voxels count.
    margin, offset
        As :func:`regularity` has them.
    """

    grid: Grid
    masked: tuple[bool, ...]
    margin: int
    offset: float

    def tile(self, region: Region, pieces: Sequence[Piece]) -> Tile:
        """Return what the blocks of the lattice in a region add."""
        box = region.expand(HALO).clip(self.grid.shape)
        held = [piece.load(region if piece.slot else box) for piece in pieces]
        images = [Mosaic(tuple(p for p in held if p.slot == slot)) for slot in range(len(self.masked) + 1)]
        inside = [image.mask if masked else None for image, masked in zip(images[1:], self.masked, strict=True)]
        parts = jacobian.partials(
            images[0].read, self.grid, region=region, inside=inside, margin=self.margin, offset=self.offset
        )
        return list(parts)


def regularity(
    field: xr.DataArray | DisplacementField,
    *,
    inside: Sequence[xr.DataArray | None] = (None,),
    margin: int = MARGIN,
    offset: float = OFFSET,
) -> Any:  # noqa: ANN401 - Dask is not typed
    """Return what the Jacobian determinants of x + u(x) add up to, as a lazy value.

    Parameters
    ----------
    field
        Displacement (c, [z,] y, x), components x, y[, z] along the world's axes, in the grid's unit: in memory, in a
        store, or lazy with any chunks.
    inside
        For each answer the voxels that count, an image on the field's grid that is not zero there; None for all.
    margin
        Voxels left out on each side before the spread is taken.
    offset
        Added to the determinant before its logarithm.

    Returns
    -------
    Delayed
        Computes to a tuple of :class:`blocks.kernels.jacobian.Regularity`, one for each of ``inside``.

    Raises
    ------
    ValueError
        When the field has not one component an axis, or a mask does not lie on its grid.

    Notes
    -----
    :func:`blocks.memory.regularity_bytes` says what a tile takes.
    """
    grid, vectors = _vectors(field)
    for mask in inside:
        if mask is not None and (channels_of(mask) is not None or not grid_of(mask).matches(grid)):
            msg = f"a mask lies on the field's grid and has no channels, got {mask.dims} on {grid_of(mask)} for {grid}"
            raise ValueError(msg)
    token = uuid.uuid4().hex
    masks = [_Image(slot, _voxels(mask), token, lead=0) for slot, mask in enumerate(inside, 1) if mask is not None]
    images = [_Image(0, vectors, token, lead=1), *masks]
    job = DataNode(f"regularity-job-{token}", RegularityJob(grid, tuple(m is not None for m in inside), margin, offset))
    tasks: dict[Any, Any] = {job.key: job}
    tiles = []
    for number, region in enumerate(_tiles(vectors, grid)):
        pieces = [piece for image in images for piece in image.pieces(region, grid)]
        tasks |= {piece.key: piece for piece in pieces}
        key = (f"regularity-tile-{token}", number)
        tasks[key] = Task(key, compute_tile, TaskRef(job.key), region, *(TaskRef(piece.key) for piece in pieces))
        tiles.append(key)
    name = f"regularity-{token}"
    tasks[name] = Task(name, add_tiles, *(TaskRef(key) for key in tiles))
    lazy = [image.data for image in images if image.starts]
    return Delayed(name, HighLevelGraph.from_collections(name, tasks, dependencies=lazy))


def compute_tile(job: RegularityJob, region: Region, *pieces: Piece) -> Tile:
    """Return what the blocks of the lattice in a tile add: what a task calls."""
    return job.tile(region, pieces)


def cut(slot: int, region: Region, block: Voxels, inside: Region) -> Piece:
    """Return a part of a block as a piece, copied where it is not all of the block, so that the block can go."""
    lead = (slice(None),) * (block.ndim - inside.ndim)
    part = block[(*lead, *inside.slices)]
    return Piece(slot, region, part if part.shape == block.shape else part.copy())


def add_tiles(*tiles: Tile) -> tuple[Regularity, ...]:
    """Return what all tiles add up to, block by block in the lattice's index order."""
    parts = sorted((part for tile in tiles for part in tile), key=lambda part: part[0])
    return tuple(jacobian.combine(column) for column in zip(*(regular for _, regular in parts), strict=True))


class _Image:
    """An image in a graph: the tasks that make the pieces a tile needs."""

    def __init__(self, slot: int, voxels: Any, token: str, *, lead: int) -> None:  # noqa: ANN401 - NumPy, Dask, sliced
        lazy = isinstance(voxels, da.Array)
        self.slot = slot
        self.name = f"regularity-cut-{token}"
        self.lead = lead
        self.data = voxels.rechunk({0: -1}) if lazy and lead else voxels
        self.starts = [[0, *itertools.accumulate(sizes)] for sizes in self.data.chunks[lead:]] if lazy else []

    def pieces(self, region: Region, grid: Grid) -> list[Any]:
        """Return the tasks of a tile's pieces: all of the image, or what is cut out of its blocks."""
        if not self.starts:
            return [DataNode((self.name, self.slot), Piece(self.slot, grid.region, self.data))]
        return list(self._cuts(region.expand(HALO if self.slot == 0 else 0).clip(grid.shape)))

    def _cuts(self, box: Region) -> Iterator[Any]:
        near = [
            [k for k, (a, b) in enumerate(itertools.pairwise(starts)) if a < stop and b > start]
            for starts, start, stop in zip(self.starts, box.start, box.stop, strict=True)
        ]
        for index in itertools.product(*near):
            corner = tuple(starts[k] for starts, k in zip(self.starts, index, strict=True))
            end = tuple(starts[k + 1] for starts, k in zip(self.starts, index, strict=True))
            part = Region(corner, end).intersect(box)
            key = (self.name, self.slot, *part.start, *part.stop)
            block = TaskRef((self.data.name, *(0,) * self.lead, *index))
            yield Task(key, cut, self.slot, part, block, part.relative_to(corner))


def _vectors(field: xr.DataArray | DisplacementField) -> tuple[Grid, Any]:
    """Return a field's grid, and its vectors as an array, lazy or not, or as what is sliced like one."""
    if isinstance(field, DisplacementField):
        return field.grid, field.vectors
    grid = grid_of(field)
    if channels_of(field) != grid.ndim:
        msg = f"a field on a grid of {grid.ndim} axes has {grid.ndim} components a voxel, got {channels_of(field)}"
        raise ValueError(msg)
    return grid, _voxels(field)


def _voxels(image: xr.DataArray) -> Any:  # noqa: ANN401 - as _vectors
    stored = None if isinstance(image.data, np.ndarray) else stored_source(image)
    return image.data if stored is None else Stored(stored)


def _tiles(vectors: Any, grid: Grid) -> Iterator[Region]:  # noqa: ANN401 - as _vectors
    """Yield the tiles: a lazy field's own blocks where they are whole blocks of the lattice."""
    chunks = vectors.chunks[1:] if isinstance(vectors, da.Array) else ()
    if not chunks or any(size % LATTICE for sizes in chunks for size in sizes[:-1]):
        side = TILE[grid.ndim] if isinstance(vectors, np.ndarray) or chunks else SHARD[grid.ndim]
        yield from grid.region.split((side,) * grid.ndim)
        return
    edges = [[0, *itertools.accumulate(sizes)] for sizes in chunks]
    for sides in itertools.product(*(list(itertools.pairwise(along)) for along in edges)):
        yield Region(tuple(a for a, _ in sides), tuple(b for _, b in sides))
