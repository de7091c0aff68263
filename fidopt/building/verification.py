"""Built cases compared, file by file, with the checksums they should have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fidopt.building.explanation import explanation
from fidopt.building.recipe import is_drawn
from fidopt.building.records import (
    BuildRecord,
    by_entry,
    entry_digests,
    expected,
    file_digests,
    read_record,
    recorded,
)
from fidopt.corpus import case_dir, case_names
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import MissingError
from fidopt.resources import Roots

Report = Callable[[int, int], None]
Problem = Literal["differs", "missing", "extra", "rebuilt", "unknown"]

_WORDS: dict[Problem, str] = {
    "differs": "differs from its checksum: the file was changed or is damaged; build the case again with --overwrite",
    "missing": "is missing; build the case again with --overwrite",
    "extra": "is not part of the case; remove it",
    "rebuilt": "is as it was built here, but not the recorded bytes: ",
    "unknown": "has no checksum, recorded or from a build here; build the case",
}


@dataclass(frozen=True)
class Difference:
    """One file of one case that is not what it should be.

    Parameters
    ----------
    case, path
        Where: the path is that of the file in the case's folder, empty for the whole case.
    problem
        ``differs``, ``missing``, ``extra``; ``rebuilt``: intact and not the bytes recorded with the dataset;
        ``unknown``: nothing to compare with.
    why
        Of what is ``rebuilt``: whether the voxels are those recorded, and what was not as when they were recorded.
    """

    case: str
    path: str
    problem: Problem
    why: str = ""

    def __str__(self) -> str:
        return f"{self.case}/{self.path} {_WORDS[self.problem]}{self.why}"


def built_cases(dataset: Dataset, roots: Roots) -> tuple[str, ...]:
    """Return the dataset's cases that were built here, also one whose folder has vanished since."""
    return tuple(
        case
        for case in (*dataset.cases, *dataset.development)
        if case_dir(roots, dataset, case).is_dir() or read_record(dataset, case, roots)
    )


def verify(
    dataset: Dataset, cases: Sequence[str] = (), *, roots: Roots, progress: Report | None = None
) -> list[Difference]:
    """Compare every file of built cases with the recorded checksums, else with those of the build.

    Parameters
    ----------
    dataset
        The dataset.
    cases
        Names of cases; every built one where none is named.

    Returns
    -------
    list
        The differences; empty when there are none.

    Raises
    ------
    MissingError
        When a named case, or any case, is not built.
    """
    built = built_cases(dataset, roots)
    names = case_names(dataset, cases, development=True) if cases else built
    absent = [name for name in names if name not in built]
    if absent or not names:
        what = f"{', '.join(absent)} is not" if absent else "no case is"
        msg = f"{dataset.name}: {what} built in {roots.corpus}; build first: fidopt build {dataset.name}"
        raise MissingError(msg)
    found: list[Difference] = []
    for done, name in enumerate(names):
        if progress:
            progress(done, len(names))
        here = list(_verify_case(dataset, name, recorded(dataset, name, roots), roots))
        # A folder that a missing file has left empty is told of already.
        told = [f"{difference.path}/" for difference in here]
        hollow = (f"{path}/" for path in _hollow(case_dir(roots, dataset, name)))
        fresh = (path for path in hollow if not any(path.startswith(t) or t.startswith(path) for t in told))
        found += [*here, *(Difference(name, path.rstrip("/"), "extra") for path in fresh)]
    return found


def _verify_case(dataset: Dataset, name: str, known: Checksums | None, roots: Roots) -> Iterator[Difference]:
    folder = case_dir(roots, dataset, name)
    if not folder.is_dir():
        yield Difference(name, "", "missing")
        return
    local = read_record(dataset, name, roots)
    have = file_digests(folder)
    entries, mine = entry_digests(have), entry_digests(local.files) if local else {}
    wanted = expected(dataset, mine, known.cases[name]) if known is not None else mine
    if not wanted:
        yield Difference(name, "", "unknown")
        return
    for entry in sorted({*wanted, *entries}):
        if entries.get(entry) == wanted.get(entry):
            continue
        if local is None and entry not in wanted and dataset.warp and is_drawn(entry):
            yield Difference(name, entry, "unknown")
        elif local and entry in mine and entries.get(entry) == mine[entry]:
            explained = explanation(dataset, name, entry, local=local, known=known, roots=roots)
            yield Difference(name, entry, "rebuilt", explained) if entry in wanted else Difference(name, entry, "extra")
        else:
            yield from _inside(name, entry, have, local, known=entry in wanted or entry in mine)


def _hollow(folder: Path) -> list[str]:
    """Return the links to nothing and the empty folders of a case: they hold no byte that a checksum could tell."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if not path.exists() or (path.is_dir() and not any(path.iterdir()))
    )


def _inside(
    name: str, entry: str, have: Mapping[str, str], local: BuildRecord | None, *, known: bool
) -> Iterator[Difference]:
    """Name the files that differ: inside a store too, where the build here noted them."""
    now = by_entry(have).get(entry, {})
    then = by_entry(local.files).get(entry, {}) if local else {}
    if not known or not now or not then:
        yield Difference(name, entry, "extra" if not known else "differs" if now else "missing")
        return
    for path in sorted({*now, *then}):
        if now.get(path) != then.get(path):
            problem: Problem = "missing" if path not in now else "extra" if path not in then else "differs"
            yield Difference(name, f"{entry}/{path}".rstrip("/"), problem)
