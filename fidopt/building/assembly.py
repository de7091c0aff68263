"""Cases built one after the other, each whole or not at all, taking up where an earlier build stopped."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from fidopt import __version__
from fidopt.alignment.headers import stored_alignment
from fidopt.building.contents import aligned_contents, read_contents
from fidopt.building.deformation import draw, transform_text
from fidopt.building.folding import refuse_folding
from fidopt.building.moved import move
from fidopt.building.prepared import entries, prepare
from fidopt.building.provider import stage
from fidopt.building.recipe import provide_recipe, read_recipe, recipe_path
from fidopt.building.records import (
    BuildRecord,
    entry_digests,
    expected,
    file_digests,
    inputs_digest,
    libraries,
    read_record,
    record_path,
    recorded,
    voxel_digests,
    write_record,
)
from fidopt.building.stores import write_contents
from fidopt.building.unfinished import clear, taken_up
from fidopt.corpus import case_dir, case_names, dataset_folder
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError, OutputExistsError
from fidopt.resources import Roots

Report = Callable[[int, int], None]


#: What became of a case: built now, by going on where an interrupted build stopped, or there already.
Done = Literal["built", "taken up", "kept"]


@dataclass(frozen=True)
class Built:
    """What came of one case.

    Parameters
    ----------
    case
        Its name.
    folder
        Where it lies.
    done
        Whether it was built now, or had been and was kept.
    recorded
        Whether its checksums are those recorded with the dataset: ``match``, ``differ``, or ``none`` are recorded.
    checksums
        Entry -> digest.
    """

    case: str
    folder: Path
    done: Done
    recorded: Literal["match", "differ", "none"]
    checksums: dict[str, str]


def build(
    dataset: Dataset,
    cases: Sequence[str] = (),
    *,
    roots: Roots,
    overwrite: bool = False,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    progress: Report | None = None,
) -> list[Built]:
    """Build a dataset's cases from its provider's files.

    Parameters
    ----------
    dataset
        The dataset.
    cases
        Names of cases, development cases too; all test cases where none is named. A case already built from the
        same inputs is kept.
    roots
        Where archives, descriptors and the corpus lie.
    overwrite
        Whether a case built from other inputs, or by hand, is replaced.
    client
        A Dask client that writes a large dataset's stores; by default threads on this machine's cores.
    progress
        Called with the number of cases done and in all.

    Returns
    -------
    list
        One :class:`Built` a case, in order.

    Raises
    ------
    MissingError, InputError
        When the provider's files are absent, changed or not what the descriptor says.
    OutputExistsError
        When a case is there that was built from something else.
    """
    names = case_names(dataset, cases, development=True)
    if dataset.warp and (overwrite or not all(case_dir(roots, dataset, name).exists() for name in names)):
        provide_recipe(dataset, roots)
    inputs = inputs_digest(dataset, roots)
    todo = [name for name in names if not _kept(dataset, name, inputs, roots=roots, overwrite=overwrite)]
    for name in todo:
        stored_alignment(dataset, name, roots)  # refused before anything is prepared
    place = roots.corpus / dataset.name
    _clear_leftovers(place, [name for name in names if name not in todo])
    resumed: set[str] = set()
    if todo:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".building-{os.getpid()}-", dir=place) as scratch:
            resumed = _build_all(
                dataset, todo, names, Path(scratch), inputs=inputs, roots=roots, client=client, progress=progress
            )
    done: dict[str, Done] = {name: "taken up" if name in resumed else "built" for name in todo}
    return [_result(dataset, name, done.get(name, "kept"), roots) for name in names]


def _build_all(
    dataset: Dataset,
    todo: list[str],
    names: Sequence[str],
    scratch: Path,
    *,
    inputs: str,
    roots: Roots,
    client: Any,  # noqa: ANN401 - distributed is not typed
    progress: Report | None,
) -> set[str]:
    """Build cases, and return those of which an interrupted build had left something."""
    resumed: set[str] = set()
    source = scratch / "source"
    source.mkdir()
    stage(dataset, source, roots=roots)
    script = dataset_folder(dataset.name, roots) / "prepare.py"
    prepared = scratch / "prepared"
    prepare(todo, script=script, source=source, target=prepared)
    done = len(names) - len(todo)
    for name in todo:
        if progress:
            progress(done, len(names))
        with _naming_the_case(prepared / name, f"{dataset.name}/{name}"):
            if dataset.large:
                if _build_large(dataset, name, scratch, inputs=inputs, roots=roots, client=client):
                    resumed.add(name)
            else:
                new = scratch / "built" / name
                _assemble(dataset, name, prepared / name, new, roots=roots)
                _publish(dataset, name, new, scratch, inputs=inputs, roots=roots, client=client)
        shutil.rmtree(prepared / name)
        done += 1
    if progress:
        progress(done, len(names))
    return resumed


def _build_large(dataset: Dataset, name: str, scratch: Path, *, inputs: str, roots: Roots, client: Any) -> bool:  # noqa: ANN401
    """Build one case of a large dataset, or what is left of it to build, and tell whether anything was there."""
    from blocks.journal import KERNELS
    from fidopt.building.large import LargeCase, assemble_large

    made_from = f"{inputs} {KERNELS}"
    source, prepared = scratch / "source", scratch / "prepared" / name
    with taken_up(roots.corpus / dataset.name, name, made_from) as kept:
        new = kept / "case"
        there = new.exists()
        assemble_large(LargeCase(dataset, name, source, prepared, new, kept / "spool", roots, made_from, client))
        _publish(dataset, name, new, scratch, inputs=inputs, roots=roots, client=client)
    return there


def _publish(
    dataset: Dataset,
    name: str,
    new: Path,
    scratch: Path,
    *,
    inputs: str,
    roots: Roots,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> None:
    """Give a case its place and its record."""
    built = BuildRecord(
        fidopt=__version__,
        inputs=inputs,
        files=file_digests(new),
        contents=voxel_digests(new, client=client),
        libraries=libraries(dataset),
        alignment=_alignment(dataset, name, roots),
    )
    final = case_dir(roots, dataset, name)
    if final.exists():
        final.rename(scratch / f"{name}.old")
    # The record first: a case without a folder is built again, a folder without a record would be refused.
    write_record(built, record_path(dataset, name, roots))
    new.rename(final)


@contextmanager
def _naming_the_case(prepared: Path, case: str) -> Iterator[None]:
    """Say of a refused file which case's it is: the folder it was prepared in is gone when the message is read."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(prepared), case)) from error


