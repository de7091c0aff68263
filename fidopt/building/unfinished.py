"""Where a large case is built: a folder that stays where a build was interrupted, and that the next one takes up."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fidopt.errors import FidoptError, OutputExistsError

_LOCK = "lock"


@contextmanager
def taken_up(place: Path, case: str, made_from: str) -> Iterator[Path]:
    """Give the folder in which a case is built, with what an interrupted build from the same left in it.

    It goes when the block ends and when the case is refused, which it would be again. Whatever else ends the block, a
    signal or a full disk, leaves it.

    Parameters
    ----------
    place
        The dataset's folder in the corpus.
    case
        The case's name.
    made_from
        What stands for all that it is built from; what was left of anything else is cleared away.

    Raises
    ------
    OutputExistsError
        When another process is building the case.
    """
    folder = place / f"{_stem(case)}-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"
    clear(place, case, but=folder)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder) as mine:
        if not mine:
            msg = f"another process is building {place.name}/{case}; wait for it"
            raise OutputExistsError(msg)
        try:
            yield folder
        except FidoptError:
            shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def clear(place: Path, case: str, *, but: Path | None = None) -> None:
    """Remove what interrupted builds of a case left and no process is at work in, one folder excepted."""
    for folder in place.glob(f"{_stem(case)}-*"):
        if folder.name.rpartition("-")[0] == _stem(case) and folder != but:
            with _locked(folder) as mine:
                if mine:
                    shutil.rmtree(folder)


def _stem(case: str) -> str:
    return f".unfinished-{case}"


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Tell whether this process has a folder to itself; the lock ends with the process however it ends."""
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it may have removed the folder meanwhile.
            mine = (folder / _LOCK).exists() and os.path.samestat((folder / _LOCK).stat(), os.fstat(lock.fileno()))
        except BlockingIOError:
            mine = False
        yield mine
