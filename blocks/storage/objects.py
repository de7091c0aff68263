"""Object stores by URL: ``s3://`` through s3fs, ``http(s)://`` (read only) through fsspec and aiohttp.

Endpoints and credentials are the libraries' own: ``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``, ``AWS_PROFILE`` and the
rest; where none are found, a bucket is asked for anonymously. s3fs asks up to five times, within that botocore up to
five times, waiting longer each time; http is asked once. What fails in the end is one sentence that names the URL.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from blocks.storage.layout import StoreError

#: Protocols, and the package that speaks each.
_SPOKEN = {"s3": "s3fs", "http": "aiohttp", "https": "aiohttp"}
#: Requests under way at a time for one read or listing.
AT_ONCE = 16
#: An object of at most twice so many bytes is put by one request: an upload in parts that is cut off leaves parts.
_PART = 2 << 30


def is_url(path: str | Path) -> bool:
    """Tell whether a path is that of an object store."""
    return "://" in str(path) and not str(path).startswith("file://")


def refuse_read_only(url: str) -> None:
    """Refuse to write to anything but S3.

    Raises
    ------
    StoreError
        When the URL is of another protocol.
    """
    if not url.startswith("s3://"):
        msg = f"{url} can only be read: a store is written to a folder or to s3://; choose another path"
        raise StoreError(msg)


def zarr_store(url: str, *, read_only: bool = True) -> Any:  # noqa: ANN401 - zarr's own store
    """Return zarr-python's store of a URL."""
    from zarr.storage import FsspecStore

    if not read_only:
        refuse_read_only(url)
    # Its own instance: zarr-python has an event loop of its own, fsspec another.
    files = _filesystem(_protocol(url), os.environ.get("AWS_ENDPOINT_URL"), os.getpid(), asynchronous=True)
    return FsspecStore(files, read_only=read_only, path=files._strip_protocol(url))


def tensorstore_spec(url: str) -> dict[str, Any]:
    """Return how tensorstore names a URL."""
    if _protocol(url) != "s3":
        return {"driver": "http", "base_url": f"{url}/"}
    bucket, _, key = url.removeprefix("s3://").partition("/")
    spec: dict[str, Any] = {"driver": "s3", "bucket": bucket, "path": f"{key}/"}
    found = "environment" if "AWS_ACCESS_KEY_ID" in os.environ else "default"
    spec["aws_credentials"] = {"type": found if _credentials() else "anonymous"}
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        spec |= {"endpoint": endpoint, "aws_region": os.environ.get("AWS_DEFAULT_REGION", "us-east-1")}
    return spec


def fetch(url: str) -> bytes | None:
    """Return an object whole, None where there is none."""
    with asking(url):
        try:
            content: bytes = files_of(url).cat_file(url)
        except FileNotFoundError:
            return None
    return content


def fetch_ranges(url: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return parts of an object, from the first byte up to before the last, asked for at the same time.

    Raises
    ------
    StoreError
        When one cannot be had whole.
    """
    starts, stops = [a for a, _ in ranges], [b for _, b in ranges]
    with asking(url):
        parts = files_of(url).cat_ranges([url] * len(starts), starts, stops, batch_size=AT_ONCE, on_error="raise")
    for (start, stop), part in zip(ranges, parts, strict=True):
        if len(part) != stop - start:
            msg = f"{url}: {stop - start} bytes are expected at {start}, got {len(part)}: the object is cut short"
            raise StoreError(f"{msg}, or its server gives no byte ranges; put it again, or copy the store here")
    return list(parts)


def put(url: str, content: bytes) -> None:
    """Put an object: it is there whole, or as it was before."""
    refuse_read_only(url)
    with asking(url, "written"):
        files_of(url).pipe_file(url, content, chunksize=_PART)


def listing(url: str) -> dict[str, int]:
    """Return the objects below a URL, each by its name from there on, with its length."""
    return {name: said["size"] for name, said in _listed(url).items()}


def versions(url: str) -> dict[str, str]:
    """Return what tells each object below a URL from another of the same name: its length and the server's tag."""
    return {name: f"{said['size']} {said.get('ETag')}" for name, said in _listed(url).items()}


def _listed(url: str) -> dict[str, dict[str, Any]]:
    files = files_of(url)
    with asking(url):
        files.invalidate_cache()
        root = files._strip_protocol(url).rstrip("/") + "/"
        try:
            found = files.find(root, detail=True)
        except FileNotFoundError:
            return {}
    return {name.removeprefix(root): said for name, said in found.items() if name.startswith(root)}


def remove(url: str, names: Sequence[str]) -> None:
    """Remove objects below a URL."""
    refuse_read_only(url)
    if names:
        with asking(url, "cleared"):
            files_of(url).rm([f"{url}/{name}" for name in names])


@contextmanager
def asking(url: str, what: str = "read") -> Iterator[None]:
    """Say in one sentence why a URL cannot be read or written, whatever a library says of it."""
    try:
        yield
    except (StoreError, FileNotFoundError):
        raise
    except Exception as error:
        # Every protocol has a library with errors of its own.
        raise StoreError(_sentence(url, what, error)) from error


def _sentence(url: str, what: str, error: Exception) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    status = getattr(error, "status", None)
    if isinstance(error, PermissionError) or status in {401, 403}:
        cure = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or " if url.startswith("s3://") else ""
        return f"{url} may not be {what} ({said}); {cure}ask for the right to it"
    cure = "the address, AWS_ENDPOINT_URL and the network" if url.startswith("s3://") else "the address and the network"
    return f"{url} cannot be {what}: its server cannot be reached or fails ({said}); check {cure}, and try again"


def _protocol(url: str) -> str:
    """Return a URL's protocol.

    Raises
    ------
    StoreError
        When it is none that is read, or its library is not installed.
    """
    protocol = url.partition("://")[0]
    if protocol not in _SPOKEN:
        msg = f"{url}: stores are read from folders, s3://, http:// and https://, got {protocol}://"
        raise StoreError(msg)
    try:
        __import__(_SPOKEN[protocol])
    except ImportError as error:
        msg = f"{url}: {_SPOKEN[protocol]} is not installed, which reads {protocol}://; pip install 'fidopt[remote]'"
        raise StoreError(msg) from error
    return protocol


def files_of(url: str) -> Any:  # noqa: ANN401 - fsspec is not typed
    """Return fsspec's own instance for a URL, with the endpoint and the process that it is used with."""
    return _filesystem(_protocol(url), os.environ.get("AWS_ENDPOINT_URL"), os.getpid(), asynchronous=False)


@lru_cache(maxsize=8)
def _filesystem(protocol: str, _endpoint: str | None, _process: int, *, asynchronous: bool) -> Any:  # noqa: ANN401
    import fsspec

    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True, "asynchronous": asynchronous}
    if protocol == "s3":
        options["anon"] = not _credentials()
    files = fsspec.filesystem(protocol, **options)
    if asynchronous:
        atexit.register(_close, files, "_s3creator" if protocol == "s3" else "_session")
    return files


def _close(files: Any, connections: str) -> None:  # noqa: ANN401
    """Close the connections of an instance that fsspec leaves open: each would be a warning as the process ends."""
    from zarr.core.sync import sync

    async def close() -> None:
        if (held := getattr(files, connections, None)) is not None:
            await held.__aexit__(None, None, None)

    with suppress(Exception):
        sync(close(), timeout=5)


@lru_cache(maxsize=1)
def _credentials() -> bool:
    """Whether this machine has credentials; where it has none, that is asked once a process."""
    import botocore.session

    return botocore.session.get_session().get_credentials() is not None
