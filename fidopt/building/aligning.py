"""``fidopt align``: the transforms of a dataset's cases, from their prepared images alone, stored with the dataset.

The images are found by their names, ``fixed`` and ``moving``, in the folder that ``prepare.py`` made of a case: what
lies in ``truth/`` is not listed, not opened and not told to anything that aligns.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import xarray as xr

from blocks.image import grid_of
from fidopt.alignment.choice import Found, Tried, align, ladder
from fidopt.alignment.record import AlignmentRecord, record_beside
from fidopt.building.large import opened
from fidopt.building.prepared import prepare
from fidopt.building.provider import stage
from fidopt.building.world import in_unit, regridded
from fidopt.corpus import alignment_path, case_names, dataset_folder
from fidopt.descriptors.alignment import Mode
from fidopt.descriptors.base import dump, load
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, MissingError, OutputExistsError, UsageError
from fidopt.images.atomic import written_whole
from fidopt.images.digest import digest
from fidopt.resources import Roots, packaged_share

Report = Callable[[int, int], None]

#: Counted up when the same images are to be aligned into another transform.
_ALGORITHM = 1
_SIDES: tuple[Literal["fixed", "moving"], ...] = ("fixed", "moving")


@dataclass(frozen=True)
class Aligned:
    """What came of one case.

    Parameters
    ----------
    case
        Its name.
    path
        The ITK transform file.
    done
        Whether it was computed now, or had been from the same images and was kept.
    record
        How it was found.
    """

    case: str
    path: Path
    done: Literal["aligned", "kept"]
    record: AlignmentRecord


def align_cases(
    dataset: Dataset,
    cases: Sequence[str] = (),
    *,
    mode: Mode,
    roots: Roots,
    overwrite: bool = False,
    progress: Report | None = None,
) -> list[Aligned]:
    """Compute and store the transform of each case.

    Parameters
    ----------
    dataset
        The dataset.
    cases
        Names of cases, development cases too; all test and development cases where none is named.
    mode
        How they are aligned.
    roots
        Where archives and descriptors lie.
    overwrite
        Whether a transform made from something else, or by hand, is replaced.
    progress
        Called with the number of cases done and in all.

    Raises
    ------
    UsageError
        When the dataset is not one that the corpus aligns, the mode stores nothing, or its folder is read only.
    OutputExistsError
        When another transform is there.
    MissingError, InputError
        When the provider's files or elastix are absent, or a pair cannot be aligned.
    """
    names = _names(dataset, cases)
    _refuse_nothing_to_store(dataset, mode, roots)
    now = made_from(dataset, mode, roots)
    kept = {name: _kept(dataset, name, now, roots=roots, overwrite=overwrite) for name in names}
    found: dict[str, AlignmentRecord] = {name: record for name, record in kept.items() if record is not None}
    todo = [name for name in names if name not in found]
    for name, fixed, moving in _pairs(dataset, todo, roots, progress=progress):
        with _naming(f"{dataset.name}/{name}"):
            one = align(fixed, moving, mode, modalities=_modalities(dataset))
        found[name] = _write(alignment_path(dataset, name, roots), one, now)
    return [
        Aligned(name, alignment_path(dataset, name, roots), "aligned" if name in todo else "kept", found[name])
        for name in names
    ]


def suggest(
    dataset: Dataset, cases: Sequence[str] = (), *, roots: Roots, progress: Report | None = None
) -> dict[str, tuple[Tried, ...]]:
    """Try the modes on each case, from the least to the most, and store nothing; case -> what came of each mode.

    Raises as :func:`align_cases`.
    """
    tried = {}
    for name, fixed, moving in _pairs(dataset, _names(dataset, cases), roots, progress=progress):
        with _naming(f"{dataset.name}/{name}"):
            tried[name] = ladder(fixed, moving, modalities=_modalities(dataset))
    return tried


def _names(dataset: Dataset, cases: Sequence[str]) -> tuple[str, ...]:
    """Return the cases to align, of a dataset that the corpus aligns."""
    if dataset.task != "registration":
        msg = f"{dataset.name} is a {dataset.task} dataset; the pairs of registration datasets are aligned"
        raise UsageError(msg)
    if dataset.registration == "rigid":
        msg = f"{dataset.name} asks methods for the rigid registration itself; aligned, it would leave nothing to do"
        raise UsageError(msg)
    return case_names(dataset, cases or (*dataset.cases, *dataset.development), development=True)


def _refuse_nothing_to_store(dataset: Dataset, mode: Mode, roots: Roots) -> None:
    if mode == "as-delivered":
        legacy = dataset.alignment.named
        taken = "taken as delivered, which stores no transform; whether that is enough: --suggest"
        how = taken if legacy == mode else f"aligned by {legacy}, which is computed no more; what would do: --suggest"
        msg = f"{dataset.name} is {how}; another mode: --mode"
        raise UsageError(msg)
    folder = dataset_folder(dataset.name, roots).resolve()
    if packaged_share().name == "_share" and packaged_share().resolve() in folder.parents:
        msg = f"{folder} is part of the installed package and is not written; name your own folder with --share"
        raise UsageError(msg)


def _modalities(dataset: Dataset) -> tuple[str, str]:
    return dataset.modalities["fixed"], dataset.modalities["moving"]


def made_from(dataset: Dataset, mode: Mode, roots: Roots) -> str:
    """Return the digest of all that a case's transform depends on, but for the libraries."""
    keys = {"name", "dimension", "unit", "large", "modalities"}
    files = sorted(dataset.source.files.items())
    script = dataset_folder(dataset.name, roots) / "prepare.py"
    if not script.is_file():
        msg = f"{dataset.name}: there is no {script}; a dataset's images are made by its prepare.py"
        raise MissingError(msg)
    texts = [str(_ALGORITHM), mode, dataset.model_dump_json(include=keys), str(files), digest(script)]
    return "sha256:" + hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _kept(dataset: Dataset, name: str, now: str, *, roots: Roots, overwrite: bool) -> AlignmentRecord | None:
    """Return the record of a transform that is there already as it would be made."""
    path = alignment_path(dataset, name, roots)
    if overwrite or not path.exists():
        return None
    beside = record_beside(path)
    before = load(AlignmentRecord, beside) if beside.is_file() else None
    if before is not None and before.made_from == now:
        return before
    why = f"as {before.mode}, or from other images" if before else "by hand, or by another program"
    msg = f"{path} was made {why}; keep it, or make it again with --overwrite"
    raise OutputExistsError(msg)


