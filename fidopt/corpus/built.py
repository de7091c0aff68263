"""Cases as they lie on disk: what a method may be handed, and what it is scored on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fidopt.descriptors.dataset import ROLES, Dataset, Task
from fidopt.errors import MissingError, UsageError
from fidopt.resources import Roots

if TYPE_CHECKING:
    from blocks.grid import Grid

#: A label map or a set of landmarks on both sides: fixed, moving.
Pair = tuple[Path, Path]


def case_dir(roots: Roots, dataset: Dataset | str, case: str) -> Path:
    """Return the folder of a built case, whether it exists or not."""
    return roots.corpus / (dataset if isinstance(dataset, str) else dataset.name) / case


def case_names(dataset: Dataset, cases: Sequence[str] = (), *, development: bool = False) -> tuple[str, ...]:
    """Return the named cases, or all test cases where none is named.

    Parameters
    ----------
    development
        Whether development cases may be named too: they are built and verified, and have no place among results.

    Raises
    ------
    UsageError
        When a name is not one of the dataset's cases.
    """
    for name in cases:
        if name in dataset.cases or (development and name in dataset.development):
            continue
        msg = f"{dataset.name} has no case {name!r}; its cases are: {', '.join(dataset.cases)}"
        if name in dataset.development:
            msg = f"{dataset.name}/{name} is a development case; its test cases are: {', '.join(dataset.cases)}"
        elif development and dataset.development:
            msg += f"; its development cases: {', '.join(dataset.development)}"
        raise UsageError(msg)
    return tuple(dict.fromkeys(cases)) or tuple(dataset.cases)


def case(dataset: Dataset, name: str, roots: Roots) -> Case:
    """Return a built case.

    Raises
    ------
    UsageError
        When the dataset has no such case.
    MissingError
        When it was not built; the message says how to.
    """
    (name,) = case_names(dataset, [name])
    folder = case_dir(roots, dataset, name)
    if not folder.is_dir():
        msg = f"{dataset.name}/{name} is not built in {roots.corpus}; build it: fidopt build {dataset.name} {name}"
        raise MissingError(msg)
    return Case(dataset, name, folder)


def cases(dataset: Dataset, names: Sequence[str], roots: Roots) -> list[Case]:
    """Return the named built cases, or all where none is named. Raises as :func:`case`."""
    return [case(dataset, name, roots) for name in case_names(dataset, names)]


#: What a case is that holds no image a method could read, by task.
_WITHOUT: dict[Task, str] = {
    "registration": "no images to register: methods cannot run on it, fields made elsewhere can be scored "
    "(fidopt score --fields)",
    "segmentation": "no image to segment: methods cannot run on it, label maps made elsewhere can be compared with it",
    "synthesis": "no source image: methods cannot run on it, images made elsewhere can be compared with it",
}


@dataclass(frozen=True)
class Case:
    """A built case: what a method may be handed beside ``truth/``, what scores it inside.

    Parameters
    ----------
    dataset
        Its dataset.
    name
        Its name.
    folder
        Where it lies.
    """

    dataset: Dataset
    name: str
    folder: Path

    @property
    def fixed(self) -> Path:
        """The fixed image's store (see :attr:`has_images`)."""
        return self.folder / "fixed.ome.zarr"

    @property
    def moving(self) -> Path:
        """The moving image's store (see :attr:`has_images`)."""
        return self.folder / "moving.ome.zarr"

    @property
    def truth(self) -> Path:
        """The folder that no method is given."""
        return self.folder / "truth"

    @property
    def has_images(self) -> bool:
        """Whether every image a method needs is there; a case without can be scored and not run."""
        roles = ROLES[self.dataset.task][: 2 if self.dataset.task == "registration" else 1]
        return all((self.folder / f"{role}.ome.zarr").is_dir() for role in roles)

    def require_images(self) -> None:
        """Refuse to run a method on a case that has no images.

        Raises
        ------
        UsageError
            When an image is absent.
        """
        if not self.has_images:
            msg = f"{self.dataset.name}/{self.name} has {_WITHOUT[self.dataset.task]}"
            raise UsageError(msg)

    def masks(self) -> dict[str, Path]:
        """Return the masks a method may be handed: ``fixed_mask`` or ``moving_mask`` -> store."""
        stores = {mask: self.folder / f"{mask}.ome.zarr" for mask in self.dataset.masks}
        return {mask: path for mask, path in stores.items() if path.is_dir()}

    def label_sets(self) -> dict[str, Pair]:
        """Return the scored label maps: set -> (fixed, moving); the first set, which may be ranked, is ``""``.

        Raises
        ------
        MissingError
            When a set has one side alone, which no build leaves.
        """
        return dict(self._pairs("labels", ".ome.zarr"))

    def landmark_sets(self) -> dict[str, Pair]:
        """Return the landmarks: set -> (fixed, moving) CSV files, the sets as in :meth:`label_sets`. Raises as it."""
        return dict(self._pairs("landmarks", ".csv"))

    def ignore(self) -> dict[str, Path]:
        """Return the regions left out of scoring: ``fixed`` or ``moving`` -> store."""
        stores = {side: self.truth / f"{side}_ignore.ome.zarr" for side in ("fixed", "moving")}
        return {side: path for side, path in stores.items() if path.is_dir()}

    def fixed_grid(self) -> Grid:
        """Return the grid a field lies on: the fixed image's, or its mask's or label map's where there is no image.

        Raises
        ------
        MissingError
            When the case holds no store of the fixed side.
        """
        from blocks.image import grid_of, open_image

        return grid_of(open_image(self._store("fixed")))

    def moving_grid(self) -> Grid:
        """Return the moving image's grid, else its mask's or label map's, else the fixed one's."""
        from blocks.image import grid_of, open_image

        try:
            return grid_of(open_image(self._store("moving")))
        except MissingError:
            return self.fixed_grid()

    def _store(self, side: str) -> Path:
        labels = sorted(self.truth.glob(f"{side}_labels*.ome.zarr"))
        for path in (self.folder / f"{side}.ome.zarr", self.folder / f"{side}_mask.ome.zarr", *labels):
            if path.is_dir():
                return path
        msg = f"{self.folder} holds no image, mask or label map of the {side} side; build the case again"
        raise MissingError(msg)

    def _pairs(self, what: str, suffix: str) -> Iterator[tuple[str, Pair]]:
        both = [*self.truth.glob(f"fixed_{what}*{suffix}"), *self.truth.glob(f"moving_{what}*{suffix}")]
        names = {path.name.split(f"_{what}", 1)[1].removesuffix(suffix) for path in both}
        for rest in sorted(name for name in names if name[:1] in {"", "_"}):
            fixed, moving = (self.truth / f"{side}_{what}{rest}{suffix}" for side in ("fixed", "moving"))
            if absent := [path for path in (fixed, moving) if not path.exists()]:
                msg = f"{absent[0]} is absent, and what is scored needs both sides; build the case again: fidopt build"
                raise MissingError(f"{msg} {self.dataset.name} {self.name}")
            yield rest[1:], (fixed, moving)
