"""What stands for an image or a transform that something is made from: the same again, or something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blocks.storage.objects import versions
from fidopt.images.digest import digest, files

#: Files of at most so many bytes are recognised by their digest, others by their sizes and times.
DIGESTED_BYTES = 1 << 30


def header(facts: Mapping[str, Any]) -> str:
    """Return one digest of all that something is made from; ``facts`` are what JSON holds."""
    return "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def identity(name: str | Path) -> Any:  # noqa: ANN401 - anything JSON holds
    """Return what tells a file, a folder or a store from another: its digest, or its files' sizes and times.

    Parameters
    ----------
    name
        A path, a pattern of paths, ``FILE:PART`` for a part of a file, or a URL: what a bucket lists below it, or, over
        http, itself.
    """
    text = str(name)
    if text.startswith("s3://"):
        return [text.rstrip("/"), versions(text.rstrip("/"))]
    if "://" in text:
        return text
    path = Path(text)
    if path.exists():
        return _of_path(path)
    file, colon, part = text.rpartition(":")
    if colon and Path(file).exists():
        return [part, _of_path(Path(file))]
    return [text, [[str(found), _of_path(found)] for found in sorted(path.parent.glob(path.name))]]


def _of_path(path: Path) -> Any:  # noqa: ANN401
    held = [path] if path.is_file() else files(path)
    if sum(file.stat().st_size for file in held) <= DIGESTED_BYTES:
        return digest(path)
    stats = [(file, file.stat()) for file in held]
    return [[file.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns] for file, stat in stats]
