"""A shape with its geometry: the only spatial algebra of the engine.

Shapes, regions and indices are in array order (z, y, x); spacing, origin, direction and points in world order
(x, y, z), as ITK has them. The reversal between the two happens here and nowhere else in the engine.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from blocks.region import Region

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """A regular lattice of voxel centres in the world.

    Parameters
    ----------
    shape
        Voxels an axis, array order (z, y, x) or (y, x); a channel axis is not part of a grid.
    spacing, origin
        World order (x, y, z): the distance between neighbouring centres along each index axis, and the position of
        the centre of voxel zero, in the image's unit.
    direction
        Row-major matrix whose column ``k`` is the world direction of index axis ``k`` (x, y, z), as ITK's.
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    origin: tuple[float, ...]
    direction: tuple[float, ...]

    def __post_init__(self) -> None:
        n = len(self.shape)
        if (len(self.spacing), len(self.origin), len(self.direction)) != (n, n, n * n):
            msg = f"a grid of {n} axes needs {n} spacings, {n} origins and {n * n} direction cosines, got {self}"
            raise ValueError(msg)
        if any(size < 1 for size in self.shape):
            msg = f"a grid needs at least one voxel an axis, got shape {self.shape}"
            raise ValueError(msg)
        if not all(math.isfinite(v) and v > 0 for v in self.spacing):
            msg = f"spacing must be positive and finite, got {self.spacing}"
            raise ValueError(msg)
        if any(v < sys.float_info.min for v in self.spacing):
            msg = f"spacing must be at least {sys.float_info.min:.3g}, below which nothing is divided by it"
            raise ValueError(f"{msg}, got {self.spacing}; choose another unit")
        if not all(math.isfinite(v) for v in (*self.origin, *self.direction)):
            msg = f"origin and direction must be finite, got {self.origin} and {self.direction}"
            raise ValueError(msg)
        if abs(float(np.linalg.det(self.direction_matrix))) < 1e-6:
            msg = f"the direction cosines are singular: {self.direction}"
            raise ValueError(msg)

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        *,
        spacing: Sequence[float] | None = None,
        origin: Sequence[float] | None = None,
        direction: Sequence[float] | None = None,
    ) -> Grid:
        """Return a grid, with spacing one, origin zero and the identity direction where they are not given."""
        n = len(shape)
        eye = np.eye(n).ravel() if direction is None else np.asarray(direction, dtype=np.float64).ravel()
        return cls(
            tuple(int(v) for v in shape),
            tuple(float(v) for v in (spacing if spacing is not None else [1.0] * n)),
            tuple(float(v) for v in (origin if origin is not None else [0.0] * n)),
            tuple(float(v) for v in eye),
        )

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def region(self) -> Region:
        """All of the grid's voxels."""
        return Region.of(self.shape)

    @property
    def direction_matrix(self) -> Floats:
        """Direction as a (ndim, ndim) matrix, world order."""
        return np.asarray(np.reshape(self.direction, (self.ndim, self.ndim)), dtype=np.float64)

    @cached_property
    def matrix(self) -> Floats:
        """World-order linear part of (index x, y, z) -> world: direction times diag(spacing), (ndim, ndim)."""
        matrix: Floats = self.direction_matrix * np.array(self.spacing)
        return matrix

    @cached_property
    def inverse_matrix(self) -> Floats:
        """Inverse of :attr:`matrix`."""
        return np.asarray(np.linalg.inv(self.matrix))

    @property
    def diagonal(self) -> float:
        """Length of the diagonal between the outer faces of the corner voxels, in the image's unit."""
        return math.sqrt(sum((n * s) ** 2 for n, s in zip(self.shape[::-1], self.spacing, strict=True)))

    def world(self, index: npt.ArrayLike) -> Floats:
        """Return the world points (..., ndim; x, y, z) of continuous indices (..., ndim; z, y, x)."""
        xyz = np.asarray(index, dtype=np.float64)[..., ::-1]
        return np.asarray(xyz @ self.matrix.T + np.array(self.origin))

    def index(self, points: npt.ArrayLike) -> Floats:
        """Return the continuous indices (..., ndim; z, y, x) of world points (..., ndim; x, y, z)."""
        offset = np.asarray(points, dtype=np.float64) - np.array(self.origin)
        return np.asarray((offset @ self.inverse_matrix.T)[..., ::-1])

    def inside(self, points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which world points (..., ndim) lie inside: continuous index in [-0.5, size - 0.5] on every axis."""
        index = self.index(points)
        return np.asarray(np.all((index >= -0.5) & (index <= np.array(self.shape) - 0.5), axis=-1))

    def crop(self, region: Region) -> Grid:
        """Return the grid of a part of the image; every kept voxel stays where it is in the world."""
        origin = self.world(np.array(region.start, dtype=np.float64))
        return Grid(region.shape, self.spacing, tuple(float(v) for v in origin), self.direction)

    def halved(self) -> Grid:
        """Return the grid of the next coarser level: two voxels an axis become one, rounded up.

        An axis of one voxel keeps its spacing. The first coarse voxel sits in the middle of the voxels it stands for.
        """
        factor = [2 if n > 1 else 1 for n in self.shape]
        shape = tuple(-(-n // f) for n, f in zip(self.shape, factor, strict=True))
        middle = self.world([(f - 1) / 2 for f in factor])
        spacing = tuple(s * f for s, f in zip(self.spacing, factor[::-1], strict=True))
        return Grid(shape, spacing, tuple(float(v) for v in middle), self.direction)

    def matches(self, other: Grid, *, tolerance: float = 1e-6) -> bool:
        """Whether both grids have one shape and, relative to the spacing, one geometry."""
        if self.shape != other.shape:
            return False
        scale = min(*self.spacing, *other.spacing)
        close = np.allclose(self.spacing, other.spacing, rtol=tolerance, atol=tolerance * scale)
        direction = np.allclose(self.direction, other.direction, rtol=0, atol=tolerance)
        origin = np.allclose(self.origin, other.origin, rtol=tolerance, atol=tolerance * max(1.0, scale))
        return bool(close and direction and origin)
