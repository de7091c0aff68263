"""What a segmentation or synthesis method wrote for a case: found, read, held against the truth's grid, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import channels_of, grid_of, image_of, open_image
from blocks.kernels.overlap import common_type, distinct
from fidopt.corpus import Case
from fidopt.descriptors.base import load
from fidopt.descriptors.outputs import OutputNames
from fidopt.errors import FidoptError, MissingError, OutputError
from fidopt.images.readers import read_image, refusing
from fidopt.scoring.field import TOLERANCE, said
from fidopt.scoring.structures import Names, meet

#: Endings that an output may have.
ENDINGS = (
    ".nii.gz", ".nii", ".mha", ".mhd", ".nrrd", ".nhdr", ".ome.zarr", ".ome.tif", ".ome.tiff", ".tif", ".tiff", ".png",
)  # fmt: skip
#: What is written for a case, by task.
STEMS = {"segmentation": "labels", "synthesis": "image"}
#: Values below it are looked up in a table as long, which needs no memory beside the map.
_TABLE = 1 << 16
#: The names of a label map's values.
NAMES = "labels.json"


@dataclass(frozen=True)
class Output:
    """What was written for a case, on the truth's grid.

    Parameters
    ----------
    image
        A label map in the dataset's own numbering, or an image; dims ((c,) (z,) y, x), in memory.
    remarks
        What a person should know of how it was read.
    """

    image: xr.DataArray
    remarks: tuple[str, ...] = ()


def find_output(folder: Path, case: Case) -> Path | None:
    """Return where a case's output is, ``<folder>/<case>/labels.*`` or ``image.*``; None where there is none.

    Raises
    ------
    OutputError
        When there are several; the message names them.
    """
    stem = STEMS[case.dataset.task]
    found = [path for ending in ENDINGS if (path := folder / case.name / f"{stem}{ending}").exists()]
    if len(found) > 1:
        msg = f"{case.dataset.name}/{case.name} has several outputs ({', '.join(map(str, found))}); keep one"
        raise OutputError(msg)
    return found[0] if found else None


def truth_path(case: Case) -> Path:
    """Return the store that a case's output is compared with."""
    return case.truth / ("labels.ome.zarr" if case.dataset.task == "segmentation" else "target.ome.zarr")


def truth_grid(case: Case) -> Grid:
    """Return the grid of what a case's output is compared with, on which the output lies too.

    Raises
    ------
    MissingError
        When the case does not hold it.
    """
    path = truth_path(case)
    if not path.is_dir():
        msg = f"{path} is absent, and what was made of the case is compared with it; build the case again: fidopt build"
        raise MissingError(f"{msg} {case.dataset.name} {case.name}")
    return grid_of(open_image(path))


def read_output(path: Path, case: Case, structures: Names) -> Output:
    """Read what was written for a case. Raises OutputError where it cannot be scored; see the two functions below."""
    read = read_labels if case.dataset.task == "segmentation" else read_synthesis
    return read(path, case, structures)


def read_labels(path: Path, case: Case, structures: Names) -> Output:
    """Read a label map and bring its values into the dataset's numbering.

    The values' names stand in ``labels.json`` beside the map, else in the folder above; without one they are the
    dataset's own numbers.

    Parameters
    ----------
    path
        The label map.
    case
        A segmentation case.
    structures
        Where names meet.

    Raises
    ------
    OutputError
        When it cannot be read, lies on another grid, holds what is no whole number or a value without a name, or when
        the names do not fit the dataset.
    """
    grid = truth_grid(case)
    with _refusing():
        labels = read_image(path, labels=True)
        _refuse_off_grid(labels, grid, path)
        voxels = np.asarray(compute(labels))
        names, remarks = _names(path, case)
        meeting = meet(names, case.dataset, structures, where=str(_names_file(path, case) or path))
        remarks += [f"{name!r} is no structure of {case.dataset.name} and is left out" for name in meeting.unasked]
        recoded = _recoded(voxels, meeting.values, name=str(path))
    return Output(image_of(recoded, grid, unit="px", kind="labels"), tuple(remarks))


