"""What is drawn over a plane, into a copy of it: outlines of two label maps, a tint over some pixels, arrows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from fidopt.images.preview.colours import BOTH, MADE, TRUE, Colour, Picture

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: Times that lines are drawn larger and then averaged, which smooths their steps.
_FINER = 3
#: Pixels of an arrow's head, and the part of a short arrow that it may take.
_HEAD, _PART = 7.0, 0.6


@dataclass(frozen=True)
class Arrow:
    """A line over a picture.

    Parameters
    ----------
    start, end
        Column and row, in pixels from the upper left corner.
    colour, width
        How it is drawn.
    head
        Whether it ends in a head; else in nothing.
    dot
        Radius of a dot at its end; none at 0.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    colour: Colour
    width: float = 1.5
    head: bool = False
    dot: float = 0.0


def contours(picture: Picture, truth: npt.NDArray[np.floating], made: npt.NDArray[np.floating]) -> Picture:
    """Return a picture with the outlines of two label maps: blue the true one, orange the other, white where both run.

    Parameters
    ----------
    picture
        (height, width, 3).
    truth, made
        (height, width) labels of every pixel; 0 has no outline.
    """
    drawn = picture.copy()
    one, other = outline(truth), outline(made)
    drawn[other] = MADE
    drawn[one] = TRUE
    drawn[one & other] = BOTH
    return drawn


def outline(labels: npt.NDArray[np.floating]) -> Mask:
    """Return the pixels of a label that touch another one or the background, above, below or at their sides."""
    padded = np.pad(labels, 1, mode="edge")
    rows, columns = labels.shape
    edge: Mask = np.zeros(labels.shape, dtype=bool)
    for down, right in ((0, 1), (2, 1), (1, 0), (1, 2)):
        edge |= padded[down : down + rows, right : right + columns] != labels
    return np.asarray(edge & (labels != 0))


def overlaid(picture: Picture, mask: Mask, colour: Colour, *, opacity: float = 1.0) -> Picture:
    """Return a picture with a colour over the pixels of a mask (height, width)."""
    drawn = picture.copy()
    mixed = picture[mask] * (1 - opacity) + np.array(colour, dtype=np.float64) * opacity
    drawn[mask] = np.rint(mixed).astype(np.uint8)
    return drawn


def arrows(picture: Picture, lines: Iterable[Arrow]) -> Picture:
    """Return a picture with arrows over it, the first one lowest."""
    height, width = picture.shape[:2]
    large = Image.fromarray(picture).resize((width * _FINER, height * _FINER), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(large)
    for line in lines:
        _draw(pen, line)
    return np.asarray(large.resize((width, height), Image.Resampling.BOX), dtype=np.uint8)


def _draw(pen: ImageDraw.ImageDraw, line: Arrow) -> None:
    start, end = (np.array(place, dtype=np.float64) * _FINER for place in (line.start, line.end))
    length = float(np.linalg.norm(end - start))
    tip = end
    if line.head and length > 0:
        size = min(_HEAD * _FINER, _PART * length)
        along = (end - start) / length
        across = np.array([-along[1], along[0]]) * size * math.tan(math.radians(25))
        tip = end - along * size
        pen.polygon([tuple(end), tuple(tip + across), tuple(tip - across)], fill=line.colour)
    if length > 0:
        pen.line([tuple(start), tuple(tip)], fill=line.colour, width=max(1, round(line.width * _FINER)))
    if line.dot:
        reach = line.dot * _FINER
        pen.ellipse([*(end - reach), *(end + reach)], fill=line.colour)
