"""What the columns of a board are called."""

from __future__ import annotations

#: Metric -> what its column is called; distances carry the dataset's unit.
_TITLES = {
    "dice": "Dice", "hd95": "HD95", "surface_dice": "surface Dice", "tre": "TRE", "tre_p95": "TRE p95", "rtre": "rTRE",
    "sdlogj": "SDlogJ", "folds": "folds", "mae": "MAE", "psnr": "PSNR", "ssim": "SSIM",
}  # fmt: skip
_DISTANCES = ("hd95", "tre")
#: Metrics shown as percentages.
PERCENT = frozenset({"rtre", "folds"})


def title(metric: str, unit: str) -> str:
    """Return the head of a metric's column; with its unit where one is given and the metric has one."""
    base, _, name = metric.partition("_")
    text = _TITLES.get(metric) or f"{_TITLES.get(base, base)} {name}".strip()
    if metric in PERCENT:
        return f"{text} %"
    return f"{text} {unit}".strip() if base in _DISTANCES and metric != "rtre" else text