def _pairs(
    dataset: Dataset, names: Sequence[str], roots: Roots, *, progress: Report | None
) -> Iterator[tuple[str, xr.DataArray, xr.DataArray]]:
    """Yield each case's images as ``prepare.py`` makes them, in the dataset's unit."""
    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="fidopt-prepared-") as scratch:
        source, target = Path(scratch) / "source", Path(scratch) / "prepared"
        source.mkdir()
        stage(dataset, source, roots=roots)
        prepare(names, script=dataset_folder(dataset.name, roots) / "prepare.py", source=source, target=target)
        for done, name in enumerate(names):
            if progress:
                progress(done, len(names))
            with _naming(f"{dataset.name}/{name}", instead_of=str(target / name)):
                fixed, moving = (_image(dataset, target / name, side, source) for side in _SIDES)
            yield name, fixed, moving
        if progress:
            progress(len(names), len(names))


def _image(dataset: Dataset, folder: Path, side: Literal["fixed", "moving"], source: Path) -> xr.DataArray:
    """Return one image of a prepared case."""
    found = sorted(path for path in folder.iterdir() if path.name.split(".")[0] == side)
    if not found:
        msg = f"{folder}: has no {side} image; an alignment is computed from two images"
        raise InputError(msg)
    image = opened(found[0], source, labels=False)
    grid = grid_of(image)
    if grid.ndim != dataset.dimension:
        msg = f"{found[0]}: must have {dataset.dimension} dimensions as dataset.json says, got shape {grid.shape}"
        raise InputError(msg)
    if dataset.large:
        grid = in_unit(image, grid, dataset.unit)
    return regridded(image, grid, unit=dataset.unit)


@contextmanager
def _naming(case: str, *, instead_of: str = "") -> Iterator[None]:
    """Say of a refused image which case's it is."""
    try:
        yield
    except InputError as error:
        said = str(error)
        raise InputError(
            said.replace(instead_of, case) if instead_of in said and instead_of else f"{case}: {said}"
        ) from error


def _write(path: Path, found: Found, now: str) -> AlignmentRecord:
    """Store how a transform was found, then the transform: an interrupted one is not there, and is made again."""
    transform = found.motion.affine()
    record = AlignmentRecord(
        mode=found.mode,
        made_from=now,
        elastix=found.elastix,
        runs=found.runs,
        winner=found.winner,
        matrix=transform.matrix,
        offset=transform.offset,
    )
    path.unlink(missing_ok=True)
    for where, text in ((record_beside(path), dump(record)), (path, found.motion.text())):
        with written_whole(where) as part:
            part.write_text(text, encoding="utf-8")
    return record
