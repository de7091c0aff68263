"""Where the rows of a fixed region lie: float64 positions, the same bits for any blocking.

Every kernel fills ``points`` (ndim, rows * columns), components x, y, z, with rows of one plane of the region. The
affine part of a position is ``through + down[row] + along[column]``, in this order, from tables that depend on global
indices alone; what a deformation adds comes last. No kernel looks at anything but the voxel's own row and column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from blocks.kernels.compiled import compiled
from blocks.kernels.lanes import fma, widest

Array = npt.NDArray[Any]


@compiled
def affine_rows(along: Array, down: Array, through: Array, plane: int, first: int, points: Array) -> None:
    """Fill ``points`` with the affine image of rows ``first``, ... of a plane of the region.

    Parameters
    ----------
    along, down, through
        (ndim, columns), (ndim, rows of the region), (ndim, planes of the region) float64.

    Notes
    -----
    Per voxel: 8 * ndim bytes written, ndim additions.
    """
    widest()
    columns = along.shape[1]
    for c in range(points.shape[0]):
        for row in range(points.shape[1] // columns):
            start, begin = through[c, plane] + down[c, first + row], np.uint64(row * columns)
            for i in range(columns):
                points[c, begin + np.uint64(i)] = start + along[c, i]


@compiled
def direct_rows(
    along: Array,
    down: Array,
    through: Array,
    turn: Array,
    vectors: Array,
    corner: Array,
    plane: int,
    first: int,
    points: Array,
) -> None:
    """Fill ``points`` with the affine image of rows plus the vectors that lie on the very same voxels.

    Parameters
    ----------
    along, down, through, plane, first
        As in :func:`affine_rows`.
    turn
        (ndim, ndim), from a vector to a displacement of the point.
    vectors
        (ndim, nz, ny, nx), float32 or float64.
    corner
        (3,; x, y, z) index of the vector on the region's first voxel.

    Notes
    -----
    Per voxel in 3D: 12 or 24 bytes read, 24 written, 9 multiply-adds (3 on plain axes), 6 additions.
    """
    widest()
    ndim, columns = along.shape
    x, z = corner[0], corner[2] + plane
    for row in range(points.shape[1] // columns):
        y = corner[1] + first + row
        for c in range(ndim):
            start, steps = through[c, plane] + down[c, first + row], along[c]
            out = points[c, row * columns : (row + 1) * columns]
            own = vectors[c, z, y, x : x + columns]
            if np.count_nonzero(turn[c]) == 1 and turn[c, c] != 0.0:
                # The others have no weight: the same bits, from a third of the memory.
                weight = turn[c, c]
                for i in range(columns):
                    out[i] = (start + steps[i]) + weight * np.float64(own[i])
                continue
            ux, uy = vectors[0, z, y, x : x + columns], vectors[1, z, y, x : x + columns]
            a, b = turn[c, 0], turn[c, 1]
            if ndim == 2:
                for i in range(columns):
                    out[i] = (start + steps[i]) + fma(b, np.float64(uy[i]), a * np.float64(ux[i]))
                continue
            uz, d = vectors[2, z, y, x : x + columns], turn[c, 2]
            for i in range(columns):
                moved = fma(d, np.float64(uz[i]), fma(b, np.float64(uy[i]), a * np.float64(ux[i])))
                out[i] = (start + steps[i]) + moved


@compiled
def expand_rows(
    vectors: Array,
    plane: int,
    first: int,
    cells: Array,
    taps: Array,
    inside: Array,
    turn: Array,
    out: Array,
) -> None:
    """Expand rows of one lattice plane along x, to the columns of the fixed region.

    Parameters
    ----------
    vectors
        (ndim, nz, ny, nx), float32 or float64: control points of a B-spline or vectors of a field.
    plane, first
        The lattice plane and its first row.
    cells, taps, inside
        Of each column: first lattice column, weights (taps, columns), and whether it lies on the lattice.
    turn
        (ndim, ndim), from a vector to a displacement of the point.
    out
        (ndim, rows, columns) float64, to be filled.

    Notes
    -----
    Per column and row in 3D with four taps: 12 vectors' components read, 21 multiply-adds.
    """
    widest()
    ndim, rows, columns = out.shape
    wide = np.empty((ndim, columns))
    for row in range(rows):
        for d in range(ndim):
            _expand_line(vectors[d, plane, first + row], cells, taps, inside, wide[d])
        for c in range(ndim):
            line = out[c, row]
            for i in range(columns):
                line[i] = turn[c, 0] * wide[0, i]
            for d in range(1, ndim):
                for i in range(columns):
                    line[i] = fma(turn[c, d], wide[d, i], line[i])


@compiled
def _expand_line(line: Array, cells: Array, taps: Array, inside: Array, out: Array) -> None:
    widest()
    one = np.uint64(1)
    if taps.shape[0] == 4:
        for i in range(cells.shape[0]):
            k = np.uint64(cells[i])
            low = fma(taps[1, i], np.float64(line[k + one]), taps[0, i] * np.float64(line[k]))
            two, three = np.float64(line[k + np.uint64(2)]), np.float64(line[k + np.uint64(3)])
            out[i] = low + fma(taps[3, i], three, taps[2, i] * two) if inside[i] else 0.0
    elif taps.shape[0] == 2:
        for i in range(cells.shape[0]):
            k = np.uint64(cells[i])
            both = fma(taps[1, i], np.float64(line[k + one]), taps[0, i] * np.float64(line[k]))
            out[i] = both if inside[i] else 0.0
    else:
        for i in range(cells.shape[0]):
            out[i] = np.float64(line[np.uint64(cells[i])]) if inside[i] else 0.0


@compiled
def lattice_rows(
    along: Array,
    down: Array,
    through: Array,
    turn: Array,
    vectors: Array,
    across: tuple[Array, Array, Array],
    below: tuple[Array, Array, Array],
    behind: tuple[Array, Array, Array],
    corner: int,
    held: Array,
    planes: Array,
    plane: int,
    first: int,
    points: Array,
) -> None:
    """Fill ``points`` with the affine image of rows plus a deformation on a lattice along the same axes.

    The lattice is expanded along x a plane of it at a time; the planes around a plane of the region are contracted
    along z, and the rows along y.

    Parameters
    ----------
    along, down, through, plane, first
        As in :func:`affine_rows`.
    turn, vectors
        As in :func:`expand_rows`.
    across, below, behind
        Of each column, row and plane of the region: the first of the lattice's columns, rows (counted from
        ``corner``) and planes around it, their weights (taps, n), and whether it lies on the lattice.
    corner
        First lattice row of ``planes``.
    held
        (taps along z + 1,) which lattice planes are in ``planes``, -1 where none is: lattice plane k is at k modulo
        taps. The last says which plane of the region they were contracted for.
    planes
        (taps along z + 1, ndim, lattice rows, columns) float64: what :func:`expand_rows` gave of them, and their sum.

    Notes
    -----
    Per voxel in 3D with four taps: 24 bytes written, 12 multiply-adds, 9 additions; reads stay in the nearest cache.
    """
    widest()
    cells, depth, inside = behind
    if not inside[plane]:
        affine_rows(along, down, through, plane, first, points)
        return
    count = depth.shape[0]
    if held[count] != plane:
        for k in range(cells[plane], cells[plane] + count):
            if held[k % count] != k:
                expand_rows(vectors, k, corner, across[0], across[1], across[2], turn, planes[k % count])
                held[k % count] = k
        _contract(planes, cells[plane], depth, plane)
        held[count] = plane
    # Component by component: the few lattice rows that the rows of one component read stay in the nearest cache.
    for c in range(points.shape[0]):
        _component(along, down, through, planes[count, c], below, plane, first, c, points)


@compiled
def _component(
    along: Array,
    down: Array,
    through: Array,
    lines: Array,
    below: tuple[Array, Array, Array],
    plane: int,
    first: int,
    c: int,
    points: Array,
) -> None:
    """Fill one component; whole arrays are handed on and read at two indices, for a slice costs as much as voxels."""
    widest()
    cells, taps, inside = below
    columns = along.shape[1]
    for row in range(points.shape[1] // columns):
        at = first + row
        start, begin = through[c, plane] + down[c, at], np.uint64(row * columns)
        if not inside[at]:
            for i in range(columns):
                points[c, begin + np.uint64(i)] = start + along[c, i]
        elif taps.shape[0] == 4:
            _four(lines, np.uint64(cells[at]), taps, at, start, along, c, points, begin)
        elif taps.shape[0] == 2:
            _two(lines, np.uint64(cells[at]), taps, at, start, along, c, points, begin)
        else:
            k = np.uint64(cells[at])
            for i in range(columns):
                points[c, begin + np.uint64(i)] = (start + along[c, i]) + lines[k, i]


@compiled
def _contract(planes: Array, cell: int, depth: Array, plane: int) -> None:
    """Weigh the lattice planes around a plane of the region; their sum is left in the last."""
    widest()
    count, ndim, rows, columns = depth.shape[0], planes.shape[1], planes.shape[2], planes.shape[3]
    out, p, q = np.uint64(count), np.uint64(cell % count), np.uint64((cell + 1) % count)
    w0, w1 = depth[0, plane], depth[min(1, count - 1), plane]
    if count == 4:
        r, t = np.uint64((cell + 2) % count), np.uint64((cell + 3) % count)
        w2, w3 = depth[2, plane], depth[3, plane]
        for c in range(ndim):
            for row in range(rows):
                for i in range(columns):
                    near = fma(w0, planes[p, c, row, i], w1 * planes[q, c, row, i])
                    planes[out, c, row, i] = near + fma(w2, planes[r, c, row, i], w3 * planes[t, c, row, i])
    elif count == 2:
        for c in range(ndim):
            for row in range(rows):
                for i in range(columns):
                    planes[out, c, row, i] = fma(w1, planes[q, c, row, i], w0 * planes[p, c, row, i])
    else:
        planes[1] = planes[0]


@compiled
def _four(
    lines: Array,
    k: Any,  # noqa: ANN401 - an unsigned index
    taps: Array,
    at: int,
    start: float,
    along: Array,
    c: int,
    points: Array,
    begin: Any,  # noqa: ANN401
) -> None:
    widest()
    w0, w1, w2, w3 = taps[0, at], taps[1, at], taps[2, at], taps[3, at]
    k1, k2, k3 = k + np.uint64(1), k + np.uint64(2), k + np.uint64(3)
    for i in range(lines.shape[1]):
        moved = fma(w0, lines[k, i], w1 * lines[k1, i]) + fma(w2, lines[k2, i], w3 * lines[k3, i])
        points[c, begin + np.uint64(i)] = (start + along[c, i]) + moved


@compiled
def _two(
    lines: Array,
    k: Any,  # noqa: ANN401 - an unsigned index
    taps: Array,
    at: int,
    start: float,
    along: Array,
    c: int,
    points: Array,
    begin: Any,  # noqa: ANN401
) -> None:
    widest()
    w0, w1, k1 = taps[0, at], taps[1, at], k + np.uint64(1)
    for i in range(lines.shape[1]):
        points[c, begin + np.uint64(i)] = (start + along[c, i]) + fma(w1, lines[k1, i], w0 * lines[k, i])


def fill_rows(first: tuple[Any, ...], plane: int, row: int, points: Array) -> None:
    """Fill ``points`` with rows from ``row`` on of a plane of the region; only compiled code calls it.

    ``first`` is what one of the kernels above takes before the plane; how many it holds says which one it is.
    """
    raise NotImplementedError


@overload(fill_rows, strict=False)
def _fill_rows(first: Any, plane: Any, row: Any, points: Any) -> Any:  # noqa: ANN401 - Numba types
    kernel = {3: affine_rows, 6: direct_rows, 11: lattice_rows}[len(first)]
    return lambda first, plane, row, points: kernel(*first, plane, row, points)
