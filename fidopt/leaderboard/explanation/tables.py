"""An explanation as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fidopt.leaderboard.explanation.kinds import Change, Explanation, LabelCost, LandmarkCost
from fidopt.leaderboard.folding import Folded
from fidopt.leaderboard.lines import COLUMNS, UNREGISTERED
from fidopt.leaderboard.titles import PERCENT, title

#: Landmarks that are printed unless more are asked for.
MOST = 20


def headline(explained: Explanation) -> str:
    """Return what is explained, and why it failed where it did."""
    what = f"{explained.method} on {explained.dataset}/{explained.case} ({explained.machine})"
    if explained.error is None:
        return what
    stands = {
        "registration": "what follows is the unregistered pair's",
        "segmentation": "what follows is an empty map's",
        "synthesis": "nothing stands in for it",
    }
    return f"{what} failed ({explained.error}); {stands[explained.task]}"


def tables(explained: Explanation, *, most: int = MOST) -> Iterator[Folded]:
    """Yield the metrics, then each set of labels, each set of landmarks, the regularity and the regions."""
    metrics = [one for one in explained.metrics if not one.metric.startswith(("sdlogj", "folds"))]
    if metrics:
        yield _metrics(metrics, explained.unit)
    for name in dict.fromkeys(cost.set for cost in explained.labels):
        yield _labels(explained, name)
    for name in dict.fromkeys(cost.set for cost in explained.landmarks):
        yield _landmarks(explained, name, most)
    if explained.regularity:
        rows = [[one.place, _number(one.sdlogj), _percent(one.folds)] for one in explained.regularity]
        yield Folded("regularity of the field", ["where", "SDlogJ", "folds %"], rows)
    if explained.regions:
        yield _regions(explained)


def _metrics(metrics: Sequence[Change], unit: str) -> Folded:
    """Return the metrics, but for the field's regularity, which has a table of its own."""
    compared = any(one.unregistered is not None for one in metrics)
    rows = []
    for one in sorted(metrics, key=_place):
        times = 100 if one.metric in PERCENT else 1
        cells = [title(one.metric, unit), _number(one.value, times)]
        if compared:
            cells += [_number(one.unregistered, times), _signed(one.better, times)]
        rows.append(cells)
    reasons = [f"{title(one.metric, '')}: {one.reason}" for one in metrics if one.value is None and one.reason]
    heads = ["metric", "value", *(["unregistered", "better by"] if compared else [])]
    return Folded("metrics", heads, rows, caption="\n".join(reasons))


def _place(one: Change) -> tuple[int, str]:
    return (COLUMNS.index(one.metric) if one.metric in COLUMNS else len(COLUMNS), one.metric)


def _labels(explained: Explanation, name: str) -> Folded:
    costs = [cost for cost in explained.labels if cost.set == name]
    unit = explained.unit
    columns: dict[str, list[str]] = {"Dice": [_number(cost.dice) for cost in costs]}
    if any(cost.dice_before is not None for cost in costs):
        columns["unregistered Dice"] = [_number(cost.dice_before) for cost in costs]
    if any(cost.surface_dice is not None for cost in costs):
        columns["surface Dice"] = [_number(cost.surface_dice) for cost in costs]
    columns[f"HD95 {unit}"] = [_number(cost.hd95) for cost in costs]
    if any(cost.hd95_before is not None for cost in costs):
        columns[f"unregistered HD95 {unit}"] = [_number(cost.hd95_before) for cost in costs]
    columns["costs"] = [_number(cost.cost) for cost in costs]
    columns["share %"] = [_number(cost.share, 100) for cost in costs]
    if any(cost.state for cost in costs):
        columns["state"] = [cost.state for cost in costs]
    first = [label_text(cost) for cost in costs]
    rows = [[label, *cells] for label, *cells in zip(first, *columns.values(), strict=True)]
    caption = "costs: what the label takes from the mean Dice; share: of all that the mean lacks to 1"
    return Folded(f"labels{_of_set(name)}", ["label", *columns], rows, caption=caption)


def _landmarks(explained: Explanation, name: str, most: int) -> Folded:
    costs = [cost for cost in explained.landmarks if cost.set == name]
    unit = explained.unit
    shown: Sequence[LandmarkCost] = costs[:most]
    columns: dict[str, list[str]] = {f"error {unit}": [_number(cost.error) for cost in shown]}
    compared = explained.method != UNREGISTERED and any(cost.before is not None for cost in costs)
    if compared:
        columns[f"unregistered {unit}"] = [_number(cost.before) for cost in shown]
        columns["better by"] = [_signed(_less(cost), 1) for cost in shown]
    columns["share %"] = [_number(cost.share, 100) for cost in shown]
    axes = max((len(cost.position) for cost in shown if cost.position), default=0)
    if axes:
        columns[f"fixed point ({', '.join('xyz'[:axes])}; LPS)"] = [
            ", ".join(f"{v:.2f}" for v in cost.position) if cost.position else "-" for cost in shown
        ]
    rows = [[number, *cells] for number, *cells in zip([str(c.number) for c in shown], *columns.values(), strict=True)]
    caption = [f"the {len(shown)} worst of {len(costs)}; share: of the sum of all errors"]
    known = [less for cost in costs if (less := _less(cost)) is not None]
    if compared and known:
        worse = sum(less < 0 for less in known)
        caption.append(f"{worse} of {len(known)} landmarks are farther from their place than before")
    return Folded(f"landmarks{_of_set(name)}, the worst first", ["no.", *columns], rows, caption="\n".join(caption))


def _regions(explained: Explanation) -> Folded:
    rows = [
        [
            one.region,
            _number(one.mae),
            _signed(one.bias, 1),
            _number(one.share, 100),
            str(one.voxels),
            "-" if one.low is None or one.high is None else f"{one.low:.5g} to {one.high:.5g}",
        ]
        for one in explained.regions
    ]
    heads = ["region", "MAE", "made - real", "share %", "voxels", "real values"]
    return Folded(
        "regions", heads, rows, caption="share: of all the error inside; quarters part the real values inside"
    )


def label_text(cost: LabelCost) -> str:
    """Return what a label is called: its name with its number, or its number alone."""
    return f"{cost.label} {cost.name}".strip()


def _of_set(name: str) -> str:
    return f" of the set {name}" if name else ""


def _less(cost: LandmarkCost) -> float | None:
    return None if cost.error is None or cost.before is None else cost.before - cost.error


def _number(value: float | None, times: float = 1) -> str:
    return "-" if value is None else f"{value * times:.4g}"


def _percent(value: float | None) -> str:
    return _number(value, 100)


def _signed(value: float | None, times: float) -> str:
    return "-" if value is None else f"{value * times:+.4g}"
