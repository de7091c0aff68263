"""A store under construction in a bucket: its journal is kept here, by the driver, and its root's metadata goes last.

An object is there whole or not at all, so that no checksum is needed: a shard counts as written when the driver noted
it, the bucket lists it, and the mark in the bucket is that of the same attempt. The mark, ``.journal/header.json``, is
the first object that is put and the last that goes; another attempt puts another one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import zarr

from blocks.image.construction import MARK, STORE_FILES, StoreExistsError
from blocks.journal import Index, Written
from blocks.storage import Layout, Library, StoredArray, StoreError, create_array, shard_name
from blocks.storage.objects import fetch, listing, put, refuse_read_only, remove


class NotedWritten(Written):
    """What is written, each shard noted in a file of this machine as soon as it is counted."""

    log: Path | None = None

    def add(self, level: int, index: Index) -> None:
        """Count a shard as written, and note it."""
        super().add(level, index)
        if self.log is not None:
            words = f"{level} {'/'.join(map(str, index))}"
            with self.log.open("ab", buffering=0) as log:
                log.write(f"{words} {zlib.crc32(words.encode()):08x}\n".encode())


class Attempt:
    """One attempt to write a store in a bucket; made by :func:`attempting`.

    Parameters
    ----------
    where
        The store's URL.
    folder
        Where its journal is, on this machine.
    header
        What it is made from.
    resumable
        Whether another attempt at the same may take it up.
    """

    def __init__(self, where: str, folder: Path, header: Mapping[str, Any], *, resumable: bool) -> None:
        self.where = where
        key = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
        self._folder, self._log, self._header = folder, folder / f"{key[:32]}.log", dict(header)
        self.there = listing(where)
        self.unfinished = MARK in self.there
        mark = fetch(f"{where}/{MARK}") if self.unfinished else None
        self.name = self._noted()[0]
        self.taken_up = resumable and mark is not None and self._mark() == mark

    def begin(self) -> None:
        """Begin anew: nothing of earlier attempts is taken up from here on."""
        for stale in self._folder.glob("*.log"):
            stale.unlink()
        self.name = uuid4().hex
        self._log.write_text(f"{self.name}\n", encoding="ascii")
        put(f"{self.where}/{MARK}", self._mark())

    def clear(self, *, overwrite: bool) -> None:
        """Clear the store's place.

        Raises
        ------
        StoreExistsError
            When something lies there that is not to be replaced.
        """
        root = [name for name in STORE_FILES if name in self.there]
        if self.there and not root and not self.unfinished:
            msg = f"{self.where} exists and is not a store; it is left alone: choose another path"
            raise StoreExistsError(msg)
        if root and not overwrite:
            msg = f"the store {self.where} exists; ask to overwrite it, or choose another path"
            raise StoreExistsError(msg)
        if self.there:
            # Whatever ends this in the middle, what is left shows as a store that was not finished.
            put(f"{self.where}/{MARK}", b"{}")
            remove(self.where, root)
            self.drop([name for name in self.there if name not in (*root, MARK)])

    def drop(self, names: Sequence[str]) -> None:
        """Remove objects of the store."""
        remove(self.where, names)
        for name in names:
            self.there.pop(name, None)

    def array(self, name: str, layout: Layout, library: Library) -> StoredArray:
        """Return an array of the store, made where it is not there."""
        path = f"{self.where}/{name}"
        if f"{name}/zarr.json" not in self.there:
            create_array(path, layout)
        return StoredArray(path, library, opened=self.name)

    def written(self, arrays: Sequence[StoredArray], *, first: int = 0) -> NotedWritten:
        """Return which shards are written, and remove whatever else lies in the arrays from level ``first`` on."""
        written, names = NotedWritten(arrays, first=first), [array.path.rpartition("/")[2] for array in arrays]
        keep = {f"{name}/zarr.json" for name in names}
        for level, index in self._noted()[1] if self.taken_up else ():
            object_name = f"{names[level]}/{shard_name(index)}"
            if level >= first and object_name in self.there:
                written.add(level, index)
                keep.add(object_name)
        ours = tuple(f"{name}/" for name in names[first:])
        self.drop([name for name in self.there if name.startswith(ours) and name not in keep])
        written.log = self._log
        return written

    def publish(self, root: Mapping[str, Any]) -> None:
        """Put the root's metadata."""
        with tempfile.TemporaryDirectory() as folder:
            zarr.create_group(folder, attributes=dict(root), overwrite=True)
            put(f"{self.where}/zarr.json", Path(folder, "zarr.json").read_bytes())

    def finish(self, root: Mapping[str, Any]) -> None:
        """Publish the store, of which every shard is written, and forget the attempt."""
        self.publish(root)
        remove(self.where, [MARK])
        self._log.unlink()

    def abandon(self) -> None:
        """Remove the store, of which nothing is worth taking up; a server that does not answer keeps what it has."""
        with suppress(StoreError):
            # The mark last: what is left in the middle shows as a store that was not finished.
            names = [name for name in listing(self.where) if name != MARK]
            remove(self.where, names)
            remove(self.where, [MARK])
            self._log.unlink(missing_ok=True)

    def _mark(self) -> bytes:
        return json.dumps({"attempt": self.name, "header": self._header}, sort_keys=True).encode()

    def _noted(self) -> tuple[str, list[tuple[int, Index]]]:
        """Return the attempt's name and what it noted; a line that was torn says nothing."""
        try:
            name, *lines = self._log.read_text(encoding="ascii", errors="replace").split("\n")
        except FileNotFoundError:
            return "", []
        shards = []
        for line in lines:
            words, _, own = line.rpartition(" ")
            if words and own == f"{zlib.crc32(words.encode()):08x}":
                level, index = words.split(" ")
                shards.append((int(level), tuple(int(i) for i in index.split("/"))))
        return name, shards


@contextmanager
def attempting(where: str, header: Mapping[str, Any], *, resumable: bool) -> Iterator[Attempt]:
    """Yield an attempt at a store in a bucket, and keep other processes of this machine out of it meanwhile.

    Raises
    ------
    StoreExistsError
        When another process of this machine is writing it, or it would lie inside another store.
    StoreError
        When the URL can only be read, or its server cannot be reached.
    """
    refuse_read_only(where)
    _refuse_inside(where)
    folder = _state() / hashlib.sha256(where.encode()).hexdigest()[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"another process is writing {where}; wait for it, or choose another path"
            raise StoreExistsError(msg) from error
        yield Attempt(where, folder, header, resumable=resumable)


def _state() -> Path:
    """Return the folder of the journals, by the XDG's rules."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fidopt" / "stores"


def _refuse_inside(where: str) -> None:
    around = where
    while (around := around.rpartition("/")[0]).count("/") > 2:
        try:
            inside = fetch(f"{around}/zarr.json") is not None
        except StoreError:
            # Whoever may write here need not be allowed to read there.
            continue
        if inside:
            msg = f"{where} lies inside the store {around}, which would not be one any more; choose another path"
            raise StoreExistsError(msg)
