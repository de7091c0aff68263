"""Which planes of an image a picture shows, in which proportions, and where the world's points lie on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.ndimage import map_coordinates

from blocks.execute import compute
from blocks.grid import Grid
from blocks.region import Region

Floats = npt.NDArray[np.float64]

#: Pixels along a picture's longest side: of the plane in 2D, of each of the three planes in 3D.
SIDE = {2: 768, 3: 320}
#: Room left around what is looked at, as a part of its extent and in voxels, and the part of the image that is as good
#: as all of it.
_ROOM, _LEAST, _MOST = 0.3, 6, 0.5


@dataclass(frozen=True)
class View:
    """One plane of a grid, as it is drawn.

    Parameters
    ----------
    grid
        The image's.
    axis
        The array axis that the plane lies across; None in 2D.
    index
        Where it lies on that axis.
    shape
        Rows and columns of the picture, in the world's proportions.
    region
        The part of the grid that is drawn.
    """

    grid: Grid
    axis: int | None
    index: int
    shape: tuple[int, int]
    region: Region

    @property
    def axes(self) -> tuple[int, int]:
        """The array axes of the rows and of the columns."""
        rows, columns = (axis for axis in range(self.grid.ndim) if axis != self.axis)
        return rows, columns

    @property
    def flipped(self) -> bool:
        """Whether the last row comes first: in the world z goes up, and in a picture rows go down."""
        return self.grid.ndim == 3 and self.axes[0] == 0 and self.grid.direction[-1] > 0

    @property
    def name(self) -> str:
        """Where the plane lies, in words; empty in 2D."""
        if self.axis is None:
            return ""
        return f"{'zyx'[self.axis]} = {self.index} of {self.grid.shape[self.axis]}"

    @property
    def pixels_a_voxel(self) -> float:
        """Pixels along the shorter side of a voxel."""
        return min(n / self.region.shape[axis] for n, axis in zip(self.shape, self.axes, strict=True))

    def cut(self, image: xr.DataArray | npt.NDArray[Any], *, smooth: bool) -> Floats:
        """Return the plane of an image ((c,) (z,) y, x) as rows, columns and channels, interpolated or nearest."""
        plane = self._plane(image)
        if plane.shape[:2] == self.shape:
            return plane.astype(np.float64)
        lines = [(np.arange(n) + 0.5) * old / n - 0.5 for n, old in zip(self.shape, plane.shape, strict=False)]
        where = np.stack(np.meshgrid(*lines, indexing="ij"))
        channels = [
            map_coordinates(plane[..., c].astype(np.float64), where, order=1 if smooth else 0, mode="nearest")
            for c in range(plane.shape[-1])
        ]
        return np.stack(channels, axis=-1)

    def marks(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return the pixels that hold any voxel of a mask (grid.shape): none is lost where a pixel is several."""
        counts = np.pad(self._plane(mask)[..., 0].astype(np.int64), ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
        first, last = [], []
        for n, size in zip(self.shape, counts.shape, strict=True):
            edges = np.arange(n + 1) * (size - 1) / n
            first.append(np.floor(edges[:-1] + 1e-9).astype(np.intp))
            last.append(np.maximum(np.ceil(edges[1:] - 1e-9).astype(np.intp), first[-1] + 1))
        (top, left), (bottom, right) = first, last
        found = counts[np.ix_(bottom, right)] - counts[np.ix_(top, right)]
        return np.asarray(found - counts[np.ix_(bottom, left)] + counts[np.ix_(top, left)] > 0)

    def pixels(self, points: npt.ArrayLike) -> Floats:
        """Return where world points (n, ndim) are drawn: (n, 2) columns and rows, from the picture's upper left."""
        index = self.grid.index(points) - self.region.start + 0.5
        size = self.region.shape
        rows, columns = (index[:, axis] * n / size[axis] for axis, n in zip(self.axes, self.shape, strict=True))
        return np.stack([columns, self.shape[0] - rows if self.flipped else rows], axis=1)

    def distances(self, points: npt.ArrayLike) -> Floats:
        """Return how far world points (n, ndim) are from the plane, in the grid's unit along its axis; 0 in 2D."""
        index = self.grid.index(points)
        if self.axis is None:
            return np.zeros(len(index))
        return np.asarray(np.abs(index[:, self.axis] - self.index) * self.grid.spacing[::-1][self.axis])

    def _plane(self, image: xr.DataArray | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the voxels of the plane (rows, columns, channels): one channel, or the first three of a colour."""
        lead = image.ndim - self.grid.ndim
        where = [*[slice(None)] * lead, *self.region.slices]
        if self.axis is not None:
            where[lead + self.axis] = slice(self.index, self.index + 1)
        part = image[tuple(where)]
        array = np.asarray(compute(part) if isinstance(part, xr.DataArray) else part)
        if self.axis is not None:
            array = array.squeeze(axis=lead + self.axis)
        array = np.moveaxis(array[: 3 if array.shape[0] in (3, 4) else 1], 0, -1) if lead else array[..., np.newaxis]
        return array[::-1] if self.flipped else array


def views(
    grid: Grid, *, at: Sequence[int] | None = None, side: int | None = None, region: Region | None = None
) -> list[View]:
    """Return the planes of a picture: the plane in 2D, one across each axis in 3D.

    Parameters
    ----------
    grid
        The image's.
    at
        An index an axis (z, y, x), through which the planes go; by default the middle.
    side
        Pixels along the longest side of a plane; in 2D no voxel of a whole image is drawn larger than a pixel.
    region
        The part of the grid to draw, which ``at`` lies in; by default all of it.
    """
    part = region or grid.region
    where = tuple((a + b) // 2 for a, b in zip(part.start, part.stop, strict=True)) if at is None else tuple(at)
    steps = grid.spacing[::-1]
    extent = [step * n for step, n in zip(steps, part.shape, strict=True)]
    pixels = (side or SIDE[grid.ndim]) / max(extent)
    if grid.ndim == 2 and region is None:
        pixels = min(pixels, 1 / min(steps))
    found = []
    for across in (None,) if grid.ndim == 2 else range(3):
        rows, columns = (axis for axis in range(grid.ndim) if axis != across)
        shape = (max(1, round(extent[rows] * pixels)), max(1, round(extent[columns] * pixels)))
        found.append(View(grid, across, 0 if across is None else where[across], shape, part))
    return found


def around(mask: npt.NDArray[np.bool_]) -> Region:
    """Return the voxels around those of a mask, a part of their extent on each side; all where that is most of it."""
    whole = Region.of(mask.shape)
    start, stop = [], []
    for axis, size in enumerate(mask.shape):
        there = np.flatnonzero(mask.any(axis=tuple(n for n in range(mask.ndim) if n != axis)))
        if not there.size:
            return whole
        room = max(_LEAST, round(_ROOM * (there[-1] + 1 - there[0])))
        start.append(max(0, int(there[0]) - room))
        stop.append(min(size, int(there[-1]) + 1 + room))
    region = Region(tuple(start), tuple(stop))
    return region if region.size < _MOST * whole.size else whole


def fullest(weights: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return an index an axis, whose plane weighs most of its axis; the middle where all weigh the same."""
    profiles = []
    for axis in range(weights.ndim):
        others = tuple(n for n in range(weights.ndim) if n != axis)
        profiles.append(weights.sum(axis=others, dtype=np.float64))
    return tuple(_peak(profile) for profile in profiles)


def busiest(image: npt.NDArray[Any], *, labels: bool = False) -> tuple[int, ...]:
    """Return an index an axis, in whose plane neighbouring voxels differ most: by their values, or as labels.

    Parameters
    ----------
    image
        Voxels ((z,) y, x).
    labels
        Whether the values are names, of which two differ or do not.
    """
    profiles = [np.zeros(n) for n in image.shape]
    values = image if labels else np.nan_to_num(image.astype(np.float32), posinf=0, neginf=0)
    for along in range(image.ndim):
        ahead, behind = (np.moveaxis(values, along, 0)[part] for part in (slice(1, None), slice(None, -1)))
        change = np.moveaxis(ahead != behind if labels else np.abs(ahead - behind), 0, along)
        for axis in set(range(image.ndim)) - {along}:
            others = tuple(n for n in range(image.ndim) if n != axis)
            profiles[axis] += change.sum(axis=others, dtype=np.float64)
    return tuple(_peak(profile) for profile in profiles)


def _peak(profile: Floats) -> int:
    return int(profile.argmax()) if profile.max() > profile.min() else len(profile) // 2
