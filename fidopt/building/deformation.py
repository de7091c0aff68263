"""The known deformation of a dataset whose two images are aligned by construction: smooth, one-to-one, from a seed.

The moving side of such a case is read through a transform T: what the prepared moving image showed at T(y) is what
the built one shows at y. A prepared point x, which both images show, therefore lies at T^-1(x) in the built one.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, NonNegativeInt, PositiveInt

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.building.appearance import Appearance
from fidopt.descriptors.base import File, load
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, MissingError
from fidopt.resources import Roots

Floats = npt.NDArray[np.float64]

#: Largest sum, over a row of the gradient, that coefficients of at most one control distance can give a cubic B-spline
#: displacement of so many dimensions. Below one over it, such a transform is one-to-one: Choi and Lee, "Injectivity
#: conditions of 2D and 3D uniform cubic B-spline functions", Graphical Models 62 (2000), whose constants these are.
STEEPEST = {2: 2.046392675, 3: 2.479472335}
#: Largest steepness taken: how far from one the construction stays.
MOST_STEEP = 0.9
#: How close, in voxels, a point's pair must be to its exact place.
PAIR_TOLERANCE = 1e-6
#: Layers of still control points around the others, so that the displacement ends smoothly inside the lattice.
_STILL_LAYERS = 3
#: Most points at which the Jacobian determinant is measured.
_MEASURED = 1 << 14


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
    private = roots.archives / dataset.name / "private" / "warp.json"
    public = roots.find("datasets", dataset.name) / "warp.json"
    for path in (private, public):
        if path.is_file():
            return path
    msg = (
        f"{dataset.name}: its known deformation's seed is not in {private}; only those who keep the truth can build it"
    )
    raise MissingError(msg)


def read_recipe(path: Path, dataset: Dataset) -> Recipe:
    """Read a recipe and refuse one that could give a deformation that is not one-to-one.

    Raises
    ------
    InputError
        When ``reach`` is too large for ``distance``.
    """
    recipe = load(Recipe, path)
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
    steepness
        Bound of the displacement's gradient, as the largest sum of a row in the lattice's axes; less than one.
    """

    transform: BSpline
    steepness: float

    @property
    def least_determinant(self) -> float:
        """What no Jacobian determinant goes below, by construction: its eigenvalues lie in 1 +- steepness."""
        return float((1.0 - self.steepness) ** self.transform.ndim)

    def inverse(self, points: npt.ArrayLike, *, tolerance: float) -> Floats:
        """Return T^-1 of world points (n, ndim), within ``tolerance``.

        Each step y <- y + x - T(y) takes the error down by the steepness, since that bounds the slope of y - T(y).

        Raises
        ------
        InputError
            When the steps do not come that close.
        """
        goal = np.asarray(points, dtype=np.float64)
        found = goal.copy()
        for _ in range(math.ceil(math.log(1e-16) / math.log(self.steepness)) + 8):
            miss = goal - self.transform.points(found)
            if np.abs(miss).max(initial=0.0) <= tolerance * (1.0 - self.steepness):
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
    steepness = STEEPEST[grid.ndim] * recipe.reach / recipe.distance
    return Deformation(BSpline(lattice, world), steepness)


def refuse_folding(deformation: Deformation, grid: Grid) -> float:
    """Measure the smallest Jacobian determinant over a grid's voxels, and refuse one below the construction's bound.

    Returns
    -------
    float
        The smallest determinant measured.

    Raises
    ------
    InputError
        When it is below the bound, which would mean that the deformation is not what it was built to be.
    """
    step = max(1, math.ceil((math.prod(grid.shape) / _MEASURED) ** (1 / grid.ndim)))
    index = np.stack(np.meshgrid(*[np.arange(0, n, step) for n in grid.shape], indexing="ij"), axis=-1)
    points = grid.world(index.reshape(-1, grid.ndim))
    reach = 1e-3 * min(grid.spacing)
    columns = [
        deformation.transform.points(points + shift) - deformation.transform.points(points - shift)
        for shift in np.eye(grid.ndim) * reach
    ]
    smallest = float(np.linalg.det(np.stack(columns, axis=-1) / (2 * reach)).min())
    if not smallest >= deformation.least_determinant - 1e-9:
        msg = (
            f"the deformation's Jacobian determinant goes down to {smallest:g}, below the "
            f"{deformation.least_determinant:g} it is built to stay above; it cannot be a truth"
        )
        raise InputError(msg)
    return smallest


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
    counts = np.ceil(extent / recipe.distance).astype(int) + 1 + 2 * _STILL_LAYERS
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
