"""Pictures as PNG files, and the level of a store that is fine enough for one."""

from __future__ import annotations

import io
from pathlib import Path

import imageio.v3 as iio

from blocks.image import levels_of
from fidopt.images.atomic import written_whole
from fidopt.images.preview.colours import Picture


def write_png(path: str | Path, picture: Picture) -> None:
    """Write a picture (height, width, 3) uint8 as PNG."""
    with written_whole(path) as part:
        part.write_bytes(png_bytes(picture))


def png_bytes(picture: Picture) -> bytes:
    """Return a picture (height, width, 3) uint8 as the bytes of a PNG file."""
    stream = io.BytesIO()
    iio.imwrite(stream, picture, extension=".png", plugin="pillow", compress_level=3)
    return stream.getvalue()


def coarse_level(path: str | Path, *, side: int = 512) -> int:
    """Return the finest level of a store whose longest side has at most so many voxels; else its coarsest."""
    levels = levels_of(path)
    return next((n for n, level in enumerate(levels) if max(level.grid.shape) <= side), len(levels) - 1)
