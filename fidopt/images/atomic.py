"""A file that appears whole or not at all."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fidopt.errors import UsageError


def refuse_inside_store(path: str | Path) -> None:
    """Refuse to write into an OME-Zarr store: its digest would change, and it may be taken for damaged.

    Raises
    ------
    UsageError
        When the path lies in a store, finished or under construction.
    """
    # The engine is loaded only by what writes.
    from blocks.image.construction import store_around

    where = str(path).removeprefix("file://")
    if "://" not in where and (store := store_around(where)) is not None:
        msg = f"{path} lies inside the OME-Zarr store {store}, which holds its own files alone; write it elsewhere"
        raise UsageError(msg)


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a path to write to; the file takes its own name when the block ends, and goes when it fails.

    The name written to keeps the endings, since libraries choose a format by them.

    Raises
    ------
    UsageError
        When the path lies inside a store.
    """
    where = Path(path)
    refuse_inside_store(where)
    where.parent.mkdir(parents=True, exist_ok=True)
    host = socket.gethostname()
    part = where.with_name(f".{host}-{os.getpid()}.{where.name}")
    _clear_leftovers(where, host)
    try:
        yield part
        part.replace(where)
    except OSError as error:
        if str(error.filename) == str(part):
            error.filename, error.filename2 = str(where), None
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _clear_leftovers(where: Path, host: str) -> None:
    """Remove what processes of this host that are no more were writing under this name when they were killed."""
    named = re.compile(rf"(?:\.{re.escape(host)}-(\d+)\.)+{re.escape(where.name)}")
    for path in where.parent.iterdir():
        if (found := named.fullmatch(path.name)) and not is_alive(int(found[1])):
            with suppress(OSError):
                path.unlink()


def is_alive(pid: int) -> bool:
    """Whether a process of this host is still there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
