"""Whole strips of a region, one plane after the other, in one call: nothing waits for the interpreter in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blocks.kernels.compiled import compiled
from blocks.kernels.lanes import widest
from blocks.kernels.positions import fill_rows
from blocks.kernels.sample import linear_rows, nearest_rows

Array = npt.NDArray[Any]


@compiled
def linear_planes(
    first: Any,  # noqa: ANN401 - a tuple of arrays
    start: int,
    stop: int,
    rows: int,
    source: Array,
    frame: Array,
    out: Array,
    background: Any,  # noqa: ANN401 - of the voxels' type
) -> int:
    """Interpolate linearly at the positions of a strip.

    Parameters
    ----------
    first
        What positions are filled from, see :func:`blocks.kernels.positions.fill_rows`.
    start, stop, rows
        Rows of the strip, and how many are done at a time: their positions stay in the second cache.
    source, frame, out, background
        As in :func:`blocks.kernels.sample.linear_rows`.

    Returns
    -------
    int
        Positions inside the image whose voxels are not in the block; there must be none.
    """
    widest()
    missed = 0
    columns, height = first[0].shape[1], first[1].shape[1]
    points = np.empty((first[0].shape[0], min(rows, stop - start) * columns))
    for plane in range(first[2].shape[1]):
        for row in range(start, stop, rows):
            n = min(rows, stop - row) * columns
            if n != points.shape[1]:
                points = np.empty((points.shape[0], n))
            fill_rows(first, plane, row, points)
            missed += linear_rows(source, frame, points, out, (plane * height + row) * columns, background)
    return missed


@compiled
def nearest_planes(
    first: Any,  # noqa: ANN401 - a tuple of arrays
    start: int,
    stop: int,
    rows: int,
    source: Array,
    frame: Array,
    out: Array,
    background: Any,  # noqa: ANN401 - of the voxels' type
) -> int:
    """Take the nearest voxels at the positions of a strip; parameters and result as of :func:`linear_planes`."""
    widest()
    missed = 0
    columns, height = first[0].shape[1], first[1].shape[1]
    points = np.empty((first[0].shape[0], min(rows, stop - start) * columns))
    for plane in range(first[2].shape[1]):
        for row in range(start, stop, rows):
            n = min(rows, stop - row) * columns
            if n != points.shape[1]:
                points = np.empty((points.shape[0], n))
            fill_rows(first, plane, row, points)
            missed += nearest_rows(source, frame, points, out, (plane * height + row) * columns, background)
    return missed


@compiled
def position_planes(
    first: Any,  # noqa: ANN401 - a tuple of arrays
    start: int,
    stop: int,
    rows: int,
    out: Array,
) -> None:
    """Fill ``out`` (ndim, voxels of the region) with the positions of a strip; see :func:`linear_planes`."""
    widest()
    columns, height = first[0].shape[1], first[1].shape[1]
    points = np.empty((first[0].shape[0], min(rows, stop - start) * columns))
    for plane in range(first[2].shape[1]):
        for row in range(start, stop, rows):
            n, begin = min(rows, stop - row) * columns, (plane * height + row) * columns
            if n != points.shape[1]:
                points = np.empty((points.shape[0], n))
            fill_rows(first, plane, row, points)
            for c in range(points.shape[0]):
                for i in range(n):
                    out[c, begin + i] = points[c, i]
