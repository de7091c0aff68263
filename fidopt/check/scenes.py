"""Pairs of images whose motion is known: a textured body, moved by a translation, on grids that hide no mistake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from fidopt.check.readings import Floats, Pair

#: Bodies are made of so many blobs, of a width between these, in the pair's unit.
BLOBS, WIDTHS, SEED = 220, (3.5, 7.0), 3
#: Semi-axes of the body, as a part of the image's sides along its index axes.
BODY = 0.4
#: How deep a voxel lies where fields are looked at (0 in the middle, 1 on the surface): farther out, a method sees the
#: motion of one side alone.
INNER = 0.8
#: What the components of a colour are of the grey value.
COLOUR = (1.0, 0.8, 0.5)


@dataclass(frozen=True)
class Scene:
    """A pair, and how it was moved.

    Parameters
    ----------
    name, title
        As the verdicts have it, and in words.
    fixed, moving
        The two grids.
    motion
        x, y[, z]: the fixed point x matches x + motion in the moving image.
    colour
        Whether a voxel has three 8-bit components.
    """

    name: str
    title: str
    fixed: Grid
    moving: Grid
    motion: tuple[float, ...]
    colour: bool = False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.fixed.ndim

    def images(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the voxels ([c,] [z,] y, x) of ``fixed``, ``moving`` and the body's masks on both grids."""
        body = _Body(self.fixed)
        found: dict[str, npt.NDArray[np.generic]] = {}
        for role, grid, shift in (("fixed", self.fixed, np.zeros(self.ndim)), ("moving", self.moving, self.motion)):
            points = _points(grid) - np.asarray(shift)
            grey = body.grey(points).reshape(grid.shape)
            found[role] = np.stack([(part * grey).astype(np.uint8) for part in COLOUR]) if self.colour else grey
            found[f"{role}_mask"] = (body.depth(points) < 1).astype(np.uint8).reshape(grid.shape)
        return found

    def inside(self) -> npt.NDArray[np.bool_]:
        """Return which voxels of the fixed grid lie well inside the body."""
        return (_Body(self.fixed).depth(_points(self.fixed)) < INNER).reshape(self.fixed.shape)

    def pair(self) -> Pair:
        """Return the grids, and the points of the body's voxels, in the order of the array."""
        return Pair(self.fixed, self.moving, _points(self.fixed)[self.inside().ravel()])


def scenes(dimensions: tuple[int, ...]) -> tuple[Scene, ...]:
    """Return the pairs that a method of these dimensions is checked on."""
    found: tuple[Scene, ...] = ()
    if 3 in dimensions:
        motion = (-4.9, 2.7, -1.6)
        permuted = turned((1.0, 0.4, -0.7), 24) @ np.eye(3)[[2, 0, 1]]
        fixed = Grid.of(
            (34, 36, 40), spacing=(2.0, 2.3, 2.8), origin=(10.0, -20.0, 30.0), direction=permuted.ravel().tolist()
        )
        one = Scene("one_grid", "3D, both images on one oblique grid", fixed, fixed, motion)
        # Another motion: a reading that turns vectors about the first one's line would be right there by chance.
        other = (-3.1, 5.0, 2.2)
        two = Scene("two_grids", "3D, the moving image on another grid", fixed, _other(fixed), other)
        found = (one, two)
    if 2 in dimensions:
        flat = Grid.of(
            (40, 150),
            spacing=(0.7, 2.5),
            origin=(3.0, 7.0),
            direction=turned((0.0, 0.0, 1.0), 215)[:2, :2].ravel().tolist(),
        )
        found = (*found, Scene("colour", "2D, colour, turned by 215 degrees", flat, flat, (-5.8, 3.8), colour=True))
    return found


def turned(axis: tuple[float, float, float], degrees: float) -> Floats:
    """Return the rotation (3, 3) about an axis."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.radians(degrees)
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def _other(fixed: Grid) -> Grid:
    """Return a grid of another shape, spacing and direction about the same middle."""
    shape, spacing, direction = (38, 40, 44), (2.1, 2.2, 2.3), turned((0.3, -1.0, 0.5), 40) @ np.eye(3)[[1, 2, 0]]
    half = (np.array(shape[::-1]) - 1) / 2 * np.array(spacing)
    origin = _middle(fixed) - direction @ half
    return Grid.of(shape, spacing=spacing, origin=tuple(origin), direction=direction.ravel().tolist())


def _middle(grid: Grid) -> Floats:
    return grid.world((np.array(grid.shape) - 1) / 2)


def _points(grid: Grid) -> Floats:
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"), axis=-1)
    return grid.world(index.reshape(-1, grid.ndim))


class _Body:
    """An ellipsoid along the fixed grid's axes, with blobs in it brighter and darker than it is."""

    def __init__(self, fixed: Grid) -> None:
        self.middle, self.axes = _middle(fixed), fixed.direction_matrix
        self.radius = BODY * np.array(fixed.shape[::-1]) * np.array(fixed.spacing)
        rng = np.random.default_rng(SEED)
        drawn = rng.uniform(-1, 1, (600, fixed.ndim))
        within = drawn[(drawn**2).sum(axis=1) < 1][:BLOBS]
        self.centres = self.middle + (within * self.radius) @ self.axes.T
        self.widths = rng.uniform(*WIDTHS, len(within))
        self.heights = rng.choice([-1, 1], len(within))

    def depth(self, points: Floats) -> Floats:
        """Return 0 in the middle of the body and 1 on its surface, for points (n, ndim)."""
        return np.asarray(((((points - self.middle) @ self.axes) / self.radius) ** 2).sum(axis=1))

    def grey(self, points: Floats) -> npt.NDArray[np.float32]:
        """Return the grey values of points (n, ndim): 20 to 235 in the body, 0 outside."""
        values = np.zeros(len(points))
        for centre, width, height in zip(self.centres, self.widths, self.heights, strict=True):
            values += height * np.exp(-((points - centre) ** 2).sum(axis=1) / (2 * width**2))
        inside = self.depth(points) < 1.1
        return np.where(inside, np.clip(25 * values + 128, 20, 235), 0).astype(np.float32)
