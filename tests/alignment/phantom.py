"""A made body whose intensities are known at every point of the world, seen on any grid through any rigid motion."""

from __future__ import annotations

import numpy as np
import xarray as xr

from blocks.grid import Grid
from blocks.image import image_of
from blocks.transforms import Affine


class Phantom:
    """An ellipsoid of soft blobs in Hounsfield units, in air."""

    def __init__(self, ndim: int, *, seed: int = 3, radius: float = 30.0, blobs: int = 60) -> None:
        random = np.random.default_rng(seed)
        self.ndim = ndim
        self.radii = radius * np.array([1.0, 0.8, 1.25])[:ndim]
        self.centres = random.normal(size=(blobs, ndim)) * self.radii / 2.2
        self.widths = random.uniform(2.5, 6.0, blobs)
        self.heights = random.uniform(-350, 500, blobs)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the values at world points (n, ndim)."""
        values = np.zeros(len(points))
        for centre, width, height in zip(self.centres, self.widths, self.heights, strict=True):
            values += height * np.exp(-0.5 * ((points - centre) ** 2).sum(axis=-1) / width**2)
        inside = ((points / self.radii) ** 2).sum(axis=-1) <= 1
        return np.where(inside, np.clip(values, -400, 900), -1000.0)

    def seen(self, grid: Grid, motion: Affine | None = None) -> xr.DataArray:
        """Return the image on a grid of the body after a motion: what was at x is at motion(x)."""
        points = grid.world(np.argwhere(np.ones(grid.shape, dtype=bool)))
        values = self(motion.inverse().points(points) if motion else points)
        return image_of(values.reshape(grid.shape).astype(np.float32), grid)


def turned(ndim: int, degrees: float) -> np.ndarray:
    """Return a rotation by an angle: about z in 2D, about (1, 0.4, -0.7) in 3D."""
    angle = np.radians(degrees)
    if ndim == 2:
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    axis = np.array([1.0, 0.4, -0.7])
    axis /= np.linalg.norm(axis)
    cross = np.cross(np.eye(3), axis)
    return np.asarray(np.cos(angle) * np.eye(3) - np.sin(angle) * cross + (1 - np.cos(angle)) * np.outer(axis, axis))


def centred_grid(shape: tuple[int, ...], spacing: tuple[float, ...], rotation: np.ndarray, middle: np.ndarray) -> Grid:
    """Return a grid turned by a rotation whose middle lies at a world point."""
    grid = Grid.of(shape, spacing=spacing, direction=rotation.ravel())
    origin = middle - (grid.world([(n - 1) / 2 for n in shape]) - np.array(grid.origin))
    return Grid.of(shape, spacing=spacing, direction=rotation.ravel(), origin=origin.tolist())
