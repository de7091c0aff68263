"""Pictures of images, for people, never for scoring: planes, checkerboards, contours, scales and captions.

A picture is (height, width, 3) uint8.
"""

from fidopt.images.preview.bars import Bar, bars
from fidopt.images.preview.colours import (
    BOTH,
    FOLD,
    MADE,
    TRUE,
    WRONG,
    Colour,
    Picture,
    Scale,
    greys,
    rising,
    rounded_up,
    window_of,
)
from fidopt.images.preview.files import coarse_level, png_bytes, write_png
from fidopt.images.preview.marks import Arrow, arrows, contours, outline, overlaid
from fidopt.images.preview.sheets import Key, Panel, sheet
from fidopt.images.preview.slices import checkerboard, coloured, interleaved, render
from fidopt.images.preview.views import View, around, busiest, fullest, views

__all__ = [
    "BOTH",
    "FOLD",
    "MADE",
    "TRUE",
    "WRONG",
    "Arrow",
    "Bar",
    "Colour",
    "Key",
    "Panel",
    "Picture",
    "Scale",
    "View",
    "around",
    "arrows",
    "bars",
    "busiest",
    "checkerboard",
    "coarse_level",
    "coloured",
    "contours",
    "fullest",
    "greys",
    "interleaved",
    "outline",
    "overlaid",
    "png_bytes",
    "render",
    "rising",
    "rounded_up",
    "sheet",
    "views",
    "window_of",
    "write_png",
]
