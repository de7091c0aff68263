"""How regular a displacement field is: the Jacobian determinant of x + u(x), block by block.

The determinant is taken in index space: central differences between neighbouring voxels (one-sided on the outermost
ones, as ``numpy.gradient``), the displacement turned into index units by the inverse of the grid's matrix. It is exact
for a linear field on any grid, oblique or flipped. Inside the image these are Learn2Reg's differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.kernels import moments
from blocks.kernels.compiled import compiled
from blocks.kernels.moments import Moments
from blocks.region import Region

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Voxels that a determinant reads beyond its own.
HALO = 1
#: Voxels left out on each side before the spread is taken, as Learn2Reg does.
MARGIN = 2
#: Added to the determinant before its logarithm, as Learn2Reg does.
OFFSET = 3.0


@dataclass(frozen=True, slots=True)
class Regularity:
    """What the blocks of a field add up to.

    Parameters
    ----------
    voxels, folds
        Voxels looked at, and those of them with a determinant of zero or less.
    logarithm
        Moments of log(clip(det + offset, 1e-9, 1e9)) over the voxels away from the image's faces.
    """

    voxels: int
    folds: int
    logarithm: Moments

    @property
    def folded(self) -> float | None:
        """Fraction of the voxels that are folded, None where there was no voxel."""
        return self.folds / self.voxels if self.voxels else None

    @property
    def spread(self) -> float | None:
        """Standard deviation of the logarithm (SDlogJ), None where there was no voxel."""
        return moments.deviation(self.logarithm)


def determinant(vectors: npt.NDArray[np.floating], grid: Grid) -> Floats:
    """Return det J of x + u(x) at every voxel.

    Parameters
    ----------
    vectors
        (ndim, [z,] y, x) displacement, components in world order (x, y[, z]), in the grid's unit.
    grid
        Gives spacing and direction; its shape and origin play no part, so a block may be passed with the whole grid.

    Returns
    -------
    determinant
        ([z,] y, x) float64. An axis of one voxel has no derivative: nothing changes along it.
    """
    ndim = grid.ndim
    if vectors.ndim != ndim + 1 or vectors.shape[0] != ndim:
        msg = f"a field on a grid of {ndim} axes has {ndim} components a voxel, got an array of shape {vectors.shape}"
        raise ValueError(msg)
    inverse = np.eye(3)
    inverse[:ndim, :ndim] = grid.inverse_matrix
    volume = np.ascontiguousarray(vectors).reshape(ndim, *(1,) * (3 - ndim), *vectors.shape[1:])
    out = np.empty(volume.shape[1:], dtype=np.float64)
    _determinant(volume, inverse, out)
    return out.reshape(vectors.shape[1:])


def partial(
    vectors: npt.NDArray[np.floating],
    grid: Grid,
    *,
    region: Region,
    mask: Mask | None = None,
    margin: int = MARGIN,
    offset: float = OFFSET,
) -> Regularity:
    """Return what one region of a field adds.

    Parameters
    ----------
    vectors
        (ndim, ...) displacement over ``region`` and :data:`HALO` voxels around it, clipped to the grid.
    grid
        The whole field's grid.
    mask
        The voxels that count, shaped like ``region``; all of them by default.
    """
    return _added(_values(vectors, grid, region), grid, region=region, mask=mask, margin=margin, offset=offset)


def partials(
    read: Callable[[Region], npt.NDArray[np.floating]],
    grid: Grid,
    *,
    region: Region,
    inside: Sequence[Callable[[Region], Mask] | None] = (None,),
    margin: int = MARGIN,
    offset: float = OFFSET,
) -> Iterator[tuple[tuple[int, ...], tuple[Regularity, ...]]]:
    """Yield what each block of the fixed lattice inside a region of a field adds, in index order.

    Parameters
    ----------
    read
        Returns the displacement (ndim, ...) over a region of the grid.
    grid
        The whole field's grid.
    region
        Whole blocks of the lattice, clipped to the grid.
    inside
        Each returns which voxels of a region count; None where all of them do. The determinants are taken once.

    Yields
    ------
    start, parts
        First voxel of the block, and one part for each of ``inside``.
    """
    for block in region.split((moments.LATTICE,) * grid.ndim):
        values = _values(read(block.expand(HALO).clip(grid.shape)), grid, block)
        masks = [None if mask is None else mask(block) for mask in inside]
        yield (
            block.start,
            tuple(_added(values, grid, region=block, mask=mask, margin=margin, offset=offset) for mask in masks),
        )


def combine(parts: Iterable[Regularity]) -> Regularity:
    """Return what all the parts add up to; the parts come in the order of the lattice."""
    known = list(parts)
    return Regularity(
        sum(part.voxels for part in known),
        sum(part.folds for part in known),
        moments.combine(part.logarithm for part in known),
    )


def regularity(
    vectors: npt.NDArray[np.floating],
    grid: Grid,
    *,
    mask: Mask | None = None,
    margin: int = MARGIN,
    offset: float = OFFSET,
) -> Regularity:
    """Return the regularity of a whole field in memory, over the blocks of the fixed lattice in index order."""
    parts = partials(
        lambda region: vectors[(slice(None), *region.slices)],
        grid,
        region=grid.region,
        inside=[None if mask is None else lambda region: mask[region.slices]],
        margin=margin,
        offset=offset,
    )
    return combine(part for _, (part,) in parts)


def _values(vectors: npt.NDArray[np.floating], grid: Grid, region: Region) -> Floats:
    """Return the determinants of a region from its vectors and the halo around them."""
    read = region.expand(HALO).clip(grid.shape)
    return determinant(vectors, grid)[region.relative_to(read.start).slices]


def _added(values: Floats, grid: Grid, *, region: Region, mask: Mask | None, margin: int, offset: float) -> Regularity:
    counted = values if mask is None else values[mask]
    inner = Region((margin,) * grid.ndim, tuple(n - margin for n in grid.shape)).intersect(region)
    inside = inner.relative_to(region.start).slices
    kept = values[inside] if mask is None else values[inside][mask[inside]]
    logarithm = np.log(np.clip(kept + offset, 1e-9, 1e9))
    return Regularity(int(counted.size), int(np.count_nonzero(counted <= 0)), moments.partial(logarithm))


@compiled
def _determinant(u, inverse, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    components, depth, height, width = u.shape
    # du[c][a]: difference of component c along index axis a (x, y, z); m[r][a]: the same in index units.
    du = np.zeros((3, 3, width))
    m = np.zeros((3, 3, width))
    for k in range(depth):
        k0, k1 = max(k - 1, 0), min(k + 1, depth - 1)
        wz = 1.0 / (k1 - k0) if k1 > k0 else 0.0
        for j in range(height):
            j0, j1 = max(j - 1, 0), min(j + 1, height - 1)
            wy = 1.0 / (j1 - j0) if j1 > j0 else 0.0
            # A row at a time: each loop below is plain arithmetic on neighbouring numbers, which vectorises.
            for c in range(components):
                row, up, down = u[c, k, j], u[c, k, j0], u[c, k, j1]
                front, back = u[c, k0, j], u[c, k1, j]
                for i in range(1, width - 1):
                    du[c, 0, i] = (np.float64(row[i + 1]) - np.float64(row[i - 1])) * 0.5
                if width > 1:
                    du[c, 0, 0] = np.float64(row[1]) - np.float64(row[0])
                    du[c, 0, width - 1] = np.float64(row[width - 1]) - np.float64(row[width - 2])
                for i in range(width):
                    du[c, 1, i] = (np.float64(down[i]) - np.float64(up[i])) * wy
                for i in range(width):
                    du[c, 2, i] = (np.float64(back[i]) - np.float64(front[i])) * wz
            for r in range(3):
                for a in range(3):
                    one = 1.0 if r == a else 0.0
                    x, y, z = inverse[r, 0], inverse[r, 1], inverse[r, 2]
                    for i in range(width):
                        m[r, a, i] = one + x * du[0, a, i] + y * du[1, a, i] + z * du[2, a, i]
            for i in range(width):
                out[k, j, i] = (
                    m[0, 0, i] * (m[1, 1, i] * m[2, 2, i] - m[1, 2, i] * m[2, 1, i])
                    - m[0, 1, i] * (m[1, 0, i] * m[2, 2, i] - m[1, 2, i] * m[2, 0, i])
                    + m[0, 2, i] * (m[1, 0, i] * m[2, 1, i] - m[1, 1, i] * m[2, 0, i])
                )
