"""The anatomy that a synthesis keeps: what one segmentation method finds in the synthetic and in the real image.

``truth.geometry`` names the method, one of ``methods/`` whose run.sh takes an image. What it finds is a program's
reading of either image: its Dice and distances are shown, and rank nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from blocks.execute import compute
from blocks.execute.computing import thread_count
from blocks.image import grid_of, image_of, open_image
from fidopt.corpus import Case
from fidopt.descriptors.base import load
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.outputs import OutputNames
from fidopt.errors import FidoptError, InputError, MissingError
from fidopt.images.nifti import write_nifti
from fidopt.images.readers import read_image
from fidopt.resources import Roots
from fidopt.scoring.outputs import NAMES, truth_path

if TYPE_CHECKING:
    from fidopt.runner.methods import Chosen


@dataclass(frozen=True)
class Anatomy:
    """What was found in the synthetic and in the real image, in one numbering.

    Parameters
    ----------
    output, target
        Label maps on one grid.
    labels
        Number in both -> the structure's name: every structure that either holds.
    """

    output: xr.DataArray
    target: xr.DataArray
    labels: Mapping[int, str]


@dataclass(frozen=True)
class Anatomist:
    """A segmentation method that is ready to run.

    Parameters
    ----------
    chosen, environment
        The method, and where its environment lies.
    modality, dimension, unit
        Of the images it is given.
    """

    chosen: Chosen
    environment: Path
    modality: str
    dimension: int
    unit: str

    def compare(self, case: Case, image: xr.DataArray) -> Anatomy:
        """Segment a synthetic image and the real one of its case.

        Raises
        ------
        MissingError
            When the method does not end well; the message ends with the last line it wrote.
        InputError
            When what it wrote is not a label map on the image's grid with a name for every value.
        """
        found = [self.segment(one) for one in (image, open_image(truth_path(case)))]
        names = sorted({name for _, named in found for name in named.values()})
        numbers = {name: number for number, name in enumerate(names, start=1)}
        maps = [_renumbered(labels, named, numbers) for labels, named in found]
        return Anatomy(maps[0], maps[1], {number: name for name, number in numbers.items()})

    def segment(self, image: xr.DataArray) -> tuple[xr.DataArray, dict[int, str]]:
        """Return what the method finds in an image: a label map on its grid, and the names of the values in it."""
        with tempfile.TemporaryDirectory(prefix="fidopt-anatomy-") as scratch:
            folder = Path(scratch).resolve()
            for name in ("inputs", "output", "work", "tmp"):
                (folder / name).mkdir()
            write_nifti(folder / "inputs" / "image.nii.gz", image)
            self._run(folder)
            labels = read_image(folder / "output" / "labels.nii.gz", labels=True)
            labels = labels.copy(data=np.asarray(compute(labels)))
            names = {int(v): name for v, name in load(OutputNames, folder / "output" / NAMES).root.items()}
        if not grid_of(labels).matches(grid_of(image)):
            msg = f"{self.chosen.name} wrote labels.nii.gz on another grid than its image's"
            raise InputError(msg)
        there = {int(value) for value in np.unique(labels.values)} - {0}
        if there - set(names):
            msg = f"{self.chosen.name} wrote values that its {NAMES} does not name: {sorted(there - set(names))[:8]}"
            raise InputError(msg)
        return labels, {value: name for value, name in names.items() if value in there}

    def _run(self, folder: Path) -> None:
        from fidopt.runner.case import SEED
        from fidopt.runner.process import CannotStartError, environment, supervise

        method = self.chosen.method
        threads = min(method.threads or thread_count(), thread_count())
        variant = method.variants[self.chosen.variant].settings if self.chosen.variant else {}
        told = {
            "FIDOPT_MODALITY": self.modality,
            "FIDOPT_DIMENSION": str(self.dimension),
            "FIDOPT_UNIT": self.unit,
            "FIDOPT_THREADS": str(threads),
            "FIDOPT_SEED": str(SEED),
            "FIDOPT_DEVICE": "cuda:0" if method.device == "cuda" else "cpu",
            "FIDOPT_VARIANT": self.chosen.variant or "",
            "FIDOPT_SETTINGS": json.dumps(variant, sort_keys=True),
            "FIDOPT_ENV": str(self.environment),
            "TMPDIR": str(folder / "tmp"),
        }
        script = self.chosen.folder.resolve() / "run.sh"
        try:
            outcome = supervise(
                ["bash", str(script), str(folder / "inputs" / "image.nii.gz"), str(folder / "output")],
                variables=environment(told, threads=threads),
                folder=folder / "work",
                log=folder / "run.log",
                timeout_s=method.timeout_s,
            )
        except CannotStartError as error:
            msg = f"{self.chosen.name}: run.sh cannot be started: {error}"
            raise MissingError(msg) from error
        if outcome.timed_out or outcome.returncode != 0:
            last = (outcome.log.strip().splitlines() or ["it said nothing"])[-1].strip()
            msg = f"{self.chosen.name} did not segment the image: {last}"
            raise MissingError(msg)


def anatomist(dataset: Dataset, roots: Roots, *, say: Callable[[str], None]) -> Anatomist:
    """Return the method that a synthesis dataset's ``truth.geometry`` names, its environment made where it was not.

    Raises
    ------
    UsageError
        When there is no such method.
    MissingError
        When its environment or its weights cannot be had, in one line.
    InputError
        When the method named is no segmentation.
    """
    from fidopt.runner import environment, methods

    chosen = methods.find(str(dataset.truth.geometry), roots)
    if "segmentation" not in chosen.method.tasks:
        msg = f"{dataset.name}: truth.geometry names {chosen.name}, which does {' and '.join(chosen.method.tasks)};"
        raise InputError(f"{msg} name a method that segments")
    where = environment.ensure(chosen.method, chosen.folder, roots, say=say)
    return Anatomist(chosen, where, dataset.modalities["target"], dataset.dimension, dataset.unit)


def anatomy_or_reason(method: Anatomist | FidoptError, case: Case, image: xr.DataArray) -> Anatomy | str:
    """Return what a method found in an image and in the real one, or why it could not look."""
    if isinstance(method, FidoptError):
        return " ".join(str(method).split())
    try:
        return method.compare(case, image)
    except FidoptError as error:
        return " ".join(str(error).split())


def _renumbered(labels: xr.DataArray, named: Mapping[int, str], numbers: Mapping[str, int]) -> xr.DataArray:
    keys = np.array([0, *sorted(named)], dtype=np.int64)
    values = np.array([0, *(numbers[named[int(key)]] for key in keys[1:])], dtype=np.int32)
    recoded = values[np.searchsorted(keys, labels.values.astype(np.int64))]
    return image_of(recoded, grid_of(labels), unit="px", kind="labels")