def read_synthesis(path: Path, case: Case, structures: Names) -> Output:
    """Read an image of the target's modality. ``structures`` plays no part.

    Raises
    ------
    OutputError
        When it cannot be read, lies on another grid, has other channels, or holds what is no finite float32.
    """
    del structures
    grid, target = truth_grid(case), open_image(truth_path(case))
    with _refusing():
        image = read_image(path)
        _refuse_off_grid(image, grid, path)
        voxels = np.asarray(compute(image))
        if voxels.shape != target.shape:
            there, wanted = (channels_of(one) or 1 for one in (image, target))
            msg = f"{path}: the image has {there} channels and the target {wanted}; write as many"
            raise OutputError(msg)
        if voxels.dtype.kind not in "iuf":
            msg = f"{path}: an image holds whole or floating numbers, got {voxels.dtype}; write its intensities"
            raise OutputError(f"{msg} as float32")
        _refuse_beyond(voxels, name=str(path))
        if voxels.dtype.itemsize > 2 and voxels.dtype != np.float32:
            # Types that not every reader knows, of numbers that float64 holds.
            voxels = voxels.astype(np.float64)
    return Output(image_of(voxels, grid, unit="px"))


def empty_labels(case: Case) -> Output:
    """Return the map that a failed segmentation counts as: background everywhere."""
    grid = truth_grid(case)
    return Output(image_of(np.zeros(grid.shape, np.uint8), grid, unit="px", kind="labels"))


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except FidoptError as error:
        raise OutputError(" ".join(str(error).split())) from error


def _refuse_off_grid(image: xr.DataArray, grid: Grid, path: Path) -> None:
    own = grid_of(image)
    if own.ndim != grid.ndim or not own.matches(grid, tolerance=TOLERANCE):
        msg = f"{path}: lies on another grid than the case's image; write it on the image's own: it has {said(own)}"
        raise OutputError(f"{msg}; the image has {said(grid)}")


def _names_file(path: Path, case: Case) -> Path | None:
    """Return the file of a map's names: beside it, or above the case's own folder, where it serves all cases."""
    folder = path.absolute().parent
    places = [folder, folder.parent] if folder.name == case.name else [folder]
    return next((place / NAMES for place in places if (place / NAMES).is_file()), None)


def _names(path: Path, case: Case) -> tuple[dict[int, str], list[str]]:
    """Return the names of a map's values, and what to say of them."""
    file = _names_file(path, case)
    if file is not None:
        return {int(value): name for value, name in load(OutputNames, file).root.items()}, []
    own = {int(value): name for value, name in case.dataset.truth.labels.items()}
    numbers = ", ".join(f"{value} {name}" for value, name in own.items())
    return own, [f"there is no {NAMES}: the values are taken as {case.dataset.name}'s own ({numbers})"]


def _recoded(voxels: npt.NDArray[Any], values: Mapping[int, int], *, name: str) -> npt.NDArray[Any]:
    """Return a map whose values are the dataset's labels, in the smallest type that holds them."""
    with refusing(name):
        plain = common_type(voxels, voxels)[0]
    there = distinct(plain)
    nameless = [int(value) for value in there if int(value) not in values]
    if nameless:
        more = ", ..." if len(nameless) > 8 else ""
        msg = f"{name}: no name is given for the values {', '.join(map(str, nameless[:8]))}{more}; name every"
        raise OutputError(f"{msg} value of the map in {NAMES}")
    widest = max(values.values(), default=0)
    kind = next(one for one in (np.uint8, np.uint16, np.int32, np.int64) if widest <= np.iinfo(one).max)
    keys = np.concatenate(([0], there[there > 0]))
    labels = [0, *(values[int(key)] for key in keys[1:])]
    new = np.array(labels, dtype=kind)
    if keys[-1] >= _TABLE:
        return np.asarray(new[np.searchsorted(keys, plain)])
    table = np.zeros(int(keys[-1]) + 1, dtype=kind)
    table[keys] = new
    return np.asarray(table[plain])


def _refuse_beyond(voxels: npt.NDArray[Any], *, name: str) -> None:
    """Refuse what is not finite, or what no float32 holds: an error of that size has no square."""
    with np.errstate(over="ignore"):
        wrong = np.argwhere(~np.isfinite(voxels.astype(np.float32, copy=False)))
    if wrong.size:
        where = ", ".join(str(int(n)) for n in wrong[0][::-1])
        which = "1 value is" if len(wrong) == 1 else f"{len(wrong)} values are"
        what = "beyond what a float32 holds" if np.isfinite(voxels).all() else "not finite"
        msg = f"{name}: {which} {what}, the first at index ({where}) (x first, from 0); write a number everywhere"
        raise OutputError(msg)
