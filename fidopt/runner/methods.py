"""The methods there are, and which of them a dataset may be given to."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from fidopt.descriptors.base import load
from fidopt.descriptors.dataset import ROLES, Dataset
from fidopt.descriptors.method import Method
from fidopt.errors import DescriptorError, UsageError
from fidopt.resources import Roots


@dataclass(frozen=True)
class Chosen:
    """A method, where it lies, and the settings it is run with.

    Parameters
    ----------
    method, folder
        Its descriptor and its folder.
    variant
        The name of its settings, or None for its defaults.
    """

    method: Method
    folder: Path
    variant: str | None = None

    @property
    def name(self) -> str:
        """The line's name: ``METHOD`` or ``METHOD@VARIANT``."""
        return self.method.name if self.variant is None else f"{self.method.name}@{self.variant}"


def find(name: str, roots: Roots) -> Chosen:
    """Return the method that ``METHOD`` or ``METHOD@VARIANT`` names.

    Raises
    ------
    UsageError
        When there is no such method or variant; the message lists those there are.
    DescriptorError
        With every problem of its method.json.
    """
    base, at, variant = name.partition("@")
    folder = roots.find("methods", base)
    path = folder / "method.json"
    method = load(Method, path)
    if method.name != base:
        raise DescriptorError([f"{path}: name: must be that of its folder, {base!r}, got {method.name!r}"])
    if at and variant not in method.variants:
        known = ", ".join(method.variants) or "none"
        msg = f"{base} has no variant {variant!r}; its variants are: {known}"
        raise UsageError(msg)
    return Chosen(method, folder, variant or None)


def known(roots: Roots) -> list[Chosen]:
    """Return every method at its defaults, in the order of their names."""
    folders = (path for path in roots.each("methods") if (path / "method.json").is_file())
    return [find(name, roots) for name in sorted(path.name for path in folders)]


def refuse_unfit(chosen: Chosen, dataset: Dataset) -> None:
    """Refuse to run a method that has no script, or on a dataset it does not take.

    Raises
    ------
    UsageError
        When there is no run.sh, or the task, the dimension, a modality or a rigid registration is not the method's.
    """
    method = chosen.method
    if not (chosen.folder / "run.sh").is_file():
        msg = f"{chosen.folder} has no run.sh, the script that runs the method; write it, or fetch the method whole"
        raise UsageError(msg)
    if dataset.task not in method.tasks:
        msg = f"{method.name} does {' and '.join(method.tasks)}; {dataset.name} is a {dataset.task}"
        raise UsageError(msg)
    if dataset.dimension not in method.dimensions:
        taken = " and ".join(f"{n}D" for n in method.dimensions)
        msg = f"{method.name} takes {taken} images; {dataset.name} is {dataset.dimension}D"
        raise UsageError(msg)
    given = [dataset.modalities[role] for role in ROLES[dataset.task] if role != "target"]
    missing = sorted(set(given) - set(method.modalities)) if "*" not in method.modalities else []
    if missing:
        msg = f"{method.name} takes {', '.join(method.modalities)}; {dataset.name} has {', '.join(missing)}"
        raise UsageError(msg)
    if dataset.registration == "rigid" and not method.rigid:
        msg = f"{method.name} has no rigid stage of its own; {dataset.name} is registered rigidly"
        raise UsageError(msg)


def folder_digest(folder: Path, *, aside: Container[str]) -> str:
    """Return the digest of the files of a method's folder, hidden ones and those named ``aside`` left out."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        name = path.relative_to(folder).as_posix()
        if name not in aside and not path.name.startswith("."):
            digest.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n".encode())
    return f"sha256:{digest.hexdigest()}"
