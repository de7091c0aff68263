"""A board as a table for a terminal, as CSV and as LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fidopt.leaderboard.folding import Folded
from fidopt.leaderboard.lines import UNREGISTERED, BoardLine, Mean
from fidopt.leaderboard.titles import PERCENT, title

if TYPE_CHECKING:
    from fidopt.leaderboard.board import Board

#: Metrics whose size depends on the dataset's unit or values.
_LENGTHS = frozenset({"hd95", "tre", "mae", "psnr"})
#: Most decimals of a cell.
_MOST_DIGITS = 9
#: Metrics that a terminal has no room for; CSV and JSON have them.
_NOT_IN_TERMINAL = frozenset({"tre_p95", "rtre", "folds"})


def digits_of(metric: str, board: Board) -> int:
    """Return how many decimals a metric's column shows: the same for all lines, and three digits of the largest mean.

    A distance in millimetres may be a thousandth of one, of which two decimals would show nothing.
    """
    base = metric.split("_")[0]
    if metric in PERCENT:
        return 2
    if base not in _LENGTHS:
        return 3
    values = [abs(line.metrics[metric].value) for line in board.lines if line.metrics.get(metric)]
    largest = max(values, default=0.0)
    return max(2, min(_MOST_DIGITS, 2 - math.floor(math.log10(largest)))) if largest > 0 else 2


def mean_text(metric: str, mean: Mean | None, digits: int) -> str:
    """Return a mean as a cell shows it."""
    if mean is None:
        return "-"
    text = f"{mean.value * 100:.3g}" if metric in PERCENT else f"{mean.value:.{digits}f}"
    return text if not mean.missing else f"{text} ({_count(mean.cases, 'case')})"


def interval_text(metric: str, mean: Mean | None, digits: int) -> str:
    """Return a mean's 95 % interval as a cell shows it."""
    if mean is None or mean.low is None or mean.high is None:
        return ""
    scale = 100 if metric in PERCENT else 1
    return f"{mean.low * scale:.{digits}f} to {mean.high * scale:.{digits}f}"


def change_text(metric: str, mean: Mean | None, digits: int) -> str:
    """Return a mean's change from the unregistered pairs, + where it is better."""
    if mean is None or mean.change is None or metric in {"sdlogj", *PERCENT}:
        return ""
    return f"{mean.change:+.{digits}f}"


def place_text(line: BoardLine) -> str:
    """Return a line's place, and the places it could hold."""
    if line.place is None or line.places is None:
        return "-"
    low, high = line.places
    return f"{line.place}" if low == high else f"{line.place} ({low}-{high})"


def terminal(board: Board) -> Folded:
    """Return a board as a table for a terminal: mean, 95 % interval, change from no registration, one cell a metric."""
    shown = [metric for metric in board.columns if metric not in _NOT_IN_TERMINAL]
    marks = [f"{title(metric, board.unit)}{' *' if metric in board.ranked_on else ''}" for metric in shown]
    digits = {metric: digits_of(metric, board) for metric in shown}
    rows = []
    for line in board.lines:
        cells = ["\n".join(filter(None, _cell(metric, line, digits[metric]))) for metric in shown]
        rows.append([place_text(line), _name(line, board), *cells, _failures(line), *_cost(line)])
    return Folded(
        title=f"{board.title} ({board.dataset}, {_count(board.cases, 'case')})",
        heads=["place", "method", *marks, "failed", "time s", "memory MiB"],
        rows=rows,
        keys=2,
        caption="\n".join(_caption(board)),
    )


def records(board: Board) -> list[dict[str, Any]]:
    """Return a board's lines as flat records, one a line: the rows of its CSV and of a data frame."""
    found = []
    for line in board.lines:
        record: dict[str, Any] = {
            "dataset": board.dataset,
            "place": line.place,
            "first_place": line.places[0] if line.places else None,
            "last_place": line.places[1] if line.places else None,
            "rank": line.rank,
            "method": line.method,
            "machine": line.machine,
            "version": line.version,
            "cases": line.cases,
            "failures": line.failures,
        }
        for metric in board.columns:
            mean = line.metrics.get(metric)
            record[metric] = mean.value if mean else None
            record[f"{metric}_low"] = mean.low if mean else None
            record[f"{metric}_high"] = mean.high if mean else None
            record[f"{metric}_change"] = mean.change if mean else None
        record |= {"time_s": line.time_s, "peak_ram_mib": line.peak_ram_mib, "peak_gpu_mib": line.peak_gpu_mib}
        found.append(record | {"tie": line.tie, "unranked": line.unranked, "notes": "; ".join(line.notes)})
    return found


