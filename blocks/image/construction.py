"""A store under construction: nobody can take it for a finished one, and the next attempt clears it away.

While a store is written its root has no ``zarr.json``. The folder ``.journal`` says that what lies there is a store to
be, and its header what it is made from: the same again takes it up, anything else begins again. It goes when all is
written, and then the root's metadata gets its name; until then they lie in a file named by the header's digest, so that
whoever is killed in between finds that nothing else is left to do.

Levels that are written again lie in the journal's folder, ``.journal/levels``, until they are whole: the store has its
old ones meanwhile, and the two are exchanged by renaming.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zarr

#: Folder inside a store under construction.
JOURNAL = ".journal"
#: Folder of levels that will take the place of a store's own.
LEVELS = f"{JOURNAL}/levels"
#: The root's metadata of a store that is all there, before it gets its name: around the digest of its header.
_PARTIAL = (".zarr.json.", ".partial")
_HEADER, _LOCK = "header.json", "lock"
#: Where levels go that are replaced; and the names of all of them, for whoever goes on where this was ended.
_REPLACED, _REPLACING = "replaced", "replacing.json"
#: How often a folder is cleared into which a straggler may still be writing.
_TRIES = 5
#: The object that says the same in an object store.
MARK = f"{JOURNAL}/{_HEADER}"
#: What shows that a folder is a finished store, and so may be replaced when that is asked for.
STORE_FILES = ("zarr.json", ".zgroup", ".zarray", ".zattrs")


class StoreExistsError(FileExistsError):
    """Something lies where a store would be written."""


def make_room(where: str, *, overwrite: bool, header: Mapping[str, Any] | None = None) -> bool:
    """Clear the place where a store will be written, and tell whether it is to be taken up instead.

    An unfinished store with the same header is kept and taken up; any other unfinished one is cleared away; a finished
    one where ``overwrite`` says so; anything else never.

    Raises
    ------
    StoreExistsError
        When something else lies there.
    """
    folder = Path(where)
    if folder.is_symlink():
        msg = f"{where} is a link; name the store itself, {folder.resolve()}, or choose another path"
        raise StoreExistsError(msg)
    if (around := store_around(where)) is not None:
        msg = f"{where} lies inside the store {around}, which would not be one any more; choose another path"
        raise StoreExistsError(msg)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    finished = any((folder / name).exists() for name in STORE_FILES)
    if not finished and not is_unfinished(where):
        msg = f"{where} exists and is not a store; it is left alone: choose another path"
        raise StoreExistsError(msg)
    if finished and not overwrite:
        msg = f"the store {where} exists; ask to overwrite it, or choose another path"
        raise StoreExistsError(msg)
    if not finished and header is not None and (header_of(where) == header or is_ready(where, header)):
        return True
    # The root's metadata goes first: from here on nobody takes what is left for a store.
    (folder / JOURNAL).mkdir(exist_ok=True)
    with _claimed(where):
        (folder / "zarr.json").unlink(missing_ok=True)
        shutil.rmtree(folder)
    return False


def store_around(where: str) -> str | None:
    """Return the store, finished or not, inside which a path lies; None where it lies in none."""
    path = Path(where).absolute()
    # A link on the way may lead into a store that is not named.
    for folder in (*path.parents, *path.parent.resolve().parents, path.parent.resolve()):
        if any((folder / name).is_file() for name in (*STORE_FILES, f"{JOURNAL}/{_LOCK}")):
            return str(folder)
    return None


def is_unfinished(where: str) -> bool:
    """Whether a store is under construction in a folder, or was when its writer stopped."""
    folder = Path(where)
    return not (folder / "zarr.json").exists() and ((folder / JOURNAL).exists() or bool(_partials(where)))


def header_of(where: str) -> dict[str, Any] | None:
    """Return what a store under construction is made from; None where nothing, or nothing legible, says it."""
    try:
        header = json.loads((Path(where) / JOURNAL / _HEADER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return header if isinstance(header, dict) else None


def is_ready(where: str, header: Mapping[str, Any]) -> bool:
    """Whether every shard of the store that a header describes is written, and only its name is missing."""
    return _partial(where, header).is_file()


@contextmanager
def construction(where: str, header: Mapping[str, Any], *, afresh: bool) -> Iterator[None]:
    """Make the folder of a store to be, note what it is made from, and keep other processes out of it meanwhile.

    Parameters
    ----------
    where
        The store's folder.
    header
        What it is made from.
    afresh
        Whether nothing of an earlier attempt is taken up: its journal goes.

    Raises
    ------
    StoreExistsError
        When another process is writing there.
    """
    journal = Path(where) / JOURNAL
    journal.mkdir(parents=True, exist_ok=True)
    with _claimed(where):
        if afresh:
            for stale in (*journal.iterdir(), *_partials(where)):
                if stale.name not in (_LOCK, _REPLACING):
                    _remove(stale)
        if header_of(where) != header:
            made = journal / f"{_HEADER}.partial"
            made.write_text(json.dumps(header, indent=2), encoding="utf-8")
            made.replace(journal / _HEADER)
        yield


@contextmanager
def _claimed(where: str) -> Iterator[None]:
    """Hold the journal's lock, which ends with this process however it ends."""
    path = Path(where) / JOURNAL / _LOCK
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = path.exists() and os.path.samestat(path.stat(), os.fstat(lock.fileno()))
        except BlockingIOError:
            mine = False
        if not mine:
            msg = f"another process is writing {where}; wait for it, or choose another path"
            raise StoreExistsError(msg)
        yield


