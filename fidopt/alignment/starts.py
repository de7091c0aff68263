"""Where elastix starts from: translations of the fixed world that put two images roughly together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import fft, ndimage

from blocks.grid import Grid
from blocks.image import grid_of
from fidopt.alignment.averaging import averaged
from fidopt.alignment.bodies import Body, body_of

Floats = npt.NDArray[np.float64]
StartName = Literal["body-centres", "image-centres", "lower-ends", "upper-ends", "cross-correlation"]

#: Most voxels an axis of the images that are registered.
SIDE = 512
#: Voxels along the longest side of the lattice on which two images are correlated.
_LATTICE = 80
#: Between which percentiles of its body an image's values are kept: a bright speck would decide alone.
_PERCENTILES = (1.0, 99.0)


@dataclass(frozen=True)
class Start:
    """One translation to start from.

    Parameters
    ----------
    name
        What it puts together.
    translation
        World vector (x, y[, z]): the fixed point x starts at x + translation in the moving image.
    """

    name: StartName
    translation: tuple[float, ...]


@dataclass(frozen=True)
class Side:
    """One image of a pair, small enough to look at.

    Parameters
    ----------
    image
        One value a voxel, in memory (:func:`fidopt.alignment.averaging.averaged`).
    body
        What it shows.
    whole
        The grid of the image before it was averaged.
    """

    image: xr.DataArray
    body: Body
    whole: Grid

    @property
    def grid(self) -> Grid:
        """Return the averaged image's grid."""
        return grid_of(self.image)


def side_of(image: xr.DataArray, *, modality: str) -> Side:
    """Return one image of a pair, averaged to at most 512 voxels an axis, with its body.

    Raises
    ------
    InputError
        When the image holds no finite value, or shows no body.
    """
    return Side(averaged(image, side=SIDE), body_of(image, modality=modality), grid_of(image))


def between_centres(fixed: Grid, moving: Grid) -> tuple[float, ...]:
    """Return the translation that puts the middles of two images together."""
    ours, theirs = (grid.world([(size - 1) / 2 for size in grid.shape]) for grid in (fixed, moving))
    return tuple(float(v) for v in theirs - ours)


def starts(fixed: Side, moving: Side, *, centred: bool = False) -> tuple[Start, ...]:
    """Return the translations to start from.

    They put together the bodies' centres of mass; the images' centres; the lower, then the upper ends of the bodies
    along the world axis where their extents differ most (their centres of mass along the others); and what the peak
    of the images' cross-correlation says.

    Parameters
    ----------
    fixed, moving
        The pair.
    centred
        From the centres alone: one image is a part taken out of the other, whose ends mean nothing.
    """
    masses = moving.body.centre() - fixed.body.centre()
    found: list[tuple[StartName, Floats]] = [
        ("body-centres", masses),
        ("image-centres", np.array(between_centres(fixed.whole, moving.whole))),
    ]
    if not centred:
        fixed_ends, moving_ends = fixed.body.ends(), moving.body.ends()
        axis = int(np.argmax(np.abs(np.subtract(*moving_ends) - np.subtract(*fixed_ends))))
        names: tuple[StartName, StartName] = ("lower-ends", "upper-ends")
        for name, ours, theirs in zip(names, fixed_ends, moving_ends, strict=True):
            ends = masses.copy()
            ends[axis] = theirs[axis] - ours[axis]
            found.append((name, ends))
        found.append(("cross-correlation", correlated(fixed, moving)))
    return tuple(Start(name, tuple(float(v) for v in vector)) for name, vector in found)


def correlated(fixed: Side, moving: Side) -> Floats:
    """Return the translation at the peak of two images' cross-correlation, to the spacing of a coarse lattice.

    Both are read on lattices along the world's axes. Inside its body an image counts by how far it is from the body's
    mean, outside not at all, so that bodies cut differently do not pull the peak.
    """
    spacing = max(_extent(side.grid).max() for side in (fixed, moving)) / _LATTICE
    ours, our_origin = _on_lattice(fixed, spacing)
    theirs, their_origin = _on_lattice(moving, spacing)
    size = [fft.next_fast_len(a + b - 1, real=True) for a, b in zip(ours.shape, theirs.shape, strict=True)]
    product = np.conj(fft.rfftn(ours, size)) * fft.rfftn(theirs, size)
    peak = np.unravel_index(int(np.argmax(fft.irfftn(product, size))), size)
    shift = [k - n if k >= n_theirs else k for k, n, n_theirs in zip(peak, size, theirs.shape, strict=True)]
    return np.asarray(their_origin - our_origin + spacing * np.array(shift[::-1], dtype=np.float64))


def _extent(grid: Grid) -> Floats:
    corners = _corners(grid)
    return np.asarray(corners.max(axis=0) - corners.min(axis=0))


def _corners(grid: Grid) -> Floats:
    ends = np.array(np.meshgrid(*[(0, size - 1) for size in grid.shape], indexing="ij")).reshape(grid.ndim, -1).T
    return grid.world(ends)


def _on_lattice(side: Side, spacing: float) -> tuple[Floats, Floats]:
    """Return an image's values on a lattice along the world's axes, (z,) y, x, and the lattice's origin."""
    origin = _corners(side.grid).min(axis=0)
    counts = np.ceil(_extent(side.grid) / spacing).astype(int) + 1
    lattice = Grid.of(counts[::-1].tolist(), spacing=[spacing] * side.grid.ndim, origin=origin.tolist())
    points = lattice.world(np.argwhere(np.ones(lattice.shape, dtype=bool)))
    inside = side.body.at(points)
    values = np.zeros(len(points))
    values[inside] = read_at(side, points[inside])
    if inside.any():
        low, high = np.percentile(values[inside], _PERCENTILES)
        kept = np.clip(values[inside], low, high)
        values[inside] = kept - kept.mean()
    return values.reshape(lattice.shape), origin


def read_at(side: Side, points: Floats) -> Floats:
    """Return an image's values at world points (n, ndim), linear between voxels and continued at its edges."""
    index = side.grid.index(points).T
    return np.asarray(ndimage.map_coordinates(side.image.values, index, np.float64, order=1, mode="nearest"))
