"""The known deformation of a dataset whose two images are aligned by construction: smooth, one-to-one, from a seed.

The moving side of such a case is read through a transform T: what the prepared moving image showed at T(y) is what
the built one shows at y. A prepared point x, which both images show, therefore lies at T^-1(x) in the built one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.building.folding import STILL_LAYERS, least_determinant, steepness
from fidopt.building.recipe import Recipe, generator, most_reach
from fidopt.errors import InputError

Floats = npt.NDArray[np.float64]

#: How close, in voxels, a point's pair must be to its exact place.
PAIR_TOLERANCE = 1e-6
#: Least and most distance between control points where a recipe leaves it open, over the image's shortest side.
_DISTANCES = (0.3, 0.4)
#: Least and most reach there, over the most that the distance allows.
_REACHES = (0.5, 0.8)


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
    distance, reach = _strength(recipe, grid, name=name)
    lattice, active = _lattice(grid, distance, border=recipe.border)
    if not active.any():
        msg = f"{name}: a distance of {distance:g} is too large for an image of {grid.shape} voxels: nothing moves"
        raise InputError(msg)
    random = generator(recipe, f"{name}:deformation")
    # Whole numbers, divided by a power of two: the same bits on every machine.
    shape = (grid.ndim, *lattice.shape)
    size = random.integers(1 << 19, 1 << 20, size=shape, endpoint=True) / float(1 << 20)
    sign = random.integers(0, 1, size=shape, endpoint=True) * 2 - 1
    coefficients = np.where(active, size * sign * reach, 0.0)
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


def _strength(recipe: Recipe, grid: Grid, *, name: str) -> tuple[float, float]:
    """Return how far apart control points are and the most they move: as the recipe says, else drawn for the image."""
    if recipe.distance is not None and recipe.reach is not None:
        return recipe.distance, recipe.reach
    random = generator(recipe, f"{name}:strength")
    shares = random.integers(0, 1 << 20, size=2, endpoint=True) / float(1 << 20)
    far, much = (low + (high - low) * share for (low, high), share in zip((_DISTANCES, _REACHES), shares, strict=True))
    distance = far * min(n * step for n, step in zip(grid.shape, grid.spacing[::-1], strict=True))
    return distance, much * most_reach(distance, grid.ndim)


def _lattice(grid: Grid, distance: float, *, border: str) -> tuple[Grid, npt.NDArray[np.bool_]]:
    """Return the control points around an image's centre, along its axes, and which of them move."""
    extent = np.array(grid.shape) * np.array(grid.spacing[::-1])
    counts = np.ceil(extent / distance).astype(int) + 1 + 2 * STILL_LAYERS
    middle = grid.world((np.array(grid.shape) - 1) / 2)
    half = (counts[::-1] - 1) / 2 * distance
    # Rounded, so that the last bit of a product does not decide where the lattice is.
    origin = np.round(middle - grid.direction_matrix @ half, 6) + 0.0
    lattice = Grid.of(counts, spacing=[distance] * grid.ndim, origin=origin, direction=grid.direction)
    inset = 2 * distance if border == "still" else 0.0
    axes = [np.abs(np.arange(n) - (n - 1) / 2) * distance <= e / 2 - inset for n, e in zip(counts, extent, strict=True)]
    active = np.ones((), dtype=bool)
    for axis in axes:
        active = np.multiply.outer(active, axis)
    return lattice, active
