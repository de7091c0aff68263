"""Distances between the surfaces of two regions, as DeepMind's surface-distance defines them.

A surface passes through the corners of voxels whose neighbourhood (2 x 2 x 2 voxels, 2 x 2 in 2D) is neither empty nor
full. Each such corner stands for an area: that of the triangles marching cubes lays through its neighbourhood, in the
image's unit. Its distance is that to the nearest surface corner of the other region.

Everything happens in the joint box of the two regions; the only full-size arrays are three of a byte or four a voxel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blocks.kernels.areas import areas
from blocks.kernels.compiled import compiled
from blocks.kernels.overlap import Labels, common_type
from blocks.region import Region

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SurfaceDistances:
    """Distances from each surface to the other, with the area each stands for.

    Parameters
    ----------
    forward, forward_area
        (n,) float64 from the first surface to the second, in the image's unit; area (a length in 2D).
    backward, backward_area
        (m,) the same from the second surface to the first.
    """

    forward: Floats
    forward_area: Floats
    backward: Floats
    backward_area: Floats


def boxes(fixed: Labels, warped: Labels, *, ids: Sequence[int]) -> list[Region]:
    """Return each label's joint box in two maps of one shape, in one pass; empty where neither map holds the label."""
    ndim = fixed.ndim
    first, second = (volume.reshape(_lifted(volume.shape)) for volume in common_type(fixed, warped))
    order = np.argsort(np.asarray(ids, dtype=np.int64), kind="stable")
    table = np.asarray(ids, dtype=np.int64)[order]
    start = np.full((table.size, 3), np.iinfo(np.int64).max)
    stop = np.zeros((table.size, 3), dtype=np.int64)
    for volume in (first, second):
        _boxes(volume, table, start, stop)
    found: list[Region] = [Region((0,) * ndim, (0,) * ndim)] * table.size
    for row, place in enumerate(order):
        if stop[row].any():
            box = [tuple(int(v) for v in side[row, 3 - ndim :]) for side in (start, stop)]
            found[place] = Region(box[0], box[1])
    return found


def surface_distances(fixed: Labels, warped: Labels, *, label: int, steps: Sequence[float]) -> SurfaceDistances | None:
    """Return the distances between the surfaces of one label in two maps.

    Parameters
    ----------
    fixed, warped
        Label maps of one shape, ([z,] y, x). Crop both to the label's joint box (:func:`boxes`): what lies outside
        counts as background.
    label
        The label whose voxels are the region.
    steps
        Distance between neighbouring voxels along each array axis, in array order ([z,] y, x).

    Returns
    -------
    distances
        None where either map lacks the label: there is no surface, hence no distance.
    """
    ndim = fixed.ndim
    if len(steps) != ndim or fixed.shape != warped.shape:
        msg = f"two maps of one shape and a step an axis are needed, got {fixed.shape}, {warped.shape} and {steps}"
        raise ValueError(msg)
    table = areas(tuple(float(step) for step in steps))
    first, second = (_surface(volume, label) for volume in common_type(fixed, warped))
    lifted = np.array((*(1.0,) * (3 - ndim), *steps), dtype=np.float64)
    ends = [_points(codes, table.size - 1) for codes in (first, second)]
    if not all(points.size for points in ends):
        return None
    return SurfaceDistances(
        _nearest(second, table.size - 1, ends[0], lifted),
        table[first.ravel()[ends[0]]],
        _nearest(first, table.size - 1, ends[1], lifted),
        table[second.ravel()[ends[1]]],
    )


def hausdorff(distances: SurfaceDistances, *, percent: float = 95.0) -> float:
    """Return the larger of the two directed percentiles, each over area, in the image's unit."""
    return max(
        _percentile(distances.forward, distances.forward_area, percent),
        _percentile(distances.backward, distances.backward_area, percent),
    )


def surface_dice(distances: SurfaceDistances, *, tolerance: float) -> float:
    """Return the part of both surfaces' area that lies within a tolerance of the other surface, from 0 to 1."""
    near = sum(
        float(np.sum(area[there <= tolerance]))
        for there, area in ((distances.forward, distances.forward_area), (distances.backward, distances.backward_area))
    )
    return near / float(np.sum(distances.forward_area) + np.sum(distances.backward_area))


def _percentile(distances: Floats, area: Floats, percent: float) -> float:
    order = np.lexsort((area, distances))
    share = np.cumsum(area[order]) / np.sum(area[order])
    place = min(int(np.searchsorted(share, percent / 100.0)), distances.size - 1)
    return float(distances[order[place]])


def _lifted(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*(1,) * (3 - len(shape)), *shape)


def _surface(labels: npt.NDArray[np.integer], label: int) -> npt.NDArray[np.uint8]:
    """Return the neighbourhood code of every voxel corner, (z, y, x) + 1; one plane of corners in 2D."""
    planar = labels.ndim == 2
    depth, height, width = _lifted(labels.shape)
    codes = np.zeros((1 if planar else depth + 1, height + 1, width + 1), dtype=np.uint8)
    _codes(labels.reshape(depth, height, width), label, planar, codes)
    return codes


