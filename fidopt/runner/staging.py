"""What a method is handed: copies of a case's images and masks in a folder of the run's own, and never its truth."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from fidopt.corpus import Case
from fidopt.descriptors.dataset import ROLES, Task
from fidopt.descriptors.method import Method


@dataclass(frozen=True)
class Inputs:
    """The files a run reads.

    Parameters
    ----------
    images
        ``fixed`` and ``moving`` of a registration, ``image`` of a segmentation, ``source`` of a synthesis -> file, in
        the order that run.sh takes them.
    masks
        ``fixed_mask``, ``moving_mask`` or ``mask`` -> file, those that the dataset allows and the method takes.
    """

    images: dict[str, Path]
    masks: dict[str, Path] = field(default_factory=dict)

    @property
    def fixed(self) -> Path:
        """The fixed image of a registration."""
        return self.images["fixed"]

    @property
    def moving(self) -> Path:
        """The moving image of a registration."""
        return self.images["moving"]


def given(task: Task) -> tuple[str, ...]:
    """Return the images of a case that a method is given: all but the target of a synthesis, which is its truth."""
    return tuple(role for role in ROLES[task] if role != "target")


def stage(case: Case, method: Method, folder: Path) -> Inputs:
    """Copy the images of a case that a method is given, and the masks it takes, into ``folder``.

    A method that reads OME-Zarr gets the stores as they are, those of a large dataset by hard links where that is
    possible: a copy of a terabyte would take longer than the method, and a symbolic link would show where the truth
    lies. Another gets NIfTI, of a large dataset at the finest level that it can hold.
    """
    allowed = {str(name): path for name, path in case.masks().items() if name in method.masks}
    sources = {role: case.folder / f"{role}.ome.zarr" for role in given(case.dataset.task)}
    images = {name: _copy(path, folder / name, method, case) for name, path in sources.items()}
    return Inputs(images, {name: _copy(path, folder / name, method, case) for name, path in allowed.items()})


def level_for(path: Path, method: Method) -> int:
    """Return the finest level of a store within a method's ``max_voxels`` and ``max_side``, the coarsest if none is."""
    from blocks.image import levels_of

    levels = levels_of(path)
    for number, level in enumerate(levels):
        shape = level.grid.shape
        if math.prod(shape) <= method.max_voxels and (method.max_side is None or max(shape) <= method.max_side):
            return number
    return len(levels) - 1


def _copy(source: Path, target: Path, method: Method, case: Case) -> Path:
    if method.reads == "ome-zarr":
        store = target.with_name(f"{target.name}.ome.zarr")
        shutil.copytree(source, store, copy_function=_linked if case.dataset.large else shutil.copy2)
        return store
    from blocks.image import open_image
    from fidopt.images.nifti import write_nifti

    file = target.with_name(f"{target.name}.nii.gz")
    level = level_for(source, method) if case.dataset.large else 0
    write_nifti(file, open_image(source, level=level))
    return file


def _linked(source: str, target: str) -> str:
    """Give a file a second name, or copy it where it lies on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
