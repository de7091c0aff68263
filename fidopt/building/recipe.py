"""How a dataset's known deformations are drawn, and where that is kept: with the truth, out of a method's reach.

The seed, the family and its strength lie in ``private/warp.json`` of the dataset's archive. Where an archive keeps
none, a build draws a seed of its own, once, and keeps it on this machine (``Roots.private``), so that every later build
here gives the same truth. Only the sets of the demonstration, which no track holds, are drawn in the open.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt

from fidopt.building.folding import STEEPEST
from fidopt.descriptors.base import File, dump, load
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, MissingError
from fidopt.resources import Roots

#: Largest steepness taken: how far from one the construction stays.
MOST_STEEP = 0.9
#: Folder of a dataset's archive that holds its recipe, and nothing that a build lays out.
PRIVATE = "private"
#: Least seed of a recipe that is kept secret. checksums.json may hold the digest of what it draws.
LEAST_SECRET = 10**14
_FILE = "warp.json"
_SECRET_BITS = 128


class Recipe(File):
    """How a dataset's deformations are drawn; kept with the truth, except for the sets of the demonstration.

    Parameters
    ----------
    seed
        Of the whole dataset; a case's own deformation also depends on its name.
    family
        The kind of deformation.
    distance, reach
        Of the lattice that shapes it, and the most it moves: in the dataset's unit. By default both are drawn for
        each case, to the size of its image.
    border
        Whether the image's faces stay where they are.
    points
        How many landmark pairs are added.
    """

    seed: NonNegativeInt
    family: Literal["bspline"] = "bspline"
    distance: Annotated[float, Field(gt=0)] | None = None
    reach: Annotated[float, Field(gt=0)] | None = None
    border: Literal["still", "free"] = "still"
    points: PositiveInt = 100

    @check
    def _both(self) -> Iterator[str]:
        if (self.distance is None) != (self.reach is None):
            given, absent = ("distance", "reach") if self.reach is None else ("reach", "distance")
            yield f"{absent}: must be there, since {given} is: both are given, or both are drawn"


def recipe_path(dataset: Dataset, roots: Roots) -> Path:
    """Return where a dataset's recipe lies: with its archive, else beside its descriptor, else on this machine.

    Raises
    ------
    MissingError
        When it is in none of them.
    """
    with_archive = roots.archives / dataset.name / PRIVATE / _FILE
    public = roots.find("datasets", dataset.name) / _FILE
    for path in (with_archive, public, own_path(dataset, roots)):
        if path.is_file():
            return path
    msg = f"{dataset.name}: its known deformation's seed is not in {with_archive}; only those who keep the truth can"
    raise MissingError(f"{msg} build it again, and whoever builds it anew draws another seed")


def own_path(dataset: Dataset, roots: Roots) -> Path:
    """Return where the seed lies that this machine drew for a dataset, if it did."""
    return roots.private / dataset.name / _FILE


def is_own(dataset: Dataset, roots: Roots) -> bool:
    """Whether a dataset's deformations are drawn from a seed that this machine alone has."""
    return dataset.warp and recipe_path(dataset, roots) == own_path(dataset, roots)


def is_public(dataset: Dataset, roots: Roots) -> bool:
    """Whether a dataset's recipe lies beside its descriptor, for everybody to read."""
    return any((root / "datasets" / dataset.name / _FILE).is_file() for root in roots.share)


def provide_recipe(dataset: Dataset, roots: Roots) -> None:
    """Draw a seed for a dataset of which nobody keeps one here, and keep it; several builds at once keep one."""
    with suppress(MissingError):
        recipe_path(dataset, roots)
        return
    path = own_path(dataset, roots)
    # More than LEAST_SECRET, whatever is drawn.
    drawn = Recipe(seed=LEAST_SECRET + secrets.randbits(_SECRET_BITS), border="free")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8") as part:
        part.write(dump(drawn))
        part.flush()
        with suppress(FileExistsError):
            os.link(part.name, path)


def read_recipe(path: Path, dataset: Dataset) -> Recipe:
    """Read a recipe and refuse one that could give a deformation that is not one-to-one, or that others could guess.

    Raises
    ------
    InputError
        When ``reach`` is too large for ``distance``, or a secret seed is so short that it is found by trying.
    """
    recipe = load(Recipe, path)
    if PRIVATE in {path.parent.name, path.parent.parent.name} and recipe.seed < LEAST_SECRET:
        msg = (
            f"{path}: seed: must have {len(str(LEAST_SECRET))} digits or more, got {len(str(recipe.seed))}: with the "
            "recorded checksums a shorter one is found by trying; python -c 'import secrets; "
            "print(secrets.randbits(128))' gives one"
        )
        raise InputError(msg)
    if recipe.distance is None or recipe.reach is None:
        return recipe
    most = most_reach(recipe.distance, dataset.dimension)
    if recipe.reach > most:
        msg = f"{path}: reach: must be at most {most:.4g} for a distance of {recipe.distance:g}, got {recipe.reach:g}"
        raise InputError(msg)
    return recipe


def most_reach(distance: float, ndim: int) -> float:
    """Return the most that control points a ``distance`` apart may move without any danger of folding."""
    return MOST_STEEP * distance / STEEPEST[ndim]


def generator(recipe: Recipe, name: str) -> np.random.Generator:
    """Return the random numbers of one case, named ``DATASET:CASE`` and what they are for."""
    key = hashlib.sha256(f"{recipe.seed}:{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(key, "big"))


def is_drawn(entry: str) -> bool:
    """Whether an entry of a case with a known deformation depends on how that is drawn.

    All of the moving side does, and on the fixed side the first set of landmarks, to which points are added.
    """
    name = entry.removeprefix("truth/")
    return name.startswith("moving") or name in {"fixed_landmarks.csv", "deformation.tfm"}
