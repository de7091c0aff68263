"""Pictures of a scored case, drawn while its result is there: the field is deleted, and so is a method's output.

A picture's planes are chosen by the case where it compares methods (checkerboards, contours, landmarks), and by the
result where it looks for faults (folds, wrong voxels, differences).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fidopt.corpus import Case
from fidopt.errors import FidoptError

if TYPE_CHECKING:
    from blocks.transforms import DisplacementField
    from fidopt.images.preview import Picture
    from fidopt.scoring.outputs import Output


def draw(case: Case, result: DisplacementField | Output, folder: Path) -> None:
    """Write a case's pictures as PNG files.

    Of a registration before.png, after.png and warped.png where there are images, contours.png where there are labels,
    landmarks.png where there are landmarks (those of another set are contours_SET.png, landmarks_SET.png), and
    jacobian.png. Of a segmentation contours.png and wrong.png; of a synthesis synthesis.png.

    Parameters
    ----------
    case
        A built case; a coarse level of a large one is drawn.
    result
        The field u, from fixed points to moving ones, or the label map or image that a method made.
    folder
        Where the pictures go; those that were there are replaced.
    """
    from blocks.transforms import DisplacementField
    from fidopt.runner.previews import outputs, registration

    if isinstance(result, DisplacementField):
        _write(folder, registration.pictures(case, result))
    elif case.dataset.task == "segmentation":
        _write(folder, outputs.segmentation(case, result))
    else:
        _write(folder, outputs.synthesis(case, result))


def draw_or_say(case: Case, result: DisplacementField | Output, folder: Path, *, say: Callable[[str], None]) -> None:
    """Draw a case's pictures, or say why they cannot be drawn: a row does not fail for a picture."""
    try:
        draw(case, result, folder)
    except (FidoptError, OSError, ValueError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        say(f"{case.dataset.name}/{case.name}: no pictures: {said}")


def _write(folder: Path, pictures: Iterable[tuple[str, Picture]]) -> None:
    from fidopt.images.preview import write_png

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, picture in pictures:
        write_png(folder / f"{name}.png", picture)
