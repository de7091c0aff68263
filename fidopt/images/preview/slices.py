"""An image as a picture: its planes side by side, its labels' edges over it, or two images as a checkerboard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.image import grid_of, kind_of, spatial_dims
from fidopt.errors import InputError
from fidopt.images.preview.colours import Picture, greys, label_colours, window_of
from fidopt.images.preview.views import View, views

GAP = 8


def render(
    image: xr.DataArray,
    *,
    labels: xr.DataArray | None = None,
    window: tuple[float, float] | None = None,
    side: int | None = None,
) -> Picture:
    """Draw an image: the plane in 2D, the three middle planes side by side in 3D, in the right proportions.

    Parameters
    ----------
    image
        Dims ([c,] [z,] y, x); three or four channels of a 2D image are drawn as a colour, a label map a colour a label.
    labels
        A label map on the same grid, whose edges are drawn over the image.
    window
        Values that become black and white; by default the 1st and 99th percentile of what is drawn.
    side
        Pixels along the longest side of a plane.

    Returns
    -------
    ndarray
        (height, width, 3) uint8.
    """
    where = views(grid_of(image), side=side)
    planes = coloured(image, where, window=window)
    if labels is not None:
        _refuse_other_shape(image, labels)
        for plane, view in zip(planes, where, strict=True):
            _draw_edges(plane, view.cut(labels, smooth=False)[..., 0])
    return beside(planes)


def checkerboard(fixed: xr.DataArray, warped: xr.DataArray, *, squares: int = 8, side: int | None = None) -> Picture:
    """Draw two images on one grid as the fields of a checkerboard: edges that go on across the fields are aligned.

    Parameters
    ----------
    fixed, warped
        Dims ([c,] [z,] y, x), of one spatial shape; the field at the upper left is the fixed image's.
    squares
        Fields along a plane's longest side.
    side
        Pixels along the longest side of a plane.

    Returns
    -------
    ndarray
        (height, width, 3) uint8.
    """
    _refuse_other_shape(fixed, warped)
    where = views(grid_of(fixed), side=side)
    return beside(interleaved(coloured(fixed, where), coloured(warped, where), squares=squares))


def coloured(image: xr.DataArray, where: Sequence[View], *, window: tuple[float, float] | None = None) -> list[Picture]:
    """Return planes of an image as colours (height, width, 3) uint8; see :func:`render`."""
    if kind_of(image) == "labels" or image.dtype == bool:
        return [label_colours(view.cut(image, smooth=False)[..., 0]) for view in where]
    planes = [view.cut(image, smooth=True) for view in where]
    if image.dtype == np.uint8 and window is None and planes[0].shape[-1] == 3:
        return [np.rint(plane).astype(np.uint8) for plane in planes]
    seen = window or window_of(planes)
    return [greys(plane, seen) for plane in planes]


def interleaved(ours: Sequence[Picture], theirs: Sequence[Picture], *, squares: int = 8) -> list[Picture]:
    """Return planes of two images, each as the fields of a checkerboard that begins with ours."""
    boards = []
    for one, other in zip(ours, theirs, strict=True):
        size = max(1, -(-max(one.shape[:2]) // squares))
        rows, columns = np.indices(one.shape[:2]) // size
        boards.append(np.where(((rows + columns) % 2 == 0)[..., np.newaxis], one, other))
    return boards


def beside(planes: Sequence[Picture]) -> Picture:
    """Return planes side by side on black, centred, a gap between them."""
    height = max(plane.shape[0] for plane in planes)
    parts: list[Picture] = []
    for plane in planes:
        above = (height - plane.shape[0]) // 2
        below = height - plane.shape[0] - above
        parts += [np.pad(plane, ((above, below), (0, GAP), (0, 0)))]
    picture = np.concatenate(parts, axis=1)
    return picture[:, :-GAP]


def _refuse_other_shape(one: xr.DataArray, other: xr.DataArray) -> None:
    sizes = [tuple(int(image.sizes[dim]) for dim in spatial_dims(image)) for image in (one, other)]
    if sizes[0] != sizes[1]:
        msg = f"pictures are drawn of two images on one grid, got {sizes[0]} and {sizes[1]} voxels; warp one first"
        raise InputError(msg)


def _draw_edges(plane: Picture, labels: npt.NDArray[np.float64]) -> None:
    """Colour, in place, the pixels whose right or lower neighbour has another label."""
    edge = np.zeros(labels.shape, dtype=bool)
    edge[:-1] |= labels[:-1] != labels[1:]
    edge[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    # An edge belongs to the structure, not to the background beside it.
    inner = np.maximum(labels, np.maximum(np.roll(labels, -1, axis=0), np.roll(labels, -1, axis=1)))
    plane[edge] = label_colours(inner)[edge]
