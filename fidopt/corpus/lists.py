"""What stands beside the datasets: tracks, families, structures and what was screened, checked against the datasets.

Each file is read from every share that has one: an entry of a user's own file takes the place of the packaged entry of
that name, and stands beside the others.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from fidopt.corpus.finding import dataset, dataset_names
from fidopt.descriptors.base import Table, load, shown
from fidopt.descriptors.contradictions import contradictions, given
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.families import Families
from fidopt.descriptors.screening import Screening
from fidopt.descriptors.structures import Structures
from fidopt.descriptors.tracks import Tracks
from fidopt.errors import DescriptorError
from fidopt.resources import Roots

#: Every dataset that has a folder: None where its own descriptor is unsound, which is said when it is read.
Known = Mapping[str, Dataset | None]
#: Given a file and the datasets, what in it does not fit them.
Fit = Callable[[Any, Known], Iterator[str]]
F = TypeVar("F", Tracks, Families, Structures, Screening)

_NONE: tuple[str, ...] = ()


def tracks(roots: Roots) -> Tracks:
    """Return the tracks: the leaderboards over several datasets.

    Raises
    ------
    DescriptorError
        With every problem of tracks.json: a dataset that is unknown, of another task, of a truth that the track does
        not stand for, or registered rigidly beside others that are not; a track with a dataset's name.
    """
    return _read(Tracks, "tracks.json", _tracks_fit, roots)


def families(roots: Roots) -> Families:
    """Return the families: datasets whose development cases choose settings together.

    Raises
    ------
    DescriptorError
        With every problem of families.json: a dataset that is unknown, or of another task than the first.
    """
    return _read(Families, "families.json", _families_fit, roots)


def structures(roots: Roots) -> Structures:
    """Return the structures: where several names mean one, and which are made of others.

    Raises
    ------
    DescriptorError
        With every problem of structures.json: a name that two structures claim, a union in a circle or of a structure
        that neither the file nor a dataset names.
    """
    return _read(Structures, "structures.json", _structures_fit, roots)


def screening(roots: Roots) -> Screening:
    """Return what was decided about the data sets that were examined.

    Raises
    ------
    DescriptorError
        With every problem of screening.json: a dataset that is out and here, or in and not here.
    """
    return _read(Screening, "screening.json", _screening_fits, roots)


def _read(model: type[F], name: str, fit: Fit, roots: Roots) -> F:
    known = _known(roots)
    entries: dict[str, Any] = {}
    for share in reversed(roots.share):
        path = share / "datasets" / name
        if not path.is_file():
            continue
        before = len(entries)
        entries |= load(model, path, also=lambda table: fit(table, known)).root
        merged = model(entries)
        # Two files that are sound by themselves may claim one name for two structures.
        found = list(contradictions(merged, model)) if before else []
        if found:
            raise DescriptorError([f"{shown(path)}, beside the packaged {name}: {problem}" for problem in found])
    return model(entries)


def _known(roots: Roots) -> Known:
    found: dict[str, Dataset | None] = {}
    for name in dataset_names(roots):
        try:
            found[name] = dataset(name, roots)
        except DescriptorError:
            found[name] = None
    return found


def _entries(table: Table[Any]) -> Iterable[tuple[str, Any]]:
    return table.root.items()


def _unknown(name: str, known: Known) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"there is no dataset {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


def _tracks_fit(table: Tracks, known: Known) -> Iterator[str]:
    for name, track in _entries(table):
        if name in known:
            yield f"{name}: is a dataset's name too, so nobody could tell whose leaderboard is meant; choose another"
        described = [(one, known.get(one)) for one in given(track, "datasets", _NONE)]
        for one, found in described:
            if one not in known:
                yield f"{name}.datasets: {_unknown(one, known)}"
            elif found is not None:
                yield from (f"{name}.datasets: {problem}" for problem in _beside(found, track))
        rigid = {one for one, found in described if found is not None and found.registration == "rigid"}
        if rigid and len(rigid) < len(described):
            yield f"{name}.datasets: {', '.join(sorted(rigid))} is registered rigidly, and stands in a track of its own"


def _beside(found: Dataset, track: Any) -> Iterator[str]:  # noqa: ANN401 - a track or its stand-in
    task = given(track, "task", found.task)
    if found.task != task:
        yield f"{found.name} is a {found.task}, and the track's task is {task}"
    made = found.truth.grade in {"automatic", "synthetic"}
    if made and given(track, "truth", None) in {"expert", "semi-automatic"} and given(track, "apart", None) is None:
        yield (
            f"{found.name}'s truth is {found.truth.grade}, and the track stands for truths that people made; "
            f"rank it in a track of that truth, or say in apart why they stand together"
        )


def _families_fit(table: Families, known: Known) -> Iterator[str]:
    for name, members in _entries(table):
        listed = members if isinstance(members, tuple) else ()
        tasks: dict[str, str] = {}
        for one in listed:
            found = known.get(one)
            if one not in known:
                yield f"{name}: {_unknown(one, known)}"
            elif found is not None:
                tasks[found.task] = one
        if len(tasks) > 1:
            said = " and ".join(f"{one} is a {task}" for task, one in tasks.items())
            yield f"{name}: {said}; settings are chosen for one task"


def _structures_fit(table: Structures, known: Known) -> Iterator[str]:
    named = {name for name, _ in _entries(table)}
    for _, structure in _entries(table):
        named |= set(given(structure, "synonyms", _NONE))
    for found in known.values():
        named |= set(found.truth.labels.values()) if found is not None else set()
    for name, structure in _entries(table):
        for part in given(structure, "of", _NONE):
            if part not in named:
                close = difflib.get_close_matches(part, sorted(named), n=1)
                meant = f"; did you mean {close[0]!r}?" if close else ""
                yield f"{name}.of: {part!r} is a structure that neither this file nor a dataset names{meant}"


def _screening_fits(table: Screening, known: Known) -> Iterator[str]:
    for name, screened in _entries(table):
        decision = given(screened, "decision", "")
        if decision == "out" and name in known:
            yield f"{name}.decision: is 'out', and the dataset is here; remove its folder, or decide otherwise"
        if decision in {"in", "apart"} and name not in known:
            yield f"{name}.decision: is {decision!r}, and {_unknown(name, known)}"
