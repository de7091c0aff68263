"""The digest by which a file or a store of the corpus is recognised."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fidopt.errors import InputError


def digest(path: str | Path) -> str:
    """Return ``sha256:<hex>`` of a file's bytes, or of a store's files.

    A folder's digest is the sha256 of its sorted lines ``<sha256 of the file>  <path in the folder>``, each ended by
    a newline, with ``/`` between the parts of a path.

    Raises
    ------
    InputError
        When there is nothing at ``path``.
    """
    where = Path(path)
    if where.is_file():
        return f"sha256:{_file(where)}"
    if not where.is_dir():
        msg = f"{where}: there is no such file or store"
        raise InputError(msg)
    lines = [f"{_file(file)}  {file.relative_to(where).as_posix()}\n" for file in files(where)]
    return "sha256:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def files(folder: str | Path) -> list[Path]:
    """Return every file below a folder, sorted."""
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def _file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
