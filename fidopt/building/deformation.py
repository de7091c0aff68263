"""The known deformation of a dataset whose two images are aligned by construction: smooth, one-to-one, from a seed.

The moving side of such a case is read through a transform T: what the prepared moving image showed at T(y) is what
the built one shows at y. A prepared point x, which both images show, therefore lies at T^-1(x) in the built one.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, NonNegativeInt, PositiveInt

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.building.appearance import Appearance
from fidopt.building.folding import STEEPEST, STILL_LAYERS, least_determinant, steepness
from fidopt.descriptors.base import File, load
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, MissingError
from fidopt.resources import Roots

Floats = npt.NDArray[np.float64]

#: Largest steepness taken: how far from one the construction stays.
MOST_STEEP = 0.9
#: Folder of a dataset's archive that holds its recipe, and nothing that a build lays out.
PRIVATE = "private"
#: Least seed of a recipe that is kept there. checksums.json holds the digest of what it draws.
LEAST_SECRET = 10**14
#: How close, in voxels, a point's pair must be to its exact place.
PAIR_TOLERANCE = 1e-6


class Recipe(File):
    """How a dataset's deformations are drawn; kept with the truth, except for the sets of the demonstration.

    Parameters
    ----------
    seed
        Of the whole dataset; a case's own deformation also depends on its name.
    family
        The kind of deformation.
    distance, reach
        Of the lattice that shapes it, and the most it moves: in the dataset's unit.
    border
        Whether the image's faces stay where they are.
    points
        How many landmark pairs are added.
    appearance
        What else is done to the moving image of a large dataset; the moving image of another is whatever prepare.py
        makes.
    """

    seed: NonNegativeInt
    family: Literal["bspline"] = "bspline"
    distance: Annotated[float, Field(gt=0)]
    reach: Annotated[float, Field(gt=0)]
    border: Literal["still", "free"] = "still"
    points: PositiveInt = 100
    appearance: Appearance | None = None


def recipe_path(dataset: Dataset, roots: Roots) -> Path:
    """Return where a dataset's recipe lies: with its archive, else (the demonstration's) beside its descriptor.

    Raises
    ------
    MissingError
        When it is in neither.
    """
    private = roots.archives / dataset.name / PRIVATE / "warp.json"
    public = roots.find("datasets", dataset.name) / "warp.json"
    for path in (private, public):
        if path.is_file():
            return path
    msg = (
        f"{dataset.name}: its known deformation's seed is not in {private}; only those who keep the truth can build it"
    )
    raise MissingError(msg)


def is_public(dataset: Dataset, roots: Roots) -> bool:
    """Whether a dataset's recipe lies beside its descriptor, for everybody to read."""
    return any((root / "datasets" / dataset.name / "warp.json").is_file() for root in roots.share)


def read_recipe(path: Path, dataset: Dataset) -> Recipe:
    """Read a recipe and refuse one that could give a deformation that is not one-to-one, or that others could guess.

    Raises
    ------
    InputError
        When ``reach`` is too large for ``distance``, or a secret seed is so short that it is found by trying.
    """
    recipe = load(Recipe, path)
    if path.parent.name == PRIVATE and recipe.seed < LEAST_SECRET:
        msg = (
            f"{path}: seed: must have {len(str(LEAST_SECRET))} digits or more, got {len(str(recipe.seed))}: with the "
            "recorded checksums a shorter one is found by trying; python -c 'import secrets; "
            "print(secrets.randbits(128))' gives one"
        )
        raise InputError(msg)
    most = MOST_STEEP * recipe.distance / STEEPEST[dataset.dimension]
    if recipe.reach > most:
        msg = f"{path}: reach: must be at most {most:.4g} for a distance of {recipe.distance:g}, got {recipe.reach:g}"
        raise InputError(msg)
    return recipe