@compiled
def _boxes(labels, ids, start, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    depth, height, width = labels.shape
    for k in range(depth):
        for j in range(height):
            i = 0
            while i < width:
                value = labels[k, j, i]
                first = i
                i += 1
                while i < width and labels[k, j, i] == value:
                    i += 1
                row = np.searchsorted(ids, np.int64(value))
                if row < ids.size and ids[row] == value:
                    start[row, 0] = min(start[row, 0], k)
                    start[row, 1] = min(start[row, 1], j)
                    start[row, 2] = min(start[row, 2], first)
                    stop[row, 0] = max(stop[row, 0], k + 1)
                    stop[row, 1] = max(stop[row, 1], j + 1)
                    stop[row, 2] = max(stop[row, 2], i)


@compiled
def _codes(labels, label, planar, codes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    depth, height, width = labels.shape
    for k in range(depth):
        # A voxel is seen by the corners on each side of it; each side sets its own bit.
        for dz in range(1 if planar else 2):
            for j in range(height):
                for dy in range(2):
                    corner = 4 * (0 if planar else 1 - dz) + 2 * (1 - dy)
                    low, high = np.uint8(1 << (corner + 1)), np.uint8(1 << corner)
                    row = labels[k, j]
                    out = codes[k + dz, j + dy]
                    for i in range(width):
                        if row[i] == label:
                            out[i] |= low
                            out[i + 1] |= high


@compiled
def _points(codes, full):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    flat = codes.ravel()
    n = 0
    for code in flat:
        n += code != 0 and code != full
    points = np.empty(n, dtype=np.int64)
    n = 0
    for place in range(flat.size):
        if flat[place] != 0 and flat[place] != full:
            points[n] = place
            n += 1
    return points


@compiled
def _nearest(codes, full, points, steps):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Distance from each point (ascending places in ``codes``) to the nearest surface corner of ``codes``.

    An exact Euclidean distance transform, one axis after the other, taken only where a point asks for it: along z by
    two sweeps, along y by the lower envelope of parabolas (Felzenszwalb and Huttenlocher, 2012), along x by a search
    from the point outwards, which ends as soon as a step alone is longer than the best distance so far.
    """
    height, width = codes.shape[1:]
    along = _sweep(codes, full)
    out = np.empty(points.size, dtype=np.float64)
    squared = np.empty((height, width), dtype=np.float64)
    asked = np.zeros(height, dtype=np.bool_)
    first = 0
    while first < points.size:
        plane = points[first] // (height * width)
        last = first
        asked[:] = False
        while last < points.size and points[last] // (height * width) == plane:
            asked[points[last] % (height * width) // width] = True
            last += 1
        _columns(along[plane], asked, steps[0], steps[1], squared)
        for p in range(first, last):
            row = squared[points[p] % (height * width) // width]
            out[p] = np.sqrt(_outwards(row, points[p] % width, steps[2]))
        first = last
    return out


#: More voxels than any axis has: no surface corner along it.
_FAR = np.int32(1 << 30)


@compiled
def _sweep(codes, full):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Voxels along z from each corner to the nearest surface corner above or below it."""
    depth, height, width = codes.shape
    along = np.empty((depth, height, width), dtype=np.int32)
    for k in range(depth):
        for j in range(height):
            for i in range(width):
                before = along[k - 1, j, i] + np.int32(1) if k > 0 else _FAR
                surface = codes[k, j, i] != 0 and codes[k, j, i] != full
                along[k, j, i] = 0 if surface else min(before, _FAR)
    for k in range(depth - 2, -1, -1):
        for j in range(height):
            for i in range(width):
                along[k, j, i] = min(along[k, j, i], along[k + 1, j, i] + np.int32(1))
    return along


@compiled
def _columns(along, asked, sz, sy, squared):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Squared distance within each column of a plane (y, x), in the rows that are asked for."""
    height, width = along.shape
    value = np.empty(height, dtype=np.float64)
    centre = np.empty(height, dtype=np.int64)
    bound = np.empty(height, dtype=np.float64)
    for i in range(width):
        # Parabolas of the lower envelope: parabola n holds from bound[n] on.
        n = 0
        for j in range(height):
            if along[j, i] >= _FAR:
                continue
            f = (along[j, i] * sz) * (along[j, i] * sz)
            meet = -np.inf
            while n > 0:
                v = centre[n - 1]
                meet = 0.5 * ((f - value[n - 1]) / (sy * sy * (j - v)) + (j + v))
                if meet > bound[n - 1]:
                    break
                n -= 1
            bound[n] = meet if n > 0 else -np.inf
            centre[n] = j
            value[n] = f
            n += 1
        m = 0
        for j in range(height):
            if not asked[j]:
                continue
            squared[j, i] = np.inf
            while m + 1 < n and bound[m + 1] <= j:
                m += 1
            if n > 0:
                step = (j - centre[m]) * sy
                squared[j, i] = value[m] + step * step


@compiled
def _outwards(row, i, sx):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Least squared distance along a row, seen from one place in it."""
    best = row[i]
    for d in range(1, row.size):
        step = (d * sx) * (d * sx)
        if step >= best:
            break
        if i >= d:
            best = min(best, row[i - d] + step)
        if i + d < row.size:
            best = min(best, row[i + d] + step)
    return best
