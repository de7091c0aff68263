"""Arrows at the landmarks: from each fixed point to where the field takes it, and to its true moving point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.images.landmarks import read_landmark_pair
from fidopt.images.preview import (
    BOTH,
    MADE,
    TRUE,
    WRONG,
    Arrow,
    Key,
    Panel,
    Picture,
    View,
    arrows,
    rounded_up,
    sheet,
    views,
)
from fidopt.runner.previews.ground import Ground
from fidopt.runner.previews.panels import SIDE, titled

Points = npt.NDArray[np.float64]

#: Landmarks that one plane shows, 2D and 3D: those nearest to it, of those as near the worst.
NEAREST = {2: 100, 3: 24}
#: Pixels that arrows have at least, by their upper quartile: shorter ones are drawn larger, and a note says so.
LENGTH = 16.0
#: How bright the image is under the arrows.
_DIMMED = 0.6


def landmarks(case: Case, name: str, field: DisplacementField, *, ground: Ground) -> Picture:
    """Return the fixed image with arrows, in the planes through the middle of the landmarks.

    Parameters
    ----------
    case, name
        A case and one of its sets of landmarks.
    field
        The result.
    ground
        What it is drawn on.
    """
    grid = ground.grid
    unit = case.dataset.unit
    fixed, moving = read_landmark_pair(*case.landmark_sets()[name], ndim=grid.ndim)
    taken = field.points(fixed)
    inside = np.flatnonzero(grid.inside(fixed))
    where = views(grid, at=middle(grid, fixed[inside]), side=SIDE[grid.ndim])
    errors, before = (np.linalg.norm(moving - points, axis=1) for points in (taken, fixed))
    order = [np.lexsort((-errors[inside], view.distances(fixed[inside]))) for view in where]
    pairs = [(view, inside[one[: NEAREST[grid.ndim]]]) for view, one in zip(where, order, strict=True)]
    times = _enlarged([np.linalg.norm(v.pixels(moving[n]) - v.pixels(fixed[n]), axis=1) for v, n in pairs])
    row = []
    for (view, chosen), plane in zip(pairs, ground.planes(where), strict=True):
        dimmed = np.rint(plane * _DIMMED).astype(np.uint8)
        start, true, made = (view.pixels(points[chosen]) for points in (fixed, moving, taken))
        lines = _lines(start, true=start + times * (true - start), made=start + times * (made - start))
        row.append(Panel(arrows(dimmed, lines), _caption(view, view.distances(fixed[chosen]), unit)))
    said = f"mean error {errors.mean():.3g} {unit}, unregistered {before.mean():.3g} {unit}"
    keys = [
        Key(BOTH, "fixed landmark"),
        Key(TRUE, "to its true moving point"),
        Key(MADE, "to where the field takes it"),
        Key(WRONG, "the error between both"),
    ]
    note = f"{len(inside)} of {len(fixed)} landmarks lie inside the fixed image."
    note += f" The {NEAREST[2]} worst are drawn." if grid.ndim == 2 and len(inside) > NEAREST[2] else ""
    note += f" Arrows are drawn {times:g} times as long as they are." if times > 1 else ""
    return sheet(f"{titled(case, name)}: landmarks, {said}", [row], keys, note=note)


def middle(grid: Grid, points: Points) -> tuple[int, ...] | None:
    """Return the index (z, y, x) of the median of points, through which they are drawn; None where there is none."""
    if not len(points):
        return None
    index = np.rint(np.median(grid.index(points), axis=0)).astype(int)
    return tuple(int(v) for v in np.clip(index, 0, np.array(grid.shape) - 1))


def _enlarged(lengths: Sequence[Points]) -> float:
    """Return how many times as long arrows are drawn: 1 where they are long enough to be seen."""
    known = np.concatenate(lengths)
    typical = float(np.percentile(known, 75)) if known.size else 0.0
    return rounded_up(LENGTH / typical) if 0 < typical < LENGTH / 1.5 else 1.0


def _lines(start: Points, *, true: Points, made: Points) -> list[Arrow]:
    starts, trues, mades = ([(float(x), float(y)) for x, y in points] for points in (start, true, made))
    lines = [Arrow(one, end, TRUE, width=3.0, dot=3.0) for one, end in zip(starts, trues, strict=True)]
    lines += [Arrow(one, end, WRONG, width=1.5) for one, end in zip(mades, trues, strict=True)]
    lines += [Arrow(one, end, MADE, width=1.2, head=True) for one, end in zip(starts, mades, strict=True)]
    return lines + [Arrow(one, one, BOTH, dot=1.8) for one in starts]


def _caption(view: View, distances: Points, unit: str) -> str:
    if view.axis is None:
        return ""
    if not len(distances):
        return view.name
    return f"{view.name}: the {len(distances)} nearest, within {distances.max():.3g} {unit}"
