"""The body that an image shows, made from its intensities: what is aligned, rather than tables and fields of view.

The same body is what the points of a known deformation are drawn in (:mod:`fidopt.building.moved`) and what a truth is
asked to cover (:mod:`fidopt.building.density`). Another thing, and not this, is where a field's folds are counted: the
protocol names the fixed image's Otsu foreground for it, which is neither filled nor opened (:mod:`fidopt.scoring`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import ndimage

from blocks.grid import Grid
from blocks.image import grid_of
from blocks.kernels.histogram import otsu, partial, partial_range
from fidopt.alignment.averaging import averaged
from fidopt.errors import InputError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Most voxels an axis of the grid a body is shaped on.
SIDE = 256
#: Hounsfield units above which a CT shows a body.
CT = -500.0
#: Layers of voxels that closing fills: a gap in a skin, not the one between a back and its table.
_CLOSED = 1
#: Layers of voxels that opening takes away: cushions, tubes.
_OPENED = 2
#: How much of an image's border has to be bright for its background to be bright.
_BRIGHT_BORDER = 0.75


@dataclass(frozen=True)
class Body:
    """Where an image shows something.

    Parameters
    ----------
    mask
        (z,) y, x; at least one voxel is inside.
    grid
        Where its voxels lie.
    """

    mask: Mask
    grid: Grid

    @property
    def volume(self) -> float:
        """How much of the world it fills, in the image's unit."""
        return float(self.mask.sum()) * float(np.prod(self.grid.spacing))

    def points(self) -> Floats:
        """Return the world points of its voxels (n, ndim)."""
        return self.grid.world(np.argwhere(self.mask))

    def centre(self) -> Floats:
        """Return its centre of mass, a world point."""
        return self.grid.world(np.argwhere(self.mask).mean(axis=0))

    def ends(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest world coordinates of its voxels' centres."""
        points = self.points()
        return points.min(axis=0), points.max(axis=0)

    def at(self, points: Floats) -> Mask:
        """Tell which world points (n, ndim) lie in one of its voxels."""
        index = np.floor(self.grid.index(points) + 0.5).astype(np.int64)
        within = np.all((index >= 0) & (index < np.array(self.grid.shape)), axis=-1)
        found = np.zeros(len(points), dtype=bool)
        found[within] = self.mask[tuple(index[within].T)]
        return found

    def on(self, grid: Grid) -> Mask:
        """Return the body on another grid of the same axes, read at the nearest voxel and continued at its edges."""
        corner = self.grid.index(grid.world(np.zeros(grid.ndim)))
        lines = []
        for axis, size in enumerate(grid.shape):
            ratio = grid.spacing[::-1][axis] / self.grid.spacing[::-1][axis]
            index = np.floor(corner[axis] + ratio * np.arange(size) + 0.5).astype(np.int64)
            lines.append(np.clip(index, 0, self.grid.shape[axis] - 1))
        return self.mask[np.ix_(*lines)]


def body_of(image: xr.DataArray, *, modality: str) -> Body:
    """Return the body of an image.

    It is what lies above -500 HU in a CT, and above half of Otsu's threshold in any other image: one whose border is
    bright on three quarters (tissue on a bright slide) is turned over first, and values count from the least one where
    that is negative. The image is averaged to at most 256 voxels an axis; the body is then closed, its holes are
    filled in space and in every plane of voxels, it is opened, and its largest part is kept. A body that leaves the
    image is taken to go on outside it.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x; lazy or in memory.
    modality
        As the dataset's descriptor names it.

    Raises
    ------
    InputError
        When there is no body: every voxel has one value.
    """
    small = averaged(image, side=SIDE)
    mask = shaped(above_background(np.asarray(small.values), modality=modality))
    if not mask.any():
        what = "above -500 HU" if modality == "ct" else "above half of Otsu's threshold"
        msg = f"an image ({modality}) of shape {grid_of(image).shape} shows no body: nothing of it lies {what}"
        raise InputError(msg)
    return Body(mask, grid_of(small))


def above_background(values: npt.NDArray[np.floating], *, modality: str) -> Mask:
    """Tell which voxels are brighter than the background (darker, where the background is bright).

    Parameters
    ----------
    values
        (z,) y, x, finite.
    modality
        ``ct``: in Hounsfield units.
    """
    if modality == "ct":
        return np.asarray(values > CT)
    low, high = partial_range(values)
    threshold = otsu(partial(values, low=low, high=high), low=low, high=high)
    if float((border(values) > threshold).mean()) >= _BRIGHT_BORDER:
        return np.asarray(values < high - (high - threshold) / 2)
    zero = min(low, 0.0)
    return np.asarray(values > zero + (threshold - zero) / 2)


def border(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the outermost voxels of an image, those of axes of two voxels or fewer left out."""
    faces = [np.take(values, (0, -1), axis=axis).ravel() for axis, size in enumerate(values.shape) if size > 2]
    return np.concatenate(faces) if faces else values.ravel()


def shaped(mask: Mask) -> Mask:
    """Return a mask closed, filled, opened and reduced to its largest part; of several, the one met first."""
    closed = _layered(mask, _CLOSED, grow_first=True) | mask
    filled = _filled(closed)
    opened = _layered(filled, _OPENED, grow_first=False) & filled
    return _largest(opened if opened.any() else filled)


def _layered(mask: Mask, layers: int, *, grow_first: bool) -> Mask:
    """Close or open by some layers of voxels; axes too short for them are left alone, edges go on outside."""
    structure = ndimage.generate_binary_structure(mask.ndim, 1)
    for axis, size in enumerate(mask.shape):
        if size <= 2 * layers:
            keep = [slice(None)] * mask.ndim
            for end in (0, 2):
                keep[axis] = slice(end, end + 1)
                structure[tuple(keep)] = False
    padded = np.pad(mask, layers, mode="edge")
    steps = (ndimage.binary_dilation, ndimage.binary_erosion)
    for step in steps if grow_first else steps[::-1]:
        outside = int(step is ndimage.binary_erosion)
        padded = step(padded, structure, iterations=layers, border_value=outside)
    inner = (slice(layers, -layers),) * mask.ndim
    return np.asarray(padded[inner])


def _filled(mask: Mask) -> Mask:
    """Return a mask with its holes filled, those of the whole and those of every plane along every axis."""
    filled = ndimage.binary_fill_holes(mask)
    if mask.ndim == 3:
        for axis in range(mask.ndim):
            flat = np.expand_dims(ndimage.generate_binary_structure(2, 1), axis)
            filled |= ndimage.binary_fill_holes(mask, structure=flat)
    return np.asarray(filled)


def _largest(mask: Mask) -> Mask:
    labels, count = ndimage.label(mask)
    if count <= 1:
        return mask
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return np.asarray(labels == int(sizes.argmax()))
