"""What stands for an image or a transform that something is made from: the same again, or something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any

from blocks.image.opening import open_store
from blocks.storage.answers import stamps
from blocks.storage.handles import handle_of
from blocks.storage.objects import fetch, versions
from fidopt.images.digest import digest, files

#: Files of at most so many bytes are recognised by their digest, others by their sizes and times.
DIGESTED_BYTES = 1 << 30
#: Names of Zarr's metadata, of both versions.
_METADATA = ("zarr.json", ".zattrs", ".zgroup", ".zarray")
#: Shards of a web server that are asked about at a time.
_ASKED = 4096


def header(facts: Mapping[str, Any]) -> str:
    """Return one digest of all that something is made from; ``facts`` are what JSON holds."""
    return "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def identity(name: str | Path) -> Any:  # noqa: ANN401 - anything JSON holds
    """Return what tells a file, a folder or a store from another: its digest, or its files' sizes and times.

    Parameters
    ----------
    name
        A path, a pattern of paths, ``FILE:PART`` for a part of a file, or a URL: what a bucket lists below it, or, over
        http, its metadata and what the server says of the shards of its level 0: tags, times and lengths.
    """
    text = str(name).removeprefix("file://")
    if text.startswith("s3://"):
        return [text.rstrip("/"), versions(text.rstrip("/"))]
    if "://" in text:
        return [text.rstrip("/"), _of_web(text.rstrip("/"))]
    path = Path(text)
    if path.exists():
        return _of_path(path)
    file, colon, part = text.rpartition(":")
    if colon and Path(file).exists():
        return [part, _of_path(Path(file))]
    return [text, [[str(found), _of_path(found)] for found in sorted(path.parent.glob(path.name))]]


def _of_web(url: str) -> str:
    """Return one digest of a store's metadata and of what its server says of the shards that are read."""
    finest = open_store(url).arrays[0]
    level = finest.path
    whole = hashlib.sha256()
    for place in (url, level):
        for name in _METADATA:
            content = fetch(f"{place}/{name}")
            whole.update(f"{name} {None if content is None else hashlib.sha256(content).hexdigest()}\n".encode())
    array = handle_of(level, "zarr", finest.opened)
    counts = [-(-n // step) for n, step in zip(array.shape, array.shards or array.chunks, strict=True)]
    keys = (array.metadata.encode_chunk_key(index) for index in product(*map(range, counts)))
    while some := list(islice(keys, _ASKED)):
        for key, stamp in zip(some, stamps([f"{level}/{key}" for key in some]), strict=True):
            whole.update(f"{key} {stamp}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def _of_path(path: Path) -> Any:  # noqa: ANN401
    held = [path] if path.is_file() else files(path)
    if sum(file.stat().st_size for file in held) <= DIGESTED_BYTES:
        return digest(path)
    stats = [(file, file.stat()) for file in held]
    return [[file.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns] for file, stat in stats]
