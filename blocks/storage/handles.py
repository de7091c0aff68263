"""Arrays that are open, by path: a small cache that an array written anew at the same path does not meet."""

from __future__ import annotations

import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import zarr

from blocks.storage.layout import StoreError
from blocks.storage.objects import asking, fetch, is_url, tensorstore_spec, zarr_store
from blocks.storage.remote_shards import RemoteShardReader
from blocks.storage.shards import ShardReader

Library = Literal["zarr", "tensorstore"]

#: Handles kept open; a warp needs two, a pyramid two a level.
_HANDLES = 64

_open: OrderedDict[tuple[object, ...], Any] = OrderedDict()
_lock = threading.Lock()


def tensorstore_installed() -> bool:
    """Whether ``library="tensorstore"`` can be asked for."""
    return importlib.util.find_spec("tensorstore") is not None


def handle_of(path: str, library: Library | Literal["shards"], opened: str) -> Any:  # noqa: ANN401 - three kinds, one not typed
    """Return an open array, from a small cache that a store written anew at the same path does not meet."""
    key = (path, library, opened, *stamp(path))
    with _lock:
        if key in _open:
            _open.move_to_end(key)
            return _open[key]
    handle = _OPENERS[library](path)
    with _lock:
        _open[key] = handle
        while len(_open) > _HANDLES:
            _open.popitem(last=False)
    return handle


def stamp(path: str) -> tuple[int, ...]:
    """Return the inode and the times of an array's metadata, nothing for a URL."""
    if is_url(path):
        return ()
    for name in ("zarr.json", ".zarray"):
        file = Path(path, name)
        if file.is_file():
            status = file.stat()
            # A copy over a file may set its old time again, but not when that was done.
            return (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    msg = f"there is no Zarr array at {path}: neither zarr.json nor .zarray is there; the store may be incomplete"
    raise StoreError(msg)


def _zarr(path: str) -> zarr.Array[Any]:
    try:
        if is_url(path):
            with asking(path):
                return zarr.open_array(zarr_store(path), mode="r")
        return zarr.open_array(path, mode="r+").with_config({"write_empty_chunks": True})
    except StoreError:
        raise
    except Exception as error:
        # zarr-python takes metadata for what they should be, and fails as it happens where they are not.
        said = " ".join(str(error).split()) or type(error).__name__
        msg = f"{path} is not a Zarr array that can be read ({said}); fetch or write the store again"
        raise StoreError(msg) from error


def _tensorstore(path: str) -> Any:  # noqa: ANN401 - tensorstore is not typed
    if not tensorstore_installed():
        msg = "tensorstore is not installed; use the library 'zarr', or pip install 'fidopt[fast]'"
        raise ImportError(msg)
    import tensorstore

    if is_url(path):
        third, kvstore = fetch(f"{path}/zarr.json") is not None, tensorstore_spec(path)
    else:
        third, kvstore = Path(path, "zarr.json").is_file(), {"driver": "file", "path": path + "/"}
    # A context of its own, without a cache: a handle of an array that was written anew must not see the old one.
    spec = {
        "driver": "zarr3" if third else "zarr",
        "kvstore": kvstore,
        "store_data_equal_to_fill_value": True,
        "context": {"cache_pool": {"total_bytes_limit": 0}},
    }
    with asking(path) if is_url(path) else nullcontext():
        return tensorstore.open(spec, open=True).result()


def _shards(path: str) -> ShardReader | None:
    return RemoteShardReader.of(path) if is_url(path) else ShardReader.of(path)


_OPENERS: dict[str, Callable[[str], Any]] = {"zarr": _zarr, "tensorstore": _tensorstore, "shards": _shards}