def csv_text(boards: list[Board]) -> str:
    """Return boards as CSV, one line a line, with every column that any of them has."""
    return csv_of([record for board in boards for record in records(board)])


def csv_of(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return flat records as CSV, with every column that any of them has."""
    heads = list(dict.fromkeys(key for record in lines for key in record))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, heads, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue()


def latex(board: Board) -> str:
    """Return a board as a LaTeX table (booktabs): the mean and half the width of its 95 % interval."""
    heads = ["", "method", *(title(metric, board.unit) for metric in board.columns), "failed", "time s"]
    rows = [[_escaped(head) for head in heads]]
    for line in board.lines:
        cells = [_latex_mean(metric, line.metrics.get(metric), digits_of(metric, board)) for metric in board.columns]
        rows.append([place_text(line), _escaped(line.method), *cells, _failures(line), _cost(line)[0]])
    body = [" & ".join(row) + r" \\" for row in rows]
    lines = [
        rf"% {board.title}: {_count(board.cases, 'case')}, mean $\pm$ half of the 95 % t interval",
        r"\begin{tabular}{rl" + "r" * (len(heads) - 2) + "}",
        r"\toprule",
        body[0],
        r"\midrule",
        *body[1:],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _caption(board: Board) -> list[str]:
    ranked = [title(metric, board.unit) for metric in board.ranked_on]
    lines = []
    if board.main:
        change = ", change from no registration (+ is better)" if board.task == "registration" else ""
        lines.append(f"Ranked on {', '.join(ranked)} (*); mean, 95 % interval{change}.")
    if any(line.tie == "tied" for line in board.lines):
        lines.append("(a-b): the places a line could hold; its neighbours are not told apart by their cases.")
    if any(line.tie == "too few" for line in board.lines):
        lines.append(f"{_count(board.cases, 'case')}: too few to tell neighbours apart.")
    lines += [f"{_name(line, board)}: {'; '.join(line.notes)}." for line in board.lines if line.notes]
    reasons = [f"{line.method}: not ranked, {line.unranked}." for line in board.lines if line.unranked]
    return lines + list(dict.fromkeys(reasons)) + [f"{note[:1].upper()}{note[1:]}." for note in board.notes]


def _cell(metric: str, line: BoardLine, digits: int) -> tuple[str, str, str]:
    mean = line.metrics.get(metric)
    change = "" if line.method == UNREGISTERED else change_text(metric, mean, digits)
    return mean_text(metric, mean, digits), interval_text(metric, mean, digits), change


def _name(line: BoardLine, board: Board) -> str:
    several = sum(other.method == line.method for other in board.lines) > 1
    return f"{line.method} ({line.machine})" if several else line.method


def _failures(line: BoardLine) -> str:
    failed = f"{line.failures}"
    return f"{failed} (+{len(line.missing)} not run)" if line.missing else failed


def _cost(line: BoardLine) -> tuple[str, str]:
    time = "-" if line.time_s is None else f"{line.time_s:.1f}"
    return time, "-" if line.peak_ram_mib is None else f"{line.peak_ram_mib}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _latex_mean(metric: str, mean: Mean | None, digits: int) -> str:
    if mean is None:
        return "--"
    scale = 100 if metric in PERCENT else 1
    text = f"{mean.value * scale:.{digits}f}"
    if mean.low is None or mean.high is None:
        return text
    # One end may be clipped to the metric's range: the other tells the width.
    half = max(mean.high - mean.value, mean.value - mean.low)
    return rf"{text} $\pm$ {half * scale:.{digits}f}"


def _escaped(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_").replace("#", r"\#").replace("&", r"\&")
