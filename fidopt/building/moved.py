"""A case whose moving side goes through its known deformation: labels follow, pairs go through the inverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of
from fidopt.alignment.bodies import Body, body_of
from fidopt.building.contents import Contents, is_labels, side
from fidopt.building.deformation import PAIR_TOLERANCE, Deformation
from fidopt.building.recipe import Recipe, generator
from fidopt.errors import InputError

Floats = npt.NDArray[np.float64]

#: Rounds of points drawn before the deformation is said to leave none inside.
_ROUNDS = 50
#: Fractions of a voxel that a drawn point may lie at: a power of two, so that its index is exact.
_FRACTIONS = 1 << 10


def move(contents: Contents, deformation: Deformation, recipe: Recipe, *, modality: str, name: str) -> Contents:
    """Return a case with its moving side read through the deformation, and with landmark pairs drawn in the body.

    Parameters
    ----------
    contents
        The prepared case, its two images aligned.
    deformation, recipe
        What it goes through, and how it was drawn.
    modality
        Of the fixed image, in whose body the points are drawn.
    name
        ``DATASET:CASE``, for the points' random numbers.
    """
    images = {entry: _moved_image(entry, image, deformation) for entry, image in contents.images.items()}
    moving = grid_of(contents.images["moving"])
    points = moved_points(contents.points, deformation, moving)
    image = contents.images["fixed"]
    body = body_of(image, modality=modality)
    fixed, pairs = drawn_pairs(body, deformation, recipe, fixed=grid_of(image), moving=moving, name=name)
    for entry, drawn in (("truth/fixed_landmarks", fixed), ("truth/moving_landmarks", pairs)):
        points[entry] = np.concatenate([points[entry], drawn]) if entry in points else drawn
    return replace(contents, images=images, points=points)


def moved_points(points: Mapping[str, Floats], deformation: Deformation, moving: Grid) -> dict[str, Floats]:
    """Return a case's points, those of the moving side where the deformation's inverse takes them."""
    return {
        entry: _pairs(deformation, values, moving) if side(entry) == "moving" else values
        for entry, values in points.items()
    }


def drawn_pairs(
    body: Body, deformation: Deformation, recipe: Recipe, *, fixed: Grid, moving: Grid, name: str
) -> tuple[Floats, Floats]:
    """Draw points inside the fixed image's body, each with its pair; a pair outside the moving image is drawn again.

    Parameters
    ----------
    body
        The fixed image's, anywhere inside whose voxels a point may lie.
    deformation, recipe
        What takes a point to its pair, and how many there are.
    fixed, moving
        Grids of the two images: a point and its pair lie inside them.
    name
        ``DATASET:CASE``, for the random numbers.

    Returns
    -------
    tuple
        Fixed points and their pairs, each (``recipe.points``, ndim), world.

    Raises
    ------
    InputError
        When hardly a point of the body has its pair inside.
    """
    random = generator(recipe, f"{name}:points")
    voxels = np.argwhere(body.mask)
    kept: list[Floats] = []
    for _ in range(_ROUNDS):
        chosen = voxels[random.integers(0, len(voxels), size=recipe.points)]
        fraction = random.integers(0, _FRACTIONS, size=chosen.shape) / _FRACTIONS - 0.5
        points = rounded(body.grid.world(chosen + fraction), fixed)
        pairs = _pairs(deformation, points, moving)
        inside = fixed.inside(points) & moving.inside(pairs)
        kept += [np.stack([point, pair]) for point, pair in zip(points[inside], pairs[inside], strict=True)]
        if len(kept) >= recipe.points:
            both = np.stack(kept[: recipe.points])
            return both[:, 0], both[:, 1]
    msg = (
        f"{name}: {len(kept)} of the body's points have their pair inside the moving image, {recipe.points} are needed"
    )
    raise InputError(msg)


def rounded(points: Floats, grid: Grid) -> Floats:
    """Round world points to a billionth of the spacing's order: every machine writes the same."""
    return np.asarray(np.round(points, 9 - int(np.floor(np.log10(min(grid.spacing)))))) + 0.0


def _pairs(deformation: Deformation, points: Floats, grid: Grid) -> Floats:
    tolerance = 1e-4 * PAIR_TOLERANCE * min(grid.spacing)
    return rounded(deformation.inverse(points, tolerance=tolerance), grid)


def _moved_image(entry: str, image: xr.DataArray, deformation: Deformation) -> xr.DataArray:
    from blocks import warp  # compiles its kernels: only where something is warped

    if side(entry) != "moving":
        return image
    if is_labels(entry):
        moved = warp(image, deformation.transform, image, interpolation="nearest")
    else:
        outside = float(image.min())
        moved = warp(image, deformation.transform, image, interpolation="linear", background=outside)
    warped: xr.DataArray = compute(moved)
    return warped
