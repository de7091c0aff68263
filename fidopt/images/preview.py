"""Pictures of images: middle slices, a checkerboard of two, edges of labels; for people, never for scoring."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.ndimage import map_coordinates

from blocks.execute import compute
from blocks.image import grid_of, kind_of, levels_of, spatial_dims
from fidopt.errors import InputError
from fidopt.images.atomic import written_whole

Picture = npt.NDArray[np.uint8]

#: Percentiles of the values that become black and white.
PERCENTILES = (1.0, 99.0)
#: Pixels along a picture's longest side: of the plane in 2D, of each of the three planes in 3D.
SIDE = {2: 768, 3: 320}
_GAP = 8


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
    planes = _coloured_planes(image, window=window, side=side)
    if labels is not None:
        _refuse_other_shape(image, labels)
        for plane, values in zip(planes, _planes(labels, side=side, smooth=False), strict=True):
            _draw_edges(plane, values[..., 0])
    return _beside(planes)


def checkerboard(
    fixed: xr.DataArray,
    warped: xr.DataArray,
    *,
    squares: int = 8,
    side: int | None = None,
) -> Picture:
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
    pairs = zip(_coloured_planes(fixed, side=side), _coloured_planes(warped, side=side), strict=True)
    return _beside([_interleaved(ours, theirs, squares=squares) for ours, theirs in pairs])


def write_png(path: str | Path, picture: Picture) -> None:
    """Write a picture (height, width, 3) uint8 as PNG."""
    with written_whole(path) as part:
        part.write_bytes(png_bytes(picture))


def png_bytes(picture: Picture) -> bytes:
    """Return a picture (height, width, 3) uint8 as the bytes of a PNG file."""
    stream = io.BytesIO()
    iio.imwrite(stream, picture, extension=".png", plugin="pillow", compress_level=3)
    return stream.getvalue()


def coarse_level(path: str | Path, *, side: int = 512) -> int:
    """Return the finest level of a store whose longest side has at most so many voxels; else its coarsest."""
    levels = levels_of(path)
    return next((n for n, level in enumerate(levels) if max(level.grid.shape) <= side), len(levels) - 1)


def _refuse_other_shape(one: xr.DataArray, other: xr.DataArray) -> None:
    sizes = [tuple(int(image.sizes[dim]) for dim in spatial_dims(image)) for image in (one, other)]
    if sizes[0] != sizes[1]:
        msg = f"pictures are drawn of two images on one grid, got {sizes[0]} and {sizes[1]} voxels; warp one first"
        raise InputError(msg)


def _coloured_planes(
    image: xr.DataArray, *, window: tuple[float, float] | None = None, side: int | None = None
) -> list[Picture]:
    """Return the planes of an image as colours (height, width, 3) uint8."""
    if kind_of(image) == "labels" or image.dtype == bool:
        return [_label_colours(plane[..., 0]) for plane in _planes(image, side=side, smooth=False)]
    planes = _planes(image, side=side, smooth=True)
    if image.dtype == np.uint8 and window is None and planes[0].shape[-1] == 3:
        return [np.rint(plane).astype(np.uint8) for plane in planes]
    low, high = window or _window(planes)
    scale = 255.0 / (high - low) if high > low else 0.0
    grey = [
        np.clip((np.nan_to_num(plane, nan=low, posinf=high, neginf=low) - low) * scale, 0, 255).astype(np.uint8)
        for plane in planes
    ]
    return [np.broadcast_to(plane, (*plane.shape[:2], 3)).copy() for plane in grey]


def _window(planes: Sequence[npt.NDArray[np.float64]]) -> tuple[float, float]:
    values = np.concatenate([plane[np.isfinite(plane)].ravel() for plane in planes])
    if values.size == 0:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(values, PERCENTILES))
    # Mostly background: the percentiles meet, the extremes do not.
    return (low, high) if high > low else (float(values.min()), float(values.max()))


def _planes(image: xr.DataArray, *, side: int | None, smooth: bool) -> list[npt.NDArray[np.float64]]:
    """Return the middle planes (height, width, channels), one or three channels, resized to true proportions."""
    grid = grid_of(image)
    spacing = dict(zip("xyz", grid.spacing, strict=False))
    extent = {dim: spacing[dim] * int(image.sizes[dim]) for dim in "zyx"[-grid.ndim :]}
    pixels = (side or SIDE[grid.ndim]) / max(extent.values())
    if grid.ndim == 2:
        pixels = min(pixels, 1 / min(grid.spacing))
    planes: list[npt.NDArray[np.float64]] = []
    for across in (None,) if grid.ndim == 2 else ("z", "y", "x"):
        rows, columns = [dim for dim in "zyx"[-grid.ndim :] if dim != across]
        plane = _plane(image, across)
        # In the world z goes up; in a picture rows go down.
        if rows == "z" and grid.direction[-1] > 0:
            plane = plane[::-1]
        shape = tuple(max(1, round(extent[dim] * pixels)) for dim in (rows, columns))
        planes.append(_resized(plane, shape, smooth=smooth))
    return planes


def _plane(image: xr.DataArray, across: str | None) -> npt.NDArray[Any]:
    """Return a middle plane (rows, columns, channels)."""
    if across is not None:
        middle = int(image.sizes[across]) // 2
        image = image.isel({across: slice(middle, middle + 1)})
    array = np.asarray(compute(image))
    if "c" in image.dims:
        array = np.moveaxis(array[: 3 if array.shape[0] in (3, 4) else 1], 0, -1)
    else:
        array = array[..., np.newaxis]
    return array if across is None else array.squeeze(axis=image.dims.index(across) - ("c" in image.dims))


def _resized(plane: npt.NDArray[Any], shape: tuple[int, ...], *, smooth: bool) -> npt.NDArray[np.float64]:
    """Return a plane with other numbers of rows and columns, pixel centres where they belong."""
    if plane.shape[:2] == shape:
        return plane.astype(np.float64)
    lines = [(np.arange(n) + 0.5) * old / n - 0.5 for n, old in zip(shape, plane.shape, strict=False)]
    where = np.stack(np.meshgrid(*lines, indexing="ij"))
    channels = [
        map_coordinates(plane[..., c].astype(np.float64), where, order=1 if smooth else 0, mode="nearest")
        for c in range(plane.shape[-1])
    ]
    return np.stack(channels, axis=-1)


def _label_colours(labels: npt.NDArray[np.float64]) -> Picture:
    """Return a colour a label: black for zero, else a hue that neighbouring numbers do not share."""
    values, inverse = np.unique(labels, return_inverse=True)
    table = np.array([_colour(int(value)) for value in values], dtype=np.uint8)
    return table[inverse.reshape(labels.shape)]


def _colour(label: int) -> tuple[int, int, int]:
    if label == 0:
        return (0, 0, 0)
    # Steps of the golden ratio spread any run of labels around the circle of hues.
    red, green, blue = colorsys.hsv_to_rgb(label * 0.618033988749895 % 1.0, 0.75, 1.0)
    return (round(255 * red), round(255 * green), round(255 * blue))


def _draw_edges(plane: Picture, labels: npt.NDArray[np.float64]) -> None:
    """Colour, in place, the pixels whose right or lower neighbour has another label."""
    edge = np.zeros(labels.shape, dtype=bool)
    edge[:-1] |= labels[:-1] != labels[1:]
    edge[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    # An edge belongs to the structure, not to the background beside it.
    inner = np.maximum(labels, np.maximum(np.roll(labels, -1, axis=0), np.roll(labels, -1, axis=1)))
    plane[edge] = _label_colours(inner)[edge]


def _interleaved(ours: Picture, theirs: Picture, *, squares: int) -> Picture:
    size = max(1, -(-max(ours.shape[:2]) // squares))
    rows, columns = np.indices(ours.shape[:2]) // size
    return np.where(((rows + columns) % 2 == 0)[..., np.newaxis], ours, theirs)


def _beside(planes: Sequence[Picture]) -> Picture:
    """Return planes side by side on black, centred, a gap between them."""
    height = max(plane.shape[0] for plane in planes)
    parts: list[Picture] = []
    for plane in planes:
        above = (height - plane.shape[0]) // 2
        below = height - plane.shape[0] - above
        parts += [np.pad(plane, ((above, below), (0, _GAP), (0, 0)))]
    picture = np.concatenate(parts, axis=1)
    return picture[:, :-_GAP]
