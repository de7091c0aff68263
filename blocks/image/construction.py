"""A store under construction: nobody can take it for a finished one, and the next attempt clears it away.

While a store is written its root has no ``zarr.json``. The folder ``.journal`` says that what lies there is a store to
be; it goes when the root's metadata has been put in place, by a rename.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zarr

from blocks.image.planning import StorePlan

#: Folder inside a store under construction.
JOURNAL = ".journal"
#: What shows that a folder is a store, finished or not, and so may be replaced when that is asked for.
_STORE_FILES = ("zarr.json", ".zgroup", ".zarray", ".zattrs", JOURNAL)


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
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not any((folder / name).exists() for name in _STORE_FILES):
        msg = f"{where} exists and is not a store; it is left alone: choose another path"
        raise StoreExistsError(msg)
    finished = not (folder / JOURNAL).exists() or (folder / "zarr.json").exists()
    if finished and not overwrite:
        msg = f"the store {where} exists; ask to overwrite it, or choose another path"
        raise StoreExistsError(msg)
    # The root's metadata goes first: from here on nobody takes what is left for a store.
    (folder / JOURNAL).mkdir(exist_ok=True)
    (folder / "zarr.json").unlink(missing_ok=True)
    shutil.rmtree(folder)


def begin(where: str, plan: StorePlan) -> None:
    """Make the folder of a store to be, and note what it will be."""
    journal = Path(where) / JOURNAL
    journal.mkdir(parents=True, exist_ok=True)
    levels = [{"shape": lay.shape, "shards": lay.shards, "dtype": str(lay.dtype)} for lay in plan.layouts]
    (journal / "header.json").write_text(json.dumps({"levels": levels}, indent=2))


def publish_root(where: str, root: Mapping[str, Any]) -> None:
    """Put a root's metadata in place, whole, by a rename."""
    made = Path(where) / JOURNAL / "root"
    zarr.create_group(str(made), attributes=dict(root), overwrite=True)
    (made / "zarr.json").replace(Path(where) / "zarr.json")


def finish(where: str, plan: StorePlan) -> None:
    """Publish a store that is completely written, and drop its journal."""
    publish_root(where, plan.root)
    shutil.rmtree(Path(where) / JOURNAL)
