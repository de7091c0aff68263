"""A store under construction: nobody can take it for a finished one, and the next attempt clears it away.

While a store is written its root has no ``zarr.json``. The folder ``.journal`` says that what lies there is a store to
be; it goes when the root's metadata has been put in place, by a rename.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zarr

from blocks.storage import Layout

#: Folder inside a store under construction.
JOURNAL = ".journal"
#: The root's metadata of a store that is all there, before it gets its name.
PARTIAL = ".zarr.json.partial"
#: What shows that a folder is a finished store, and so may be replaced when that is asked for.
_STORE_FILES = ("zarr.json", ".zgroup", ".zarray", ".zattrs")


class StoreExistsError(FileExistsError):
    """Something lies where a store would be written."""


def make_room(where: str, *, overwrite: bool) -> None:
    """Clear the place where a store will be written.

    An unfinished store is cleared away; a finished one where ``overwrite`` says so; anything else never.

    Raises
    ------
    StoreExistsError
        When something else lies there.
    ValueError
        When the place is a URL.
    """
    if "://" in where:
        msg = f"a store is written to a folder on this file system, got {where}; write it there and copy it"
        raise ValueError(msg)
    folder = Path(where)
    if folder.is_symlink():
        msg = f"{where} is a link; name the store itself, {folder.resolve()}, or choose another path"
        raise StoreExistsError(msg)
    around = next((str(p) for p in folder.parents if (p / "zarr.json").is_file() or is_unfinished(str(p))), None)
    if around is not None:
        msg = f"{where} lies inside the store {around}, which would not be one any more; choose another path"
        raise StoreExistsError(msg)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    finished = any((folder / name).exists() for name in _STORE_FILES)
    if not finished and not is_unfinished(where):
        msg = f"{where} exists and is not a store; it is left alone: choose another path"
        raise StoreExistsError(msg)
    if finished and not overwrite:
        msg = f"the store {where} exists; ask to overwrite it, or choose another path"
        raise StoreExistsError(msg)
    # The root's metadata goes first: from here on nobody takes what is left for a store.
    (folder / JOURNAL).mkdir(exist_ok=True)
    with _claimed(where):
        (folder / "zarr.json").unlink(missing_ok=True)
        shutil.rmtree(folder)


def is_unfinished(where: str) -> bool:
    """Whether a store is under construction in a folder, or was when its writer stopped."""
    folder = Path(where)
    return not (folder / "zarr.json").exists() and any((folder / name).exists() for name in (JOURNAL, PARTIAL))


@contextmanager
def construction(where: str, layouts: Sequence[Layout]) -> Iterator[None]:
    """Make the folder of a store to be, note what it will be, and keep other processes out of it meanwhile.

    Raises
    ------
    StoreExistsError
        When another process is writing there.
    """
    journal = Path(where) / JOURNAL
    journal.mkdir(parents=True, exist_ok=True)
    with _claimed(where):
        levels = [{"shape": lay.shape, "shards": lay.shards, "dtype": str(lay.dtype)} for lay in layouts]
        (journal / "header.json").write_text(json.dumps({"levels": levels}, indent=2))
        yield


@contextmanager
def _claimed(where: str) -> Iterator[None]:
    """Hold the journal's lock, which ends with this process however it ends."""
    path = Path(where) / JOURNAL / "lock"
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
    last = _written_root(where, root).replace(Path(where) / PARTIAL)
    shutil.rmtree(Path(where) / JOURNAL)
    last.replace(Path(where) / "zarr.json")


def _written_root(where: str, root: Mapping[str, Any]) -> Path:
    """Return the file of a root's metadata, made in the journal's folder."""
    made = Path(where) / JOURNAL / "root"
    zarr.create_group(str(made), attributes=dict(root), overwrite=True)
    return made / "zarr.json"
