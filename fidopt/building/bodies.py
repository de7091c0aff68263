"""The body of an image too large for memory: found at a coarse level, lazily, by dask-image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import xarray as xr
from dask_image import ndmeasure, ndmorph

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of, levels_of, open_image
from blocks.kernels.histogram import otsu, partial, partial_range

Mask = npt.NDArray[np.bool_]

#: Most voxels an axis of the level a body is shaped on.
SIDE = 256
#: Layers of voxels that closing fills and opening takes away.
_LAYERS = 2


def body_of(path: Path) -> tuple[Mask, Grid]:
    """Return the body of a store's image, (z,) y, x, at its finest level of at most 256 voxels an axis (or coarsest).

    The body is what lies on the other side of Otsu's threshold than the image's border: dark tissue on a bright
    slide, a bright specimen in the dark. It is closed, opened, and its largest connected part.
    """
    levels = levels_of(path)
    number = next((n for n, level in enumerate(levels) if max(level.grid.shape) <= SIDE), len(levels) - 1)
    image = open_image(path, level=number)
    return body(image), grid_of(image)


def body(image: xr.DataArray) -> Mask:
    """Return the body of a lazy image, (z,) y, x; see :func:`body_of`."""
    values = image.data.astype(np.float64)
    values = values.mean(axis=0) if "c" in image.dims else values
    values = values.rechunk({axis: min(512, n) for axis, n in enumerate(values.shape)})
    low, high = partial_range(np.asarray(compute(da.stack([values.min(), values.max()]))))
    counts = [_delayed(block, low, high) for block in values.to_delayed().ravel()]
    threshold = otsu(np.sum([compute(count) for count in counts], axis=0), low=low, high=high)
    mask = values > threshold
    if outside(values) > threshold:
        mask = ~mask
    shaped = ndmorph.binary_closing(mask, iterations=_LAYERS) | mask
    opened = ndmorph.binary_opening(shaped, iterations=_LAYERS)
    return _largest(opened) if bool(compute(opened.any())) else np.asarray(compute(mask))


def outside(values: Any) -> float:  # noqa: ANN401 - a Dask array
    """Return the median of an image's outer voxels ((z,) y, x): what it shows where there is nothing."""
    faces = []
    for axis, size in enumerate(values.shape):
        if size > 2:
            ends = [slice(None)] * axis
            faces += [values[(*ends, 0)].ravel(), values[(*ends, size - 1)].ravel()]
    return float(np.median(np.asarray(compute(da.concatenate(faces)))))


def _largest(mask: Any) -> Mask:  # noqa: ANN401 - a Dask array
    """Return the largest connected part of a mask; of several, the one met first."""
    labels, count = ndmeasure.label(mask)
    parts = np.asarray(compute(labels))
    sizes = np.bincount(parts.ravel(), minlength=int(compute(count)) + 1)
    sizes[0] = 0
    return np.asarray(parts == int(sizes.argmax()))


def _delayed(block: Any, low: float, high: float) -> Any:  # noqa: ANN401 - Dask is not typed
    from dask import delayed

    return delayed(partial)(block, low=low, high=high)
