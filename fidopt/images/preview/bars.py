"""Numbers as horizontal bars, each with a tick where it was before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from fidopt.images.preview.colours import MADE, TRUE, Picture
from fidopt.images.preview.words import INK, PAPER, SMALL, fitted, leading, length, write

#: Pixels: a bar's row and its height, the longest name, the gap between the columns.
_ROW, _TALL, _NAME, _GAP = 20, 12, 190, 8


@dataclass(frozen=True)
class Bar:
    """One number.

    Parameters
    ----------
    name
        What stands before it.
    value
        How long it is; None where there is none.
    before
        Where the tick is; None for none.
    text
        What stands behind it.
    """

    name: str
    value: float | None
    before: float | None = None
    text: str = ""


def bars(rows: Sequence[Bar], *, width: int, most: float | None = None) -> Picture:
    """Return bars below each other, from 0 to the largest number, or to ``most``.

    Parameters
    ----------
    rows
        The bars; a name that is too long is cut short.
    width
        Pixels of the whole picture.
    most
        The number whose bar is as long as can be.

    Returns
    -------
    ndarray
        (height, width, 3) uint8.
    """
    known = [value for row in rows for value in (row.value, row.before) if value is not None]
    top = most if most is not None else max(known, default=0.0)
    named = min(_NAME, max((length(row.name, SMALL) for row in rows), default=0))
    told = max((length(row.text, SMALL) for row in rows), default=0)
    room = max(40, width - named - told - 2 * _GAP)
    paper = Image.new("RGB", (width, max(1, _ROW * len(rows))), PAPER)
    pen = ImageDraw.Draw(paper)
    left = named + _GAP
    for number, row in enumerate(rows):
        upper = number * _ROW
        write(paper, [fitted(row.name, named, SMALL)], (0, upper + (_ROW - leading(SMALL)) // 2), SMALL, INK)
        pen.rectangle([left, upper + 4, left + room - 1, upper + 3 + _TALL], fill=(44, 44, 48))
        for value, colour in ((row.value, MADE), (row.before, TRUE)):
            if value is None or top <= 0:
                continue
            end = left + round(min(max(value / top, 0.0), 1.0) * (room - 1))
            box = (
                [left, upper + 4, end, upper + 3 + _TALL]
                if colour == MADE
                else [end - 1, upper + 2, end, upper + 5 + _TALL]
            )
            pen.rectangle(box, fill=colour)
        write(paper, [row.text], (left + room + _GAP, upper + (_ROW - leading(SMALL)) // 2), SMALL, INK)
    return np.asarray(paper, dtype=np.uint8)
