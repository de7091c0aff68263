"""A file that appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a path to write to; the file takes its own name when the block ends, and goes when it fails.

    The name written to keeps the endings, since libraries choose a format by them.
    """
    where = Path(path)
    where.parent.mkdir(parents=True, exist_ok=True)
    part = where.with_name(f".{os.getpid()}.{where.name}")
    try:
        yield part
        part.replace(where)
    finally:
        part.unlink(missing_ok=True)
