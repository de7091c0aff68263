"""A sheet of panels: a title, planes with captions below them, and what the colours mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from fidopt.images.preview.colours import Colour, Picture, Scale
from fidopt.images.preview.words import FAINT, INK, PAPER, SMALL, TITLE, folded, leading, length, write

_GAP, _MARGIN = 8, 12
#: A sheet is never narrower: its words need room.
_NARROWEST = 420
_BAR = (220, 12)


@dataclass(frozen=True)
class Panel:
    """A picture and the words below it."""

    picture: Picture
    caption: str = ""


@dataclass(frozen=True)
class Key:
    """What a colour, or a scale of them, means.

    Parameters
    ----------
    colour
        The colour, or the scale.
    text
        What it stands for.
    """

    colour: Colour | Scale
    text: str


def sheet(title: str, rows: Sequence[Sequence[Panel]], keys: Sequence[Key] = (), *, note: str = "") -> Picture:
    """Return panels in rows, under a title and above the meaning of their colours.

    Parameters
    ----------
    title
        A line above; it is folded where it is too long, as all words are.
    rows
        Panels; those of a column are centred below each other, one that is alone in its row has the whole width.
    keys
        What colours mean.
    note
        A line at the foot.

    Returns
    -------
    ndarray
        (height, width, 3) uint8.
    """
    columns = max(map(len, rows), default=0)
    shared = [row for row in rows if len(row) > 1 or columns == 1]
    wide = [max(row[n].picture.shape[1] for row in shared if n < len(row)) for n in range(columns)]
    alone = max((row[0].picture.shape[1] for row in rows if len(row) == 1), default=0)
    width = max(sum(wide) + _GAP * max(columns - 1, 0), alone, _NARROWEST)
    left = _MARGIN + (width - sum(wide) - _GAP * max(columns - 1, 0)) // 2
    parts: list[_Words | _Row | _Keys] = [
        _Words(title, width, TITLE, INK),
        *(_Row(row, wide, left) if len(row) > 1 else _Row(row, [width], _MARGIN) for row in rows),
    ]
    parts += [_Keys(keys, width)] if keys else []
    parts += [_Words(note, width, SMALL, FAINT)] if note else []
    height = sum(part.height for part in parts) + _GAP * (len(parts) - 1) + 2 * _MARGIN
    paper = Image.new("RGB", (width + 2 * _MARGIN, height), PAPER)
    top = _MARGIN
    for part in parts:
        part.draw(paper, top)
        top += part.height + _GAP
    return np.asarray(paper, dtype=np.uint8)


class _Words:
    """Lines of text over the whole width of a sheet."""

    def __init__(self, text: str, width: int, size: int, colour: Colour) -> None:
        self._lines, self._size, self._colour = folded(text, width, size), size, colour
        self.height = len(self._lines) * leading(size)

    def draw(self, paper: Image.Image, top: int) -> None:
        """Draw it from a row down."""
        write(paper, self._lines, (_MARGIN, top), self._size, self._colour)


class _Row:
    """Panels side by side, their captions below them."""

    def __init__(self, panels: Sequence[Panel], wide: Sequence[int], left: int) -> None:
        self._panels, self._wide, self._left = panels, wide, left
        self._captions = [
            folded(panel.caption, room, SMALL) if panel.caption else []
            for panel, room in zip(panels, wide, strict=False)
        ]
        self._tall = max(panel.picture.shape[0] for panel in panels)
        self.height = self._tall + max(map(len, self._captions)) * leading(SMALL)
        self.height += 4 if any(self._captions) else 0

    def draw(self, paper: Image.Image, top: int) -> None:
        """Draw it from a row down."""
        left = self._left
        for panel, room, lines in zip(self._panels, self._wide, self._captions, strict=False):
            high, broad = panel.picture.shape[:2]
            place = (left + (room - broad) // 2, top + (self._tall - high) // 2)
            paper.paste(Image.fromarray(panel.picture), place)
            write(paper, lines, (left, top + self._tall + 4), SMALL, FAINT)
            left += room + _GAP


class _Keys:
    """Swatches and scales with their words, as many a line as fit."""

    def __init__(self, keys: Sequence[Key], width: int) -> None:
        self._lines: list[list[tuple[Key, int]]] = [[]]
        used = 0
        for key in keys:
            room = min(_key_width(key), width)
            if used and used + room > width:
                self._lines.append([])
                used = 0
            self._lines[-1].append((key, used))
            used += room + 2 * _GAP
        self.height = sum(map(self._tall, self._lines))

    def _tall(self, line: Sequence[tuple[Key, int]]) -> int:
        scaled = any(isinstance(key.colour, Scale) for key, _ in line)
        return leading(SMALL) * (2 if scaled else 1) + (_BAR[1] if scaled else 0)

    def draw(self, paper: Image.Image, top: int) -> None:
        """Draw it from a row down."""
        for line in self._lines:
            for key, left in line:
                _draw_key(paper, key, (_MARGIN + left, top))
            top += self._tall(line)


def _draw_key(paper: Image.Image, key: Key, place: tuple[int, int]) -> None:
    left, top = place
    if not isinstance(key.colour, Scale):
        ImageDraw.Draw(paper).rectangle([left, top + 3, left + 11, top + 14], fill=key.colour)
        write(paper, [key.text], (left + 18, top), SMALL, INK)
        return
    write(paper, [key.text], (left, top), SMALL, INK)
    scale = key.colour
    steps = (np.arange(_BAR[0]) + 0.5) / _BAR[0]
    values = scale.low * (scale.high / scale.low) ** steps if scale.both_ways else steps * (scale.high - scale.low)
    bar = np.broadcast_to(scale.colours(values), (_BAR[1], _BAR[0], 3))
    paper.paste(Image.fromarray(np.ascontiguousarray(bar)), (left, top + leading(SMALL)))
    for tick in scale.ticks:
        text = f"{tick:g}"
        middle = left + float(scale.place(tick)) * (_BAR[0] - 1) - length(text, SMALL) / 2
        at = round(min(max(middle, left), left + _BAR[0] - length(text, SMALL)))
        write(paper, [text], (at, top + leading(SMALL) + _BAR[1]), SMALL, FAINT)


def _key_width(key: Key) -> int:
    words = length(key.text, SMALL)
    return max(_BAR[0], words) if isinstance(key.colour, Scale) else words + 18
