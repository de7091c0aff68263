"""A store under construction: nobody can take it for a finished one, and the next attempt clears it away.

While a store is written its root has no ``zarr.json``. The folder ``.journal`` says that what lies there is a store to
be, and its header what it is made from: the same again takes it up, anything else begins again. It goes when all is
written, and then the root's metadata gets its name.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zarr

#: Folder inside a store under construction.
JOURNAL = ".journal"
#: The root's metadata of a store that is all there, before it gets its name.
PARTIAL = ".zarr.json.partial"
_HEADER, _LOCK = "header.json", "lock"
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
    around = next((str(p) for p in folder.parents if (p / "zarr.json").is_file() or is_unfinished(str(p))), None)
    if around is not None:
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
    if not finished and header is not None and header_of(where) == header:
        return True
    # The root's metadata goes first: from here on nobody takes what is left for a store.
    (folder / JOURNAL).mkdir(exist_ok=True)
    with _claimed(where):
        (folder / "zarr.json").unlink(missing_ok=True)
        shutil.rmtree(folder)
    return False


def is_unfinished(where: str) -> bool:
    """Whether a store is under construction in a folder, or was when its writer stopped."""
    folder = Path(where)
    return not (folder / "zarr.json").exists() and any((folder / name).exists() for name in (JOURNAL, PARTIAL))


def header_of(where: str) -> dict[str, Any] | None:
    """Return what a store under construction is made from; None where nothing, or nothing legible, says it."""
    try:
        header = json.loads((Path(where) / JOURNAL / _HEADER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return header if isinstance(header, dict) else None


def is_ready(where: str) -> bool:
    """Whether every shard of a store under construction is written, and only its name is missing."""
    return (Path(where) / PARTIAL).is_file()


@contextmanager
def construction(where: str, header: Mapping[str, Any]) -> Iterator[None]:
    """Make the folder of a store to be, note what it is made from, and keep other processes out of it meanwhile.

    Raises
    ------
    StoreExistsError
        When another process is writing there.
    """
    journal = Path(where) / JOURNAL
    journal.mkdir(parents=True, exist_ok=True)
    with _claimed(where):
        if header_of(where) != header:
            for stale in journal.iterdir():
                if stale.name != _LOCK:
                    _remove(stale)
            (Path(where) / PARTIAL).unlink(missing_ok=True)
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


def publish_root(where: str, root: Mapping[str, Any]) -> None:
    """Put a root's metadata in place, whole, by a rename."""
    _written_root(where, root).replace(Path(where) / "zarr.json")


def finish(where: str, root: Mapping[str, Any]) -> None:
    """Publish a store that is completely written; its last file appears when nothing else is left to do."""
    journal = Path(where) / JOURNAL
    last = _written_root(where, root).replace(Path(where) / PARTIAL)
    # The header last: whoever is killed before that finds everything written, and only this left to do.
    for part in sorted(journal.iterdir(), key=lambda path: path.name == _HEADER):
        _remove(part)
    journal.rmdir()
    last.replace(Path(where) / "zarr.json")


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
