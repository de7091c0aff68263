"""What was built here, file by file, and how it stands to the checksums recorded with the dataset."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import Field

from fidopt import __version__
from fidopt.building.recipe import is_drawn, is_own, recipe_path
from fidopt.corpus import alignment_path, case_dir, checksums, checksums_path, dataset_folder
from fidopt.descriptors.base import Digest, File, Text, dump, load
from fidopt.descriptors.checksums import BuiltWith, Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import MissingError, UsageError
from fidopt.images.atomic import written_whole
from fidopt.images.digest import digest, files
from fidopt.resources import Roots, packaged_share

#: Counted up when the same inputs are to be built into other bytes.
_LAYOUT = 1
#: What ends the name of a folder that is one entry of the checksums.
_STORE = ".ome.zarr"
#: What reads, computes and writes images: another version of one of them may give other bytes.
_LIBRARIES = (
    "SimpleITK",
    "h5py",
    "imagecodecs",
    "nibabel",
    "numba",
    "numcodecs",
    "numpy",
    "scipy",
    "tifffile",
    "zarr",
)


class BuildRecord(File):
    """Written beside a case when it is built: from what, and every file it holds.

    Parameters
    ----------
    fidopt
        The version that built it.
    inputs
        Digest of all that it was built from; another one means that it is out of date.
    files
        Path in the case -> digest, the files inside stores too.
    contents
        Store -> digest of its voxels (:func:`voxel_digests`).
    libraries
        Versions of what wrote them (:func:`libraries`).
    alignment
        Digest of the transform that its moving side was moved by, None where it was taken as delivered.
    """

    fidopt: Text
    inputs: Digest
    files: dict[str, Digest]
    contents: dict[str, Digest] = Field(default_factory=dict)
    libraries: dict[Text, Text] = Field(default_factory=dict)
    alignment: Digest | None = None


def record_path(dataset: Dataset, case: str, roots: Roots) -> Path:
    """Return where a built case's record lies, outside the case's folder."""
    return case_dir(roots, dataset, case).parent / ".built" / f"{case}.json"


def read_record(dataset: Dataset, case: str, roots: Roots) -> BuildRecord | None:
    """Return a built case's record, or None where it was built elsewhere."""
    path = record_path(dataset, case, roots)
    return load(BuildRecord, path) if path.is_file() else None


def write_record(record: BuildRecord, path: Path) -> None:
    """Write a record, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(dump(record), encoding="utf-8")
    partial.replace(path)


def inputs_digest(dataset: Dataset, roots: Roots) -> str:
    """Return the digest of what a dataset's cases are built from: descriptor, prepare.py, sources, deformation."""
    keys = {"name", "task", "dimension", "unit", "masks", "warp", "other_labels", "source"}
    texts = [str(_LAYOUT), dataset.model_dump_json(include=keys)]
    texts += [str(sorted(dataset.truth.labels.items()))]
    script = dataset_folder(dataset.name, roots) / "prepare.py"
    if not script.is_file():
        msg = f"{dataset.name}: there is no {script}; a dataset is built by its prepare.py"
        raise MissingError(msg)
    texts += [digest(script)]
    texts += [digest(recipe_path(dataset, roots))] if dataset.warp else []
    if dataset.large:
        # The images of a large dataset are resampled, so that its alignment is part of what it is built from.
        stored = [alignment_path(dataset, case, roots) for case in dataset.cases]
        texts += ["large", dataset.alignment.mode, *(digest(path) for path in stored if path.is_file())]
    return "sha256:" + hashlib.sha256("\n".join(texts).encode()).hexdigest()


def file_digests(folder: Path) -> dict[str, str]:
    """Return path -> digest of every file below a folder."""
    return {path.relative_to(folder).as_posix(): digest(path) for path in files(folder)}


