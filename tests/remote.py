"""Servers of stores on the loopback: files over http, and a bucket as S3 keeps it; both count what they send."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Objects:
    """What a server holds and did: the files of a folder, or what was put there."""

    def __init__(self) -> None:
        self.url = ""
        self.begin()

    def begin(self, folder: Path | None = None) -> None:
        """Forget everything."""
        self.content: dict[str, bytes] = {}
        self.folder = folder
        self.times: dict[str, int] = {}
        self.sent: list[tuple[str, str, int]] = []
        self.failing: dict[str, list[int]] = {}
        self.holding = ""
        self.waiting, self.released = threading.Event(), threading.Event()

    @property
    def environment(self) -> dict[str, str]:
        """What a process must have in its environment to find this server and no other."""
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}
        return keys | {"AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}

    def put_folder(self, folder: Path, name: str) -> None:
        """Put every file below a folder."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.put(f"{name}/{file.relative_to(folder).as_posix()}", file.read_bytes())

    def release(self) -> None:
        """Let those go that wait to put what is held up."""
        self.holding = ""
        self.released.set()

    def get(self, name: str) -> bytes | None:
        if self.folder is None:
            return self.content.get(name)
        file = self.folder / name
        return file.read_bytes() if file.is_file() else None

    def put(self, name: str, content: bytes) -> None:
        self.times[name] = self.times.get(name, 0) + 1
        self.content[name] = content

    def names(self, verb: str) -> list[str]:
        return [name for done, name, _ in self.sent if done == verb]

    def fetched(self, part: str = "/c/") -> int:
        """Bytes that were sent of objects with this in their names."""
        return sum(count for verb, name, count in self.sent if verb == "GET" and part in name)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: Objects
    is_bucket: bool

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        said = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>" if self.is_bucket else code
        self.answer(status, said.encode(), Content_Type="application/xml")

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    @property
    def asked(self) -> dict[str, str]:
        return {key: words[0] for key, words in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()}

    def fails(self) -> bool:
        """Answer with what a test put there: a status for this name, as often as it says."""
        for part, left in self.objects.failing.items():
            if part in self.name and left:
                status = left.pop(0)
                code = {403: "AccessDenied", 503: "SlowDown", 405: "MethodNotAllowed", 500: "InternalError"}[status]
                self.objects.sent.append((str(status), self.name, 0))
                self.refuse(status, code)
                return True
        return False

    def do_GET(self) -> None:
        if self.fails():
            return
        if self.is_bucket and "list-type" in self.asked:
            self.list()
            return
        content = self.objects.get(self.name)
        if content is None:
            self.objects.sent.append(("404", self.name, 0))
            self.refuse(404, "NoSuchKey")
            return
        size, status, headers = len(content), 200, {}
        if said := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            first = int(said[1]) if said[1] else max(0, size - int(said[2]))
            last = min(int(said[2]), size - 1) if said[1] and said[2] else size - 1
            if first >= size:
                self.refuse(416, "InvalidRange")
                return
            status, headers = 206, {"Content_Range": f"bytes {first}-{last}/{size}"}
            content = content[first : last + 1]
        sent = 0 if self.command == "HEAD" else len(content)
        self.objects.sent.append((self.command, self.name, sent))
        when = self.objects.times.get(self.name, 0)
        self.answer(status, content, ETag=f'"{when}-{size}"', Last_Modified=formatdate(when, usegmt=True), **headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.is_bucket:
            self.refuse(405, "MethodNotAllowed")
            return
        if self.fails():
            return
        if self.objects.holding and self.objects.holding in self.name:
            self.objects.waiting.set()
            self.objects.released.wait()
            return
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            content = unchunked(content)
        self.objects.put(self.name, content)
        self.objects.sent.append(("PUT", self.name, 0))
        self.answer(200, ETag=f'"{md5(content).hexdigest()}"')

    def do_DELETE(self) -> None:
        self.objects.content.pop(self.name, None)
        self.objects.sent.append(("DELETE", self.name, 0))
        self.answer(204)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if "delete" not in self.asked:
            self.refuse(501, "NotImplemented")
            return
        bucket = self.name.split("/")[0]
        for key in re.findall(r"<Key>(.*?)</Key>", body):
            self.objects.content.pop(f"{bucket}/{key}", None)
            self.objects.sent.append(("DELETE", f"{bucket}/{key}", 0))
        self.answer(200, b"<DeleteResult></DeleteResult>", Content_Type="application/xml")

    def list(self) -> None:
        bucket, prefix, mark = self.name.strip("/"), self.asked.get("prefix", ""), self.asked.get("delimiter", "")
        found, folders = [], set()
        for name, content in sorted(self.objects.content.items()):
            key = name.removeprefix(f"{bucket}/")
            if not name.startswith(f"{bucket}/{prefix}"):
                continue
            if mark and mark in key[len(prefix) :]:
                folders.add(prefix + key[len(prefix) :].split(mark)[0] + mark)
                continue
            found.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size><ETag>{self.objects.times.get(name)}</ETag>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        more = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders))
        said = f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{''.join(found)}{more}"
        self.answer(200, f"{said}</ListBucketResult>".encode(), Content_Type="application/xml")


def unchunked(body: bytes) -> bytes:
    """Return what a body holds that is sent in pieces, each after its length."""
    content, at = b"", 0
    while True:
        end = body.index(b"\r\n", at)
        length = int(body[at:end].split(b";")[0], 16)
        if not length:
            return content
        content += body[end + 2 : end + 2 + length]
        at = end + 2 + length + 2


@contextmanager
def serving(objects: Objects, *, bucket: bool) -> Iterator[Objects]:
    """Serve objects on a free port of the loopback."""

    class Handler(_Handler):
        pass

    Handler.objects, Handler.is_bucket = objects, bucket
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    objects.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield objects
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
