"""An image in memory: an ``xarray.DataArray`` that carries its geometry.

The attributes ``spacing``, ``origin`` and ``direction`` are ITK's three, in world order (x, y, z). The coordinates
``z``, ``y``, ``x`` are positions along the array's own axes (OME-Zarr's translation + scale times the index), and
``translation`` says which of those positions is the one ``origin`` belongs to. A crop or a stride keeps the
attributes and shortens the coordinates, so :func:`grid_of` can still tell where its voxels are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.grid import Grid
from blocks.image.units import canonical_unit
from blocks.storage import voxel_type

Kind = Literal["image", "labels"]

#: Names of the spatial axes, in array order.
SPATIAL = ("z", "y", "x")
#: Name of the channel axis, which comes first where there is one.
CHANNEL = "c"
#: Farthest, in voxels, that a coordinate may be from the lattice its first two values span.
_LATTICE_TOLERANCE = 1e-3


def image_of(
    array: Any,  # noqa: ANN401 - a NumPy or a Dask array: Dask is not typed
    grid: Grid,
    *,
    unit: str | None = "mm",
    kind: Kind = "image",
    name: Hashable | None = None,
    translation: tuple[float, ...] | None = None,
) -> xr.DataArray:
    """Return voxels with their geometry as one image.

    Parameters
    ----------
    array
        Voxels ((c,) (z,) y, x), NumPy or Dask; an array with one axis more than the grid has its channels first.
    grid
        Where the voxels are; its shape must be the array's.
    unit
        Unit of spacing and origin, by its short or its NGFF name; None or "px" where there is none.
    kind
        ``"image"`` or ``"labels"``: whether coarser levels average voxels or count them.
    name
        Name of the result.
    translation
        First coordinate an axis, array order; by default the origin, reordered and not rotated.

    Raises
    ------
    ValueError
        When the array's shape is not the grid's, its type is none of an image, its voxels lie too far out for their
        size, or ``kind`` is neither of the two.
    """
    voxel_type(array.dtype)
    dims = dims_of(grid.ndim, channels=array.ndim == grid.ndim + 1)
    if grid.ndim not in (2, 3) or array.ndim != len(dims) or tuple(array.shape[-grid.ndim :]) != grid.shape:
        msg = f"an array of shape {array.shape} does not lie on a grid of shape {grid.shape}, with channels first"
        raise ValueError(msg)
    start = grid.origin[::-1] if translation is None else tuple(float(v) for v in translation)
    attrs = {
        "spacing": grid.spacing,
        "origin": grid.origin,
        "direction": grid.direction,
        "translation": start,
        "unit": canonical_unit(unit),
        "kind": checked_kind(kind),
    }
    lines = zip(SPATIAL[-grid.ndim :], start, grid.spacing[::-1], grid.shape, strict=True)
    coords = {dim: _line(dim, t, s, n) for dim, t, s, n in lines}
    return xr.DataArray(array, coords=coords, dims=dims, name=name, attrs=attrs)


def _line(dim: str, start: float, spacing: float, size: int) -> npt.NDArray[np.float64]:
    """Return the coordinates along an axis; far enough out, a float64 does not tell neighbours apart."""
    with np.errstate(over="ignore"):
        line = start + spacing * np.arange(size, dtype=np.float64)
    farthest = float(np.abs(line[[0, -1]]).max())
    if size > 1 and not 2 * np.spacing(farthest) <= _LATTICE_TOLERANCE * spacing:
        msg = f"voxels of size {spacing:g} along {dim} cannot be told apart as far from zero as {farthest:g}"
        raise ValueError(f"{msg}: a float64 has 16 digits; choose another origin")
    return line


def dims_of(spatial: int, *, channels: bool) -> tuple[str, ...]:
    """Return the axes of an image of so many spatial axes."""
    dims = SPATIAL[-spatial:]
    return (CHANNEL, *dims) if channels else dims


def spatial_dims(image: object) -> tuple[str, ...]:
    """Return the image's spatial axes in array order.

    Raises
    ------
    TypeError
        When it is an array and no image.
    ValueError
        When the axes are not (c,) (z,) y, x in this order.
    """
    if not isinstance(image, xr.DataArray):
        msg = (
            f"an image is an xarray.DataArray, got {type(image).__name__}; image_of(array, grid) makes one of an array"
        )
        raise TypeError(msg)
    dims = tuple(str(d) for d in image.dims)
    spatial = dims[1:] if dims[:1] == (CHANNEL,) else dims
    if spatial not in (SPATIAL, SPATIAL[1:]):
        msg = f"an image has the axes (c,) (z,) y, x in this order, got {dims}; keep an axis of one voxel with a slice"
        raise ValueError(msg)
    return spatial


def channels_of(image: xr.DataArray) -> int | None:
    """Return the number of channels, None where the image has no channel axis."""
    spatial_dims(image)
    return int(image.sizes[CHANNEL]) if CHANNEL in image.dims else None


def grid_of(image: xr.DataArray) -> Grid:
    """Return where the voxels of an image are: shape, spacing, origin and direction.

    A crop, a stride or a flip taken by slicing is accounted for; a single voxel taken out of an axis by a stride
    keeps the image's spacing.

    Raises
    ------
    ValueError
        When an axis is missing, the coordinates are not equally spaced, or there is no geometry at all.
    """
    dims = spatial_dims(image)
    shape = tuple(int(image.sizes[d]) for d in dims)
    if missing := [d for d in dims if d not in image.coords]:
        msg = f"the image has no coordinates along {', '.join(missing)}; make it with image_of(array, grid)"
        raise ValueError(msg)
    lines = [np.asarray(image.coords[d].values, dtype=np.float64) for d in dims]
    base = _attributes_grid(image, shape)
    if base is None:
        steps = [_step(line, None, d) for line, d in zip(lines, dims, strict=True)]
        grid = Grid.of(shape, spacing=[abs(s) for s in steps[::-1]], origin=[float(v[0]) for v in lines[::-1]])
        return _flipped(grid, [s < 0 for s in steps])
    start = tuple(image.attrs.get("translation", base.origin[::-1]))
    spacing = base.spacing[::-1]
    strides = [
        round(_step(line, s, d) / s) if n > 1 else 1 for line, s, d, n in zip(lines, spacing, dims, shape, strict=True)
    ]
    first = [_first(line[0], t, s) for line, t, s in zip(lines, start, spacing, strict=True)]
    origin = base.origin if not any(first) else tuple(float(v) for v in base.world(first))
    stretched = tuple(s * abs(k) for s, k in zip(spacing, strides, strict=True))
    return _flipped(Grid(shape, stretched[::-1], origin, base.direction), [k < 0 for k in strides])


def kind_of(image: xr.DataArray) -> Kind:
    """Return ``"labels"`` for an image that says so, else ``"image"``."""
    return checked_kind(image.attrs.get("kind", "image"))


def unit_of(image: xr.DataArray) -> str:
    """Return the short name of the unit of spacing and origin: "mm", "um", "m", ...; "px" where there is none."""
    return canonical_unit(image.attrs.get("unit"))


def checked_kind(kind: object) -> Kind:
    """Return a kind, or refuse what is none."""
    if kind not in ("image", "labels"):
        msg = f"the kind of an image is 'image' or 'labels', got {kind!r}"
        raise ValueError(msg)
    return kind


def _attributes_grid(image: xr.DataArray, shape: tuple[int, ...]) -> Grid | None:
    """Return the grid of the attributes, None where there are none (arithmetic may drop them)."""
    if "spacing" not in image.attrs:
        return None
    n = len(shape)
    attrs = image.attrs
    if len(attrs["spacing"]) != n:
        msg = f"the image has {n} spatial axes but a spacing of {len(attrs['spacing'])}: an axis was dropped"
        raise ValueError(f"{msg}; keep it with a slice of one voxel")
    origin, direction = attrs.get("origin"), attrs.get("direction")
    return Grid.of(shape, spacing=attrs["spacing"], origin=origin, direction=direction)


def _step(line: npt.NDArray[np.float64], spacing: float | None, dim: str) -> float:
    """Return the distance between neighbours along one axis."""
    if len(line) == 1:
        return 1.0 if spacing is None else spacing
    step = (line[-1] - line[0]) / (len(line) - 1)
    off_line = np.abs(line - (line[0] + step * np.arange(len(line)))).max()
    unit = abs(step) if spacing is None else spacing
    multiple = spacing is None or abs(step / spacing - round(step / spacing)) < _LATTICE_TOLERANCE
    if not math.isfinite(step) or step == 0 or off_line > _LATTICE_TOLERANCE * unit or not multiple:
        msg = f"the coordinates along {dim} are not equally spaced voxels of the image; slice it, or resample with warp"
        raise ValueError(msg)
    return float(step)


def _first(position: float, start: float, spacing: float) -> float:
    """Return the index of a coordinate, a whole number where it is one within rounding."""
    index = (float(position) - start) / spacing
    nearest = float(round(index))
    return nearest if abs(index - nearest) < _LATTICE_TOLERANCE else index


def _flipped(grid: Grid, flips: list[bool]) -> Grid:
    """Return the grid with the direction of some axes (array order) reversed."""
    if not any(flips):
        return grid
    signs = np.where(flips[::-1], -1.0, 1.0)
    # Adding zero turns the negative zeros into plain ones.
    direction = tuple(float(v) for v in (grid.direction_matrix * signs + 0.0).ravel())
    return Grid(grid.shape, grid.spacing, grid.origin, direction)
