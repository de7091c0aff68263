"""The corpus: its datasets, their cases on disk, and the licences that let a dataset onto a leaderboard."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fidopt.descriptors.base import load, shown
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import ROLES, Dataset
from fidopt.errors import DescriptorError, MissingError, UsageError
from fidopt.resources import Roots

if TYPE_CHECKING:
    from blocks.grid import Grid

#: Open licences of data that allow commercial use, by SPDX identifier: every part of a dataset's ``spdx`` must be one
#: for the dataset to enter an official leaderboard or a public release.
LICENCES = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC-BY-2.0",
        "CC-BY-2.5",
        "CC-BY-3.0",
        "CC-BY-4.0",
        "CC-BY-SA-3.0",
        "CC-BY-SA-4.0",
        "CC0-1.0",
        "CDLA-Permissive-1.0",
        "CDLA-Permissive-2.0",
        "ISC",
        "MIT",
        "ODC-By-1.0",
        "PDDL-1.0",
        "Unlicense",
        "Zlib",
    }
)

#: A label map or a set of landmarks on both sides: fixed, moving.
Pair = tuple[Path, Path]


def is_open(spdx: str) -> bool:
    """Whether every part of a licence expression is one of :data:`LICENCES`.

    Only identifiers joined by ``AND`` are taken apart: where terms can be chosen with ``OR``, or an exception is made
    with ``WITH``, the answer is no, since guessing wrong would publish what may not be.
    """
    parts = spdx.replace("(", " ").replace(")", " ").split()
    return bool(parts) and all(part in LICENCES for part in parts if part != "AND") and parts[0] != "AND"


def dataset(name: str, roots: Roots) -> Dataset:
    """Return a dataset's descriptor, from the first share that has it.

    Raises
    ------
    UsageError
        When there is no such dataset; the message lists those there are.
    DescriptorError
        With every problem of its dataset.json.
    """
    path = dataset_folder(name, roots) / "dataset.json"
    found = load(Dataset, path)
    if found.name != name:
        raise DescriptorError([f"{shown(path)}: name: must be that of its folder, {name!r}, got {found.name!r}"])
    return found


def filled(dataset: Dataset, *, apart_from: Collection[str] = ()) -> Dataset:
    """Return a dataset whose descriptor leaves nothing open that is needed.

    Parameters
    ----------
    apart_from
        Keys of ``to_fill`` that may be open.

    Raises
    ------
    UsageError
        When its descriptor leaves another key to fill; the message names them.
    """
    missing = [key for key in dataset.to_fill if key not in apart_from]
    if missing:
        msg = (
            f"{dataset.name} is described and not filled yet: its dataset.json leaves open {', '.join(missing)}; "
            f"fill them in and take them out of to_fill"
        )
        raise UsageError(msg)
    return dataset


def datasets(roots: Roots) -> list[Dataset]:
    """Return every dataset's descriptor, in the order of their names."""
    folders = (path for path in roots.each("datasets") if (path / "dataset.json").is_file())
    return [dataset(name, roots) for name in sorted(path.name for path in folders)]


def dataset_folder(name: str, roots: Roots) -> Path:
    """Return the folder that holds a dataset's descriptor, prepare.py and checksums.json."""
    return roots.find("datasets", name)


def alignment_path(dataset: Dataset, case: str, roots: Roots) -> Path:
    """Return where the transform that aligns a case's moving image is stored, whether it exists or not."""
    return dataset_folder(dataset.name, roots) / "alignment" / f"{case}.tfm"


def checksums(name: str, roots: Roots) -> Checksums | None:
    """Return the recorded checksums of a dataset, or None where none were recorded."""
    path = dataset_folder(name, roots) / "checksums.json"
    return load(Checksums, path) if path.is_file() else None


def case_dir(roots: Roots, dataset: Dataset | str, case: str) -> Path:
    """Return the folder of a built case, whether it exists or not."""
    return roots.corpus / (dataset if isinstance(dataset, str) else dataset.name) / case


def case_names(dataset: Dataset, cases: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the named cases, or all test cases where none is named.

    Raises
    ------
    UsageError
        When a name is not one of the dataset's cases.
    """
    for name in cases:
        if name not in dataset.cases:
            msg = f"{dataset.name} has no case {name!r}; its cases are: {', '.join(dataset.cases)}"
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
            msg = (
                f"{self.dataset.name}/{self.name} has no images to register: methods cannot run on it, "
                f"fields made elsewhere can be scored (fidopt score --fields)"
            )
            raise UsageError(msg)

    def masks(self) -> dict[str, Path]:
        """Return the masks a method may be handed: ``fixed_mask`` or ``moving_mask`` -> store."""
        stores = {mask: self.folder / f"{mask}.ome.zarr" for mask in self.dataset.masks}
        return {mask: path for mask, path in stores.items() if path.is_dir()}

    def label_sets(self) -> dict[str, Pair]:
        """Return the scored label maps: set -> (fixed, moving); the first set, which may be ranked, is ``""``."""
        return dict(self._pairs("labels", ".ome.zarr"))

    def landmark_sets(self) -> dict[str, Pair]:
        """Return the landmarks: set -> (fixed, moving) CSV files; the first set, which may be ranked, is ``""``."""
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
        start = f"fixed_{what}"
        for fixed in sorted(self.truth.glob(f"{start}*{suffix}"), key=lambda path: path.name.removesuffix(suffix)):
            rest = fixed.name[len(start) : -len(suffix)]
            moving = self.truth / f"moving_{what}{rest}{suffix}"
            if rest[:1] in {"", "_"} and moving.exists():
                yield rest[1:], (fixed, moving)
