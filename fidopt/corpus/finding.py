"""Datasets by name, and where the files beside their descriptors lie."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from fidopt.descriptors.base import load
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import UsageError
from fidopt.resources import Roots


def dataset(name: str, roots: Roots) -> Dataset:
    """Return a dataset's descriptor, from the first share that has it.

    Raises
    ------
    UsageError
        When there is no such dataset; the message lists those there are.
    DescriptorError
        With every problem of its dataset.json.
    """

    def of_its_folder(found: Dataset) -> Iterator[str]:
        if found.name != name:
            yield f"name: must be that of its folder, {name!r}, got {found.name!r}"

    return load(Dataset, dataset_folder(name, roots) / "dataset.json", also=of_its_folder)


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
    return [dataset(name, roots) for name in dataset_names(roots)]


def dataset_names(roots: Roots) -> list[str]:
    """Return the name of every folder that holds a dataset's descriptor, in order."""
    return sorted(path.name for path in roots.each("datasets") if (path / "dataset.json").is_file())


def dataset_folder(name: str, roots: Roots) -> Path:
    """Return the folder that holds a dataset's descriptor, prepare.py and checksums.json."""
    return roots.find("datasets", name)


def alignment_path(dataset: Dataset, case: str, roots: Roots) -> Path:
    """Return where the transform that aligns a case's moving image is stored, whether it exists or not."""
    return dataset_folder(dataset.name, roots) / "alignment" / f"{case}.tfm"


def checksums(name: str, roots: Roots, *, development: bool = False) -> Checksums | None:
    """Return the recorded checksums of a dataset's test (or development) cases, or None where none were recorded."""
    path = checksums_path(name, roots, development=development)
    return load(Checksums, path) if path.is_file() else None


def checksums_path(name: str, roots: Roots, *, development: bool = False) -> Path:
    """Return where a dataset's checksums are recorded, whether they are or not."""
    return dataset_folder(name, roots) / ("checksums_development.json" if development else "checksums.json")
