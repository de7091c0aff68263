"""An explanation as a picture: where the labels and landmarks lie that cost most, and bars of what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fidopt.corpus import Case
from fidopt.images.preview import (
    MADE,
    TRUE,
    Arrow,
    Bar,
    Key,
    Panel,
    Picture,
    Scale,
    View,
    around,
    arrows,
    bars,
    busiest,
    outline,
    overlaid,
    rising,
    sheet,
    views,
)
from fidopt.leaderboard.explanation.finding import Found
from fidopt.leaderboard.explanation.kinds import Explanation, LabelCost, LandmarkCost, RegionCost
from fidopt.leaderboard.explanation.tables import headline, label_text
from fidopt.leaderboard.lines import UNREGISTERED
from fidopt.runner.previews.ground import Ground
from fidopt.runner.previews.landmarks import middle

#: Bars of one kind, and pixels along a plane's longest side: there are several rows of planes.
BARS = 16
_SIDE = {2: 512, 3: 320}
#: The least width of the bars.
_WIDE = 700


def draw(found: Found, explained: Explanation) -> Picture:
    """Return what cost what as one picture, (height, width, 3) uint8.

    Parameters
    ----------
    found
        The row; where its case is built, labels and landmarks are drawn where they lie.
    explained
        What cost what in it.
    """
    rows: list[list[Panel]] = []
    keys: list[Key] = []
    if found.case is not None and found.dataset.task != "synthesis":
        for panels, key in _places(found.case, explained):
            rows.append(panels)
            keys.append(key)
    width = max([_WIDE, *(sum(p.picture.shape[1] + 8 for p in row) - 8 for row in rows)])
    charts = [Panel(bars(found_bars, width=width, most=most), said) for said, found_bars, most in _charts(explained)]
    if charts:
        before = any(bar.before is not None for _, found_bars, _ in _charts(explained) for bar in found_bars)
        keys += [Key(MADE, "this row"), *([Key(TRUE, "unregistered")] if before else [])]
    note = "; ".join(explained.notes)
    if not rows and not charts:
        note = "; ".join(["there is nothing to draw", *explained.notes])
    return sheet(headline(explained), [*rows, *([chart] for chart in charts)], keys, note=note)


def _places(case: Case, explained: Explanation) -> Iterator[tuple[list[Panel], Key]]:
    """Yield planes with the first labels, then with the first landmarks, each coloured by what it costs."""
    ground = Ground(case)
    labels = [cost for cost in explained.labels if not cost.set or cost.set == explained.labels[0].set]
    if labels and labels[0].set in ground.labels:
        scale = rising(max(1 - cost.dice if cost.dice is not None else 0.0 for cost in labels))
        yield _label_planes(ground, labels, scale), Key(scale, "what a label's Dice lacks to 1")
    first = [cost for cost in explained.landmarks if cost.set == explained.landmarks[0].set and cost.position]
    # One without an error would look like one without a fault.
    landmarks = [cost for cost in first if cost.error is not None]
    if landmarks:
        scale = rising(max((cost.error or 0.0) for cost in landmarks))
        yield _landmark_planes(ground, landmarks, scale), Key(scale, f"landmark error, {explained.unit}")


def _label_planes(ground: Ground, costs: Sequence[LabelCost], scale: Scale) -> list[Panel]:
    truth = ground.labels[costs[0].set].values
    lacks = {int(cost.label): 1 - cost.dice for cost in costs if cost.dice is not None}
    scored = np.where(np.isin(truth, list(lacks)), truth, 0)
    where = views(
        ground.grid, at=busiest(scored, labels=True), side=_SIDE[ground.grid.ndim], region=around(scored != 0)
    )
    drawn = []
    for view, plane in zip(where, ground.planes(where), strict=True):
        labels = view.cut(scored, smooth=False)[..., 0]
        for label, lacking in lacks.items():
            (colour,) = scale.colours([lacking])
            plane = overlaid(plane, labels == label, _rgb(colour), opacity=0.65)
        drawn.append(Panel(overlaid(plane, outline(labels), (150, 150, 150)), view.name))
    return drawn


def _landmark_planes(ground: Ground, costs: Sequence[LandmarkCost], scale: Scale) -> list[Panel]:
    points = np.array([cost.position for cost in costs], dtype=np.float64)
    inside = ground.grid.inside(points)
    where = views(ground.grid, at=middle(ground.grid, points[inside]), side=_SIDE[ground.grid.ndim])
    colours = scale.colours([cost.error or 0.0 for cost in costs])
    # The worst are drawn last, above the others.
    order = np.flatnonzero(inside)[::-1]
    return [
        Panel(_dotted(plane, view, points[order], colours[order]), f"{view.name}, all projected" if view.name else "")
        for view, plane in zip(where, ground.planes(where), strict=True)
    ]


def _dotted(plane: Picture, view: View, points: npt.NDArray[np.float64], colours: Picture) -> Picture:
    dots = []
    for (x, y), colour in zip(view.pixels(points).tolist(), colours, strict=True):
        dots += [Arrow((x, y), (x, y), (255, 255, 255), dot=4.5), Arrow((x, y), (x, y), _rgb(colour), dot=3.5)]
    return arrows(np.rint(plane * 0.6).astype(np.uint8), dots)


def _rgb(colour: npt.NDArray[np.uint8]) -> tuple[int, int, int]:
    red, green, blue = (int(v) for v in colour)
    return red, green, blue


def _charts(explained: Explanation) -> Iterator[tuple[str, list[Bar], float | None]]:
    """Yield what a chart shows, its bars, and the number of a bar as long as can be."""
    for name in dict.fromkeys(cost.set for cost in explained.labels):
        labels = [cost for cost in explained.labels if cost.set == name]
        said = f"Dice by label{f' of {name}' if name else ''}, what costs most first{_of(len(labels))}"
        yield said, [_label_bar(cost) for cost in labels[:BARS]], 1.0
    for name in dict.fromkeys(cost.set for cost in explained.landmarks):
        points = [cost for cost in explained.landmarks if cost.set == name]
        said = f"error by landmark{f' of {name}' if name else ''}, {explained.unit}, the worst first{_of(len(points))}"
        # The unregistered pair is not held against itself.
        compared = explained.method != UNREGISTERED
        yield said, [_landmark_bar(cost, compared=compared) for cost in points[:BARS]], None
    if explained.regions:
        yield "mean absolute error by region", [_region_bar(cost) for cost in explained.regions], None


def _of(count: int) -> str:
    return f" ({BARS} of {count})" if count > BARS else ""


def _label_bar(cost: LabelCost) -> Bar:
    told = [f"{cost.dice:.3f}" if cost.dice is not None else "-"]
    told += [f"{100 * cost.share:.0f} % of what is lost"] if cost.share is not None else []
    return Bar(label_text(cost), cost.dice, cost.dice_before, ", ".join([*told, *filter(None, [cost.state])]))


def _landmark_bar(cost: LandmarkCost, *, compared: bool) -> Bar:
    text = "-" if cost.error is None else f"{cost.error:.3g}"
    return Bar(f"no. {cost.number}", cost.error, cost.before if compared else None, text)


def _region_bar(cost: RegionCost) -> Bar:
    bounds = "" if cost.low is None or cost.high is None else f" ({cost.low:.4g} to {cost.high:.4g})"
    share = "" if cost.share is None else f", {100 * cost.share:.0f} % of the error"
    return Bar(f"{cost.region}{bounds}", cost.mae, text=f"{cost.mae:.4g}{share}")