def generator(recipe: Recipe, name: str) -> np.random.Generator:
    """Return the random numbers of one case, named ``DATASET:CASE`` and what they are for."""
    key = hashlib.sha256(f"{recipe.seed}:{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(key, "big"))


@dataclass(frozen=True)
class Deformation:
    """A smooth one-to-one transform of the world, and how far from folding it is by construction.

    Parameters
    ----------
    transform
        T, from the built moving image's world to the prepared one's.
    """

    transform: BSpline

    @cached_property
    def steepness(self) -> float:
        """Bound of the displacement's gradient, from the coefficients (:func:`fidopt.building.folding.steepness`)."""
        return steepness(self.transform)

    @property
    def least_determinant(self) -> float:
        """What no Jacobian determinant goes below."""
        return least_determinant(self.transform)

    def inverse(self, points: npt.ArrayLike, *, tolerance: float) -> Floats:
        """Return T^-1 of world points (n, ndim), within ``tolerance``.

        Each step y <- y + x - T(y) takes the error down by the steepness, since that bounds the slope of y - T(y), and
        what is left of it is at most the last miss over one minus the steepness.

        Raises
        ------
        InputError
            When the steps do not come that close.
        """
        goal = np.asarray(points, dtype=np.float64)
        found = goal.copy()
        steps = 8 + (math.ceil(math.log(1e-16) / math.log(self.steepness)) if 0 < self.steepness < 1 else 0)
        # The bound is of the largest component along the lattice's axes, and the tolerance of one along the world's.
        close = tolerance * (1.0 - self.steepness) / math.sqrt(self.transform.ndim)
        for _ in range(steps):
            miss = goal - self.transform.points(found)
            if np.linalg.norm(miss, axis=-1).max(initial=0.0) <= close:
                return found
            found = found + miss
        msg = f"the deformation's inverse is not found to {tolerance:g}; give it a smaller reach or a larger distance"
        raise InputError(msg)


def draw(recipe: Recipe, grid: Grid, *, name: str) -> Deformation:
    """Draw the deformation of one case.

    Parameters
    ----------
    recipe
        How it is drawn.
    grid
        The moving image's.
    name
        ``DATASET:CASE``: the same name, recipe and grid give the same deformation.

    Raises
    ------
    InputError
        When the image is too small for the recipe: nothing would move.
    """
    lattice, active = _lattice(recipe, grid)
    if not active.any():
        msg = (
            f"{name}: a distance of {recipe.distance:g} is too large for an image of {grid.shape} voxels: nothing moves"
        )
        raise InputError(msg)
    random = generator(recipe, f"{name}:deformation")
    # Whole numbers, divided by a power of two: the same bits on every machine.
    shape = (grid.ndim, *lattice.shape)
    size = random.integers(1 << 19, 1 << 20, size=shape, endpoint=True) / float(1 << 20)
    sign = random.integers(0, 1, size=shape, endpoint=True) * 2 - 1
    coefficients = np.where(active, size * sign * recipe.reach, 0.0)
    world = np.einsum("ij,j...->i...", grid.direction_matrix, coefficients)
    return Deformation(BSpline(lattice, world))


def transform_text(transform: BSpline) -> str:
    """Return a B-spline transform as the text of an ITK transform file, its numbers to the last digit."""
    grid = transform.grid
    fixed = [*(float(n) for n in grid.shape[::-1]), *grid.origin, *grid.spacing, *grid.direction]
    lines = [
        "#Insight Transform File V1.0",
        "#Transform 0",
        f"Transform: BSplineTransform_double_{grid.ndim}_{grid.ndim}",
        "Parameters: " + " ".join(repr(float(v)) for v in np.asarray(transform.coefficients).ravel()),
        "FixedParameters: " + " ".join(repr(float(v)) for v in fixed),
    ]
    return "\n".join(lines) + "\n"


def _lattice(recipe: Recipe, grid: Grid) -> tuple[Grid, npt.NDArray[np.bool_]]:
    """Return the control points around an image's centre, along its axes, and which of them move."""
    extent = np.array(grid.shape) * np.array(grid.spacing[::-1])
    counts = np.ceil(extent / recipe.distance).astype(int) + 1 + 2 * STILL_LAYERS
    middle = grid.world((np.array(grid.shape) - 1) / 2)
    half = (counts[::-1] - 1) / 2 * recipe.distance
    # Rounded, so that the last bit of a product does not decide where the lattice is.
    origin = np.round(middle - grid.direction_matrix @ half, 6) + 0.0
    lattice = Grid.of(counts, spacing=[recipe.distance] * grid.ndim, origin=origin, direction=grid.direction)
    inset = 2 * recipe.distance if recipe.border == "still" else 0.0
    axes = [
        np.abs(np.arange(n) - (n - 1) / 2) * recipe.distance <= e / 2 - inset
        for n, e in zip(counts, extent, strict=True)
    ]
    active = np.ones((), dtype=bool)
    for axis in axes:
        active = np.multiply.outer(active, axis)
    return lattice, active
