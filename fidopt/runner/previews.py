"""Pictures of a scored case: its pair before and after, since the field itself is deleted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fidopt.corpus import Case

if TYPE_CHECKING:
    from blocks.transforms import DisplacementField

#: Voxels along the longest side of the level that is drawn, where a coarser one is enough.
SIDE = 512


def draw(case: Case, field: DisplacementField, folder: Path) -> None:
    """Write before.png and after.png (checkerboards of fixed and moving, fixed and warped) and warped.png.

    Parameters
    ----------
    case
        A case with images; a coarse level of a large one is drawn.
    field
        u, from fixed points to moving ones.
    folder
        Where the pictures go; those that were there are replaced.
    """
    import blocks
    from blocks.transforms import Affine
    from fidopt.images.preview import checkerboard, coarse_level, render, write_png

    fixed = blocks.open_image(case.fixed, level=coarse_level(case.fixed, side=SIDE))
    moving = blocks.open_image(case.moving, level=coarse_level(case.moving, side=SIDE))
    unmoved = blocks.warp(moving, Affine.identity(case.dataset.dimension), fixed)
    warped = blocks.warp(moving, field, fixed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_png(folder / "before.png", checkerboard(fixed, unmoved))
    write_png(folder / "after.png", checkerboard(fixed, warped))
    write_png(folder / "warped.png", render(warped))
