"""How regular a field is, as the table that KonfAI's criteria read: what its determinants add up to, once a question.

A field is as large as it likes and never goes through KonfAI: the engine adds it up block by block, and the criteria
make numbers of the sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

import blocks
from blocks.execute import compute
from blocks.graphs.foreground import foreground, onto, otsu
from blocks.graphs.regularity import regularity
from blocks.grid import Grid
from blocks.kernels.jacobian import MARGIN, OFFSET, Regularity
from blocks.kernels.moments import Moments
from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.errors import InputError
from fidopt.images.fields import LAZY_BYTES
from fidopt.scoring.levels import compared_level

Inside: TypeAlias = Literal["everywhere", "body", "mask"]
INSIDE: tuple[Inside, ...] = get_args(Inside)

Table = npt.NDArray[np.float64]


class Question(NamedTuple):
    """What a criterion asks of a field.

    Parameters
    ----------
    inside
        "everywhere"; "body", where the fixed image is above its Otsu threshold; "mask", where the fixed mask is not 0.
    margin
        Voxels left out on each side before the spread is taken.
    offset
        Added to the determinant before its logarithm.
    """

    inside: Inside
    margin: int = MARGIN
    offset: float = OFFSET


def table(case: Case, field: DisplacementField, questions: Iterable[Question], *, client: Any = None) -> Table:  # noqa: ANN401
    """Return a row a question: its three parts as numbers, then what the determinants add up to.

    Parameters
    ----------
    case
        Has the fixed image and mask, which are brought onto the field's grid at the nearest voxel.
    field
        Of any size.
    questions
        What is asked.
    client
        A Dask client; by default threads on this machine's cores. What lies in memory is added up here.

    Raises
    ------
    InputError
        When the body or the mask is asked for and the case has none, or ``inside`` is not one of the three.
    """
    asked = list(dict.fromkeys(questions))
    lazy = None if isinstance(field.vectors, np.ndarray) else client
    regions = {inside: _region(inside, case, field.grid, lazy) for inside in dict.fromkeys(q.inside for q in asked)}
    rows = []
    for margin, offset in dict.fromkeys((q.margin, q.offset) for q in asked):
        places = [q.inside for q in asked if (q.margin, q.offset) == (margin, offset)]
        sums = regularity(field, inside=[regions[place] for place in places], margin=margin, offset=offset)
        for place, found in zip(places, compute(sums, client=lazy), strict=True):
            rows.append([INSIDE.index(place), margin, offset, *_numbers(found)])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 8)


def answer(rows: Table, question: Question) -> Regularity:
    """Return what a table says to a question.

    Raises
    ------
    ValueError
        When it was not asked.
    """
    key = [INSIDE.index(question.inside), question.margin, question.offset]
    for row in rows:
        if row[:3].tolist() == key:
            voxels, folds, count, mean, squares = row[3:].tolist()
            return Regularity(int(voxels), int(folds), Moments(int(count), mean, squares))
    msg = f"nothing was added up {question}"
    raise ValueError(msg)


def _numbers(found: Regularity) -> tuple[float, ...]:
    spread = found.logarithm
    return found.voxels, found.folds, spread.count, spread.mean, spread.squares


def _region(inside: str, case: Case, grid: Grid, client: Any) -> xr.DataArray | None:  # noqa: ANN401
    """Return which voxels of the field's grid count, None for all of them."""
    if inside == "everywhere":
        return None
    if inside not in INSIDE:
        msg = f"a field is looked at {', '.join(INSIDE)}: inside must be one of them, got {inside!r}"
        raise InputError(msg)
    path = case.fixed if inside == "body" else case.masks().get("fixed_mask")
    if path is None or not path.is_dir():
        msg = f"{case.dataset.name}/{case.name} has no fixed {'image' if inside == 'body' else 'mask'}, and a field is"
        raise InputError(f"{msg} asked about inside its {inside}; leave it out of evaluation/registration.yml")
    image = blocks.open_image(path, level=compared_level(case, path))
    if client is None and image.nbytes <= LAZY_BYTES:
        image = image.copy(data=compute(image).data)
    if not case.dataset.large and not blocks.grid_of(image).matches(grid):
        msg = f"{path}: does not lie on the fixed grid of {case.dataset.name}/{case.name}; build the case again"
        raise InputError(msg)
    return foreground(image, compute(otsu(image), client=client), grid) if inside == "body" else onto(image, grid)
