"""Words in pictures: their type, how wide they are, and how they are folded."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fidopt.images.preview.colours import Colour

#: Sizes of type, in pixels.
TITLE, SMALL = 16, 13
PAPER: Colour = (18, 18, 20)
INK: Colour = (236, 236, 236)
FAINT: Colour = (176, 176, 180)


def folded(text: str, width: int, size: int) -> list[str]:
    """Return a text as lines that are no wider than so many pixels, unless one word is."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}" if line else word
            if line and length(longer, size) > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


def fitted(text: str, width: int, size: int) -> str:
    """Return a text that is no wider than so many pixels: its beginning and an ellipsis, where it is."""
    if length(text, size) <= width:
        return text
    kept = text
    while kept and length(f"{kept}...", size) > width:
        kept = kept[:-1]
    return f"{kept}..."


def write(paper: Image.Image, lines: Sequence[str], place: tuple[int, int], size: int, colour: Colour) -> None:
    """Write lines below each other, from a column and a row on."""
    pen = ImageDraw.Draw(paper)
    left, top = place
    for number, line in enumerate(lines):
        pen.text((left, top + number * leading(size)), plain(line), fill=colour, font=_font(size))


def length(text: str, size: int) -> int:
    """Return the pixels that a text is wide."""
    return int(np.ceil(_font(size).getlength(plain(text))))


def plain(text: str) -> str:
    """Return a text in ASCII, which is all the typeface has: without accents, and ? where there is no such letter."""
    bare = unicodedata.normalize("NFKD", text.replace("\N{MICRO SIGN}", "u"))
    kept = "".join(letter for letter in bare if not unicodedata.combining(letter))
    return kept.encode("ascii", "replace").decode("ascii")


def leading(size: int) -> int:
    """Return the pixels from one line to the next."""
    return round(size * 1.4)


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont:
    # Pillow's own typeface, laid out by its own engine: the same pixels wherever the same Pillow is.
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return ImageFont.truetype(io.BytesIO(font.font_bytes), size, layout_engine=ImageFont.Layout.BASIC)
