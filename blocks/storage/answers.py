"""What servers say of objects without sending them whole: their ends, tags, times and lengths."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from blocks.storage.layout import StoreError
from blocks.storage.objects import AT_ONCE, asking, files_of


@dataclass(frozen=True)
class Tail:
    """The end of an object.

    Parameters
    ----------
    content
        Its last bytes.
    version
        What tells the object from another one later put at the same URL.
    """

    content: bytes
    version: tuple[str, ...]


def stamps(urls: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Return what a web server says of objects without sending them: tag, time and length as far as it gives them.

    None stands for one that is not there. All are asked for, some at a time.

    Raises
    ------
    StoreError
        When it cannot be told whether one is there.
    """
    return _each(urls, _http_stamp)


def fetch_tails(urls: Sequence[str], length: int) -> list[Tail | None]:
    """Return the ends of objects, None for one that is not there; all are asked for at the same time.

    Raises
    ------
    StoreError
        When it cannot be told whether one is there.
    """
    one = _s3_tail if urls and urls[0].startswith("s3://") else _http_tail
    return _each(urls, partial(one, length=length))


def _each(urls: Sequence[str], ask: Callable[[Any, str], Coroutine[Any, Any, Any]]) -> list[Any]:
    """Return what is answered for each of some URLs of one server, None where there is nothing."""
    from fsspec.asyn import _run_coros_in_chunks, sync

    if not urls:
        return []
    files = files_of(urls[0])

    async def every() -> list[Any]:
        asked = [ask(files, url) for url in urls]
        found: list[Any] = await _run_coros_in_chunks(asked, batch_size=AT_ONCE, return_exceptions=True, nofiles=True)
        return found

    answers: list[Any] = []
    for url, found in zip(urls, sync(files.loop, every), strict=True):
        with asking(url):
            if isinstance(found, BaseException) and not isinstance(found, FileNotFoundError):
                raise found
        answers.append(None if isinstance(found, FileNotFoundError) else found)
    return answers


async def _s3_tail(files: Any, url: str, length: int) -> Tail:  # noqa: ANN401
    bucket, key, _ = files.split_path(url)
    said = await files._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes=-{length}")
    async with said["Body"] as body:
        content = await body.read()
    return Tail(content, (str(said.get("ETag")), str(said.get("LastModified")), str(said.get("ContentRange"))))


async def _http_stamp(files: Any, url: str) -> tuple[str, ...]:  # noqa: ANN401
    session = await files.set_session()
    for ask, last in ((session.head, False), (session.get, True)):
        # Only the headers are read: whoever leaves the block drops the rest.
        async with ask(files.encode_url(url), allow_redirects=True) as said:
            if said.status in {403, 405, 501} and not last:
                # Some servers answer to GET alone.
                continue
            if said.status == 404:
                break
            said.raise_for_status()
            return tuple(str(said.headers.get(key)) for key in ("ETag", "Last-Modified", "Content-Length"))
    raise FileNotFoundError(url)


async def _http_tail(files: Any, url: str, length: int) -> Tail:  # noqa: ANN401
    session = await files.set_session()
    async with session.get(files.encode_url(url), headers={"Range": f"bytes=-{length}"}) as said:
        if said.status == 404:
            raise FileNotFoundError(url)
        said.raise_for_status()
        whole = int(said.headers.get("Content-Length", 0))
        if said.status != 206 and whole > length:
            msg = f"{url}: its server gives no byte ranges, without which no part can be read; copy the store here"
            raise StoreError(msg)
        content = await said.read()
    return Tail(content, tuple(str(said.headers.get(key)) for key in ("ETag", "Last-Modified", "Content-Range")))
