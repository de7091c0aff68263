"""A prepared image that stays where the provider's file lies: ``fixed.json`` in place of ``fixed.nii.gz``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from fidopt.descriptors.appearance import Appearance
from fidopt.descriptors.base import File, Text
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.wording import pattern

#: The two letters an axis may begin at, and the world axis (LPS) it runs along.
ENDS = {"r": (0, 1.0), "l": (0, -1.0), "a": (1, 1.0), "p": (1, -1.0), "i": (2, 1.0), "s": (2, -1.0)}

Axes = Annotated[str, pattern(r"^[lrapsi]{3}$", "three of l, r, a, p, s, i: the side the first voxel lies on")]


class ImageReference(File):
    """What ``prepare.py`` of a large dataset writes instead of an image: which of its source files, and how it lies.

    Parameters
    ----------
    file
        As :func:`fidopt.images.readers.read_image` takes it, from the folder of the source files: ``slide.svs``,
        ``planes/*.tif``, ``stack.h5:raw``, ``pair.ome.tif:1``.
    spacing
        x, y[, z], where the file does not say.
    unit
        Of the spacing; by default the file's own.
    axes
        Of a volume: the side its first voxel lies on along the file's z, y and x, such as "psl" for a stack whose
        first plane is the most posterior, first row the most superior and first column the leftmost; by default
        "iar", the world's own axes (LPS).
    appearance
        Of the moving image: what is done to its values once it is where it will be, such as another stain.
    """

    file: Text
    spacing: tuple[Annotated[float, Field(gt=0)], ...] | None = None
    unit: Text | None = None
    axes: Axes | None = None
    appearance: Appearance | None = None

    @check
    def _each_axis_once(self) -> Iterator[str]:
        if self.axes is not None and len({ENDS[letter][0] for letter in self.axes}) != 3:
            yield f"axes: must name each of left-right, front-back and up-down once, got {self.axes!r}"

    @check
    def _inside(self) -> Iterator[str]:
        if self.file.startswith(("/", "..")) or "/../" in self.file:
            yield f"file: must lie in the folder of the source files, got {self.file!r}"


def direction(axes: str) -> tuple[float, ...]:
    """Return the direction (row-major, world order) of a volume whose first voxel lies on these sides, z, y, x."""
    columns = [ENDS[letter] for letter in reversed(axes)]
    return tuple(sign if axis == row else 0.0 for row in range(3) for axis, sign in columns)