def by_entry(digests: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Group files by the entry of the checksums they belong to: a store is one, another file is its own."""
    grouped: dict[str, dict[str, str]] = {}
    for path, value in digests.items():
        store, inside, rest = path.partition(f"{_STORE}/")
        entry = store + _STORE if inside else path
        grouped.setdefault(entry, {})[rest if inside else ""] = value
    return grouped


def entry_digests(digests: Mapping[str, str]) -> dict[str, str]:
    """Return entry -> digest, as checksums.json has them, from the digests of the files."""
    return {entry: _joined(inside) for entry, inside in sorted(by_entry(digests).items())}


def _joined(inside: Mapping[str, str]) -> str:
    if set(inside) == {""}:
        return inside[""]
    lines = sorted(f"{value.removeprefix('sha256:')}  {path}\n" for path, value in inside.items())
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()


def voxel_digests(folder: Path, *, client: Any = None) -> dict[str, str]:  # noqa: ANN401 - distributed is not typed
    """Return store -> digest of its voxels and type of a built case; a store that tells nothing has none."""
    from fidopt.images.voxels import voxel_digest  # reads images, and loads what that needs

    stores = sorted(path for place in (folder, folder / "truth") for path in place.glob(f"*{_STORE}"))
    digests = {path.relative_to(folder).as_posix(): voxel_digest(path, client=client) for path in stores}
    return {entry: value for entry, value in digests.items() if value is not None}


def libraries(dataset: Dataset) -> dict[str, str]:
    """Return the installed versions of what reads, computes and writes a dataset's cases."""
    carriers = {package.distribution for package in dataset.source.packages.values()}
    found = {"python": platform.python_version()}
    for name in sorted({*_LIBRARIES, *carriers}):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def recorded(dataset: Dataset, case: str, roots: Roots) -> Checksums | None:
    """Return the recorded checksums that hold a case, a test case's or a development case's; None where none do."""
    known = checksums(dataset.name, roots, development=case in dataset.development)
    return known if known is not None and case in known.cases else None


def expected(dataset: Dataset, mine: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the checksums that a built case should have: those recorded, else of what a seed draws its own.

    Parameters
    ----------
    mine, known
        Entry -> digest: of the case as it was built here, and as it is recorded with the dataset.
    """
    drawn = {entry: value for entry, value in mine.items() if dataset.warp and is_drawn(entry)}
    return drawn | dict(known)


def record(dataset: Dataset, built: Mapping[str, Mapping[str, str]], *, roots: Roots) -> Path:
    """Record the checksums of built cases in the dataset's folder, beside those of its other cases.

    Test cases go to checksums.json, development cases to checksums_development.json. What a seed draws that this
    machine alone has is left out: nobody else could build it.

    Parameters
    ----------
    built
        Case -> entry -> digest.

    Returns
    -------
    Path
        The file written, checksums.json where both were.

    Raises
    ------
    UsageError
        When the dataset's folder is the installed package's, which is read only.
    """
    folder = dataset_folder(dataset.name, roots)
    if packaged_share() in folder.parents and packaged_share().name == "_share":
        msg = f"{folder} is part of the installed package and is not written; name your own folder with --share"
        raise UsageError(msg)
    written = checksums_path(dataset.name, roots)
    for development, known in ((True, dataset.development), (False, tuple(dataset.cases))):
        chosen = {case: built[case] for case in known if case in built}
        if chosen:
            written = checksums_path(dataset.name, roots, development=development)
            before = checksums(dataset.name, roots, development=development)
            document = _merged(before, dataset, chosen, order=known, roots=roots)
            with written_whole(written) as partial:
                partial.write_text(dump(document), encoding="utf-8")
    return written


def _merged(
    before: Checksums | None,
    dataset: Dataset,
    chosen: Mapping[str, Mapping[str, str]],
    *,
    order: Sequence[str],
    roots: Roots,
) -> Checksums:
    """Return what was recorded with some cases put in place of what was recorded of them."""
    own = is_own(dataset, roots)

    def of_everybody(entries: Mapping[str, str]) -> dict[str, str]:
        return {entry: value for entry, value in entries.items() if not (own and is_drawn(entry))}

    cases = {**(before.cases if before else {}), **{case: of_everybody(chosen[case]) for case in chosen}}
    voxels = {**(before.contents if before else {})}
    by = {case: tuple(sorted(before.libraries(case).items())) for case in cases} if before else {}
    for case in chosen:
        local = read_record(dataset, case, roots)
        noted = local.contents if local and local.contents else voxel_digests(case_dir(roots, dataset, case))
        voxels[case] = of_everybody(noted)
        by[case] = tuple(sorted(local.libraries.items())) if local else ()
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for case in order:
        if case in cases and by.get(case):
            groups.setdefault(by[case], []).append(case)
    return Checksums(
        fidopt=__version__,
        cases={case: cases[case] for case in order if case in cases},
        contents={case: voxels[case] for case in order if case in cases and voxels.get(case)},
        built_with=tuple(BuiltWith(libraries=dict(of), cases=tuple(those)) for of, those in groups.items()),
    )
