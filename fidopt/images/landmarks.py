"""Landmarks: world points in text files of several makes, read into one frame and written back exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from fidopt.errors import InputError
from fidopt.images.atomic import written_whole

Points = npt.NDArray[np.float64]

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class _Line:
    number: int
    cells: tuple[str, ...]


def read_landmarks(path: str | Path, *, ndim: int, grid: Grid | None = None) -> Points:
    """Read landmarks.

    Read are values separated by commas, semicolons (then decimal commas are allowed) or tabs, with or without a
    header that names ``x``, ``y``[, ``z``]; Slicer's fcsv, whose frame is honoured; and elastix's point files.

    Parameters
    ----------
    path
        The file.
    ndim
        Coordinates a point, 2 or 3.
    grid
        The image's grid, needed for an elastix file of indices alone.

    Returns
    -------
    ndarray
        (n, ndim) float64, world points x, y[, z] in LPS; n is one or more.

    Raises
    ------
    InputError
        With the line's number, where a point is incomplete or not a number; where there is none.
    """
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{where}: the landmarks cannot be read ({error})"
        raise InputError(msg) from error
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    filled = [(number, line) for number, line in lines if line]
    if filled and filled[0][1].lower() in {"point", "index"}:
        return _read_elastix(where, filled, ndim=ndim, grid=grid)
    comments = [line for _, line in filled if line.startswith("#")]
    rows = [_split(number, line) for number, line in filled if not line.startswith("#")]
    columns = _fcsv_columns(comments) or (_header(rows[0]) if rows else None)
    if columns is not None and rows and _header(rows[0]) is not None:
        rows = rows[1:]
    points = _points(where, rows, columns, ndim=ndim)
    if any("markups fiducial" in line.lower() for line in comments) and _is_ras(comments):
        points[:, :2] *= -1
    return points + 0.0


def read_landmark_pair(
    fixed: str | Path, moving: str | Path, *, ndim: int, grids: tuple[Grid, Grid] | None = None
) -> tuple[Points, Points]:
    """Read the two sides of a pair's landmarks, which must be as many.

    Returns
    -------
    tuple of ndarray
        (n, ndim) float64 each, world points in LPS; row by row they are the same place.
    """
    ours, theirs = grids if grids is not None else (None, None)
    a, b = read_landmarks(fixed, ndim=ndim, grid=ours), read_landmarks(moving, ndim=ndim, grid=theirs)
    if len(a) != len(b):
        msg = f"{fixed} has {len(a)} points and {moving} has {len(b)}; a pair has as many on both sides, row by row"
        raise InputError(msg)
    return a, b


def write_landmarks(path: str | Path, points: npt.ArrayLike) -> None:
    """Write landmarks as CSV: a header, then a point a line, each number such that reading gives the same float64.

    Parameters
    ----------
    path
        The file.
    points
        (n, ndim) world points x, y[, z] in LPS, ndim 2 or 3, all finite.
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] not in (2, 3) or not np.isfinite(array).all():
        msg = f"{path}: landmarks are finite points (n, 2) or (n, 3), got an array of shape {array.shape}"
        raise InputError(msg)
    lines = [",".join(_AXES[: array.shape[1]]), *(",".join(repr(float(v)) for v in row) for row in array)]
    with written_whole(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")


def check_frame(points: npt.ArrayLike, grid: Grid) -> str | None:
    """Tell whether points look as if they were given in RAS rather than LPS; nothing is ever flipped.

    Parameters
    ----------
    points
        (n, ndim) world points, LPS.
    grid
        The image they belong to.

    Returns
    -------
    str or None
        A sentence, when more points lie inside the image with x and y negated than as they are.
    """
    given = np.asarray(points, dtype=np.float64)
    turned = given * np.where(np.arange(given.shape[1]) < 2, -1.0, 1.0)
    outside = int((~grid.inside(given)).sum())
    inside_turned = int(grid.inside(turned).sum())
    if outside == 0 or inside_turned <= len(given) - outside:
        return None
    return (
        f"{outside} of {len(given)} points lie outside the image as given, and {inside_turned} inside with x and y"
        " negated: they may be in RAS, where LPS is expected: negate x and y if so"
    )


def _split(number: int, line: str) -> _Line:
    separator = next((s for s in (";", "\t", ",") if s in line), ",")
    cells = tuple(cell.strip().strip('"') for cell in line.split(separator))
    if separator == ";":
        cells = tuple(cell.replace(",", ".") for cell in cells)
    return _Line(number, cells)


def _header(line: _Line) -> tuple[int, ...] | None:
    """Return which columns hold x, y[, z] when a line is a header, else None."""
    names = [cell.lower() for cell in line.cells]
    if "x" not in names or "y" not in names:
        return None
    return tuple(names.index(axis) for axis in _AXES if axis in names)


def _fcsv_columns(comments: Sequence[str]) -> tuple[int, ...] | None:
    named = [line.split("=", 1)[1] for line in comments if line.replace(" ", "").startswith("#columns=")]
    return _header(_Line(0, tuple(cell.strip() for cell in named[0].split(",")))) if named else None


def _is_ras(comments: Sequence[str]) -> bool:
    """Tell whether an fcsv is in RAS: so it is where it names no frame; 0 and 1 are old names of RAS and LPS."""
    named = [line.split("=", 1)[1].strip().upper() for line in comments if "coordinatesystem" in line.lower()]
    return not named or named[0] in {"RAS", "0"}


def _points(path: Path, rows: Sequence[_Line], columns: tuple[int, ...] | None, *, ndim: int) -> Points:
    if not rows:
        msg = f"{path}: there is no landmark in it"
        raise InputError(msg)
    if columns is not None and len(columns) != ndim:
        msg = f"{path}: landmarks of {ndim} coordinates are expected, its header names {len(columns)}"
        raise InputError(msg)
    return np.array([_point(path, row, columns, ndim=ndim) for row in rows], dtype=np.float64).reshape(-1, ndim)


def _point(path: Path, row: _Line, columns: tuple[int, ...] | None, *, ndim: int) -> list[float]:
    if columns is None and len(row.cells) != ndim:
        msg = f"{path}: line {row.number}: {ndim} coordinates are expected, got {len(row.cells)}"
        raise InputError(msg)
    found: list[float] = []
    for axis, column in zip(_AXES, columns or range(ndim), strict=False):
        cell = row.cells[column] if column < len(row.cells) else ""
        found.append(_number(path, row.number, cell, axis))
    return found


def _number(path: Path, number: int, cell: str, axis: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        msg = f"{path}: line {number}: {axis} must be a finite number, got {cell!r}"
        raise InputError(msg)
    return value


def _read_elastix(path: Path, lines: Sequence[tuple[int, str]], *, ndim: int, grid: Grid | None) -> Points:
    """Read elastix's own format: what the numbers are, how many points, and the points."""
    indices = lines[0][1].lower() == "index"
    if indices and grid is None:
        msg = f"{path}: it holds indices of voxels; their image's grid is needed to place them in the world"
        raise InputError(msg)
    rows = [_Line(number, tuple(line.split())) for number, line in lines[2:]]
    points = _points(path, rows, None, ndim=ndim)
    declared = lines[1][1] if len(lines) > 1 else ""
    if declared != str(len(points)):
        msg = f"{path}: line {lines[1][0]}: {declared} points are announced, {len(points)} follow"
        raise InputError(msg)
    return grid.world(points[:, ::-1]) if indices and grid is not None else points