def abandon(where: str) -> None:
    """Clear away a store under construction of which nothing is worth taking up."""
    for _ in range(_TRIES):
        shutil.rmtree(where, ignore_errors=True)
        if not Path(where).exists():
            return


def finish(where: str, header: Mapping[str, Any], root: Mapping[str, Any]) -> None:
    """Publish a store that is completely written; its last file appears when nothing else is left to do."""
    last = _partial(where, header)
    _written_root(where, root).replace(last)
    _close(where)
    last.replace(Path(where) / "zarr.json")


def finish_levels(
    where: str, header: Mapping[str, Any], root: Mapping[str, Any], *, first: Mapping[str, Any], stale: Sequence[str]
) -> None:
    """Put levels that are completely written in the place of a store's own, and publish it.

    Parameters
    ----------
    where, header
        The store's folder, and what its levels are made from.
    root
        The root's attributes, with the new levels.
    first
        The root's attributes with level 0 alone: what the store shows while folders are renamed.
    stale
        Names of all levels that go, those whose names the new ones take too.
    """
    last, made = _partial(where, header), Path(where) / LEVELS
    going = (set(stale) | set(_replacing(where))) - set(_levels_of(root))
    noted = Path(where, JOURNAL, f"{_REPLACING}.partial")
    noted.write_text(json.dumps(sorted(going)), encoding="utf-8")
    noted.replace(Path(where, JOURNAL, _REPLACING))
    _written_root(where, root).replace(last)
    _written_root(where, first).replace(Path(where) / "zarr.json")
    # Whoever is killed on the way finds here what has not been moved yet.
    new = sorted(made.iterdir()) if made.is_dir() else []
    for name in {path.name for path in new} | going:
        _set_aside(where, name)
        if (made / name).exists():
            (made / name).rename(Path(where) / name)
    _close(where)
    last.replace(Path(where) / "zarr.json")


def _replacing(where: str) -> list[str]:
    """Return the names of the levels that an earlier attempt was replacing."""
    try:
        return [str(name) for name in json.loads(Path(where, JOURNAL, _REPLACING).read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        return []


def _set_aside(where: str, name: str) -> None:
    """Move a level that goes into the journal's folder, by one rename."""
    old, aside = Path(where) / name, Path(where) / JOURNAL / _REPLACED / name
    if old.exists():
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(parents=True, exist_ok=True)
        old.rename(aside)


def _levels_of(root: Mapping[str, Any]) -> list[str]:
    return [str(level["path"]) for level in root["ome"]["multiscales"][0]["datasets"]]


def _close(where: str) -> None:
    """Remove a journal, its header last: whoever is killed before that finds everything written, and this left."""
    journal = Path(where) / JOURNAL
    for part in sorted(journal.iterdir(), key=lambda path: path.name == _HEADER):
        _remove(part)
    journal.rmdir()


def _partial(where: str, header: Mapping[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
    return Path(where) / digest[:16].join(_PARTIAL)


def _partials(where: str) -> list[Path]:
    return list(Path(where).glob(f"{_PARTIAL[0]}*"))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _written_root(where: str, root: Mapping[str, Any]) -> Path:
    """Return the file of a root's metadata, made in the journal's folder."""
    made = Path(where) / JOURNAL / "root"
    zarr.create_group(str(made), attributes=dict(root), overwrite=True)
    return made / "zarr.json"
