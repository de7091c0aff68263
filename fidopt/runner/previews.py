"""Pictures of a scored case: its pair before and after, since the field itself is deleted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fidopt.corpus import Case

if TYPE_CHECKING:
    from blocks.transforms import DisplacementField

#: Voxels along the longest side of the level that is drawn, 2D and 3D: a picture shows no more.
SIDE = {2: 1024, 3: 256}


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
    from blocks.execute import compute
    from blocks.transforms import Affine
    from fidopt.images.preview import checkerboard, coarse_level, render, write_png

    side = SIDE[case.dataset.dimension]
    fixed, moving = (blocks.open_image(p, level=coarse_level(p, side=side)) for p in (case.fixed, case.moving))
    unmoved = blocks.warp(moving, Affine.identity(case.dataset.dimension), fixed)
    warped = blocks.warp(moving, field, fixed)
    # In memory once: each of the three planes of a picture would warp all of it again.
    fixed, unmoved, warped = compute(fixed, unmoved, warped)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_png(folder / "before.png", checkerboard(fixed, unmoved))
    write_png(folder / "after.png", checkerboard(fixed, warped))
    write_png(folder / "warped.png", render(warped))