def _assemble(dataset: Dataset, name: str, prepared: Path, folder: Path, *, roots: Roots) -> None:
    """Make the case's folder from what prepare.py made."""
    contents = read_contents(entries(prepared, dataset), dataset)
    stored = stored_alignment(dataset, name, roots)
    if stored is not None:
        contents = aligned_contents(contents, stored.transform)
    text = None
    if dataset.warp:
        from blocks.image import grid_of

        recipe = read_recipe(recipe_path(dataset, roots), dataset)
        if not {"fixed", "moving"} <= set(contents.images):
            msg = f"{dataset.name}/{name}: a known deformation needs both images"
            raise InputError(msg)
        moving = grid_of(contents.images["moving"])
        key = f"{dataset.name}:{name}"
        deformation = draw(recipe, moving, name=key)
        refuse_folding(deformation.transform, moving)
        contents = move(contents, deformation, recipe, modality=dataset.modalities["fixed"], name=key)
        text = transform_text(deformation.transform)
    write_contents(contents, folder)
    if text is not None:
        (folder / "truth" / "deformation.tfm").write_text(text, encoding="ascii")


def _kept(dataset: Dataset, name: str, inputs: str, *, roots: Roots, overwrite: bool) -> bool:
    """Whether a case is there already as it would be built, or as it is recorded."""
    folder = case_dir(roots, dataset, name)
    if overwrite or not folder.exists():
        return False
    before = read_record(dataset, name, roots)
    if before is None and entry_digests(file_digests(folder)) == _recorded(dataset, name, roots):
        return True
    if before is not None and (before.inputs, before.alignment) == (inputs, _alignment(dataset, name, roots)):
        return True
    why = "from other inputs" if before else "elsewhere, or by hand"
    msg = f"{folder} was built {why}; keep it, or build it again with --overwrite"
    raise OutputExistsError(msg)


def _alignment(dataset: Dataset, name: str, roots: Roots) -> str | None:
    """Return the digest of the transform that a case is aligned by, None where it is taken as delivered."""
    stored = stored_alignment(dataset, name, roots)
    return stored.digest if stored else None


def _recorded(dataset: Dataset, name: str, roots: Roots) -> dict[str, str] | None:
    known = recorded(dataset, name, roots)
    return known.cases[name] if known else None


def _result(dataset: Dataset, name: str, done: Done, roots: Roots) -> Built:
    folder = case_dir(roots, dataset, name)
    built = read_record(dataset, name, roots)
    mine = entry_digests(built.files if built else file_digests(folder))
    theirs = _recorded(dataset, name, roots)
    if theirs is None:
        return Built(name, folder, done, "none", mine)
    return Built(name, folder, done, "match" if expected(dataset, mine, theirs) == mine else "differ", mine)


def _clear_leftovers(place: Path, kept: Sequence[str]) -> None:
    """Remove the scratch folders of builds that were killed, and what is left of cases that are built by now."""
    for name in kept:
        clear(place, name)
    for folder in place.glob(".building-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
