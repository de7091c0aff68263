"""What is in a zip or tar archive, member by member, each with a place inside one folder or refused."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal, Protocol, cast

from fidopt.errors import InputError, MissingError

Kind = Literal["file", "folder", "link", "copy"]

#: Most bytes asked for at once: a tar header that says that it is longer would be read into memory.
_MOST_AT_ONCE = 1 << 24
#: Most bytes after the last member: archives are padded to the block of a tape at most.
_MOST_AFTER = 1 << 24
#: Longest text a link may be: that of most file systems.
_MOST_LINK = 4096
_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error)
_DAMAGE = (*_UNREADABLE, EOFError, NotImplementedError, OverflowError, ValueError)


@dataclass(frozen=True)
class Member:
    """One member of an archive.

    Parameters
    ----------
    name
        As the archive has it.
    place
        Where it goes inside the folder: its name without ``.`` and needless ``/``.
    kind
        A file, a folder, a symbolic link, or a ``copy`` of another member (a hard link).
    size
        Bytes it is unpacked to, as the archive says.
    leads_to
        A link's text; of a copy the other one's place.
    entry
        What the reader of the archive knows it by.
    """

    name: str
    place: str
    kind: Kind
    size: int
    leads_to: str = ""
    entry: Any = None

    @property
    def above(self) -> tuple[str, ...]:
        """The folders that it lies in, the outermost first."""
        parts = self.place.split("/")
        return tuple("/".join(parts[:n]) for n in range(1, len(parts)))


class Archive(Protocol):
    """An opened archive."""

    path: Path

    def members(self) -> Iterator[Member]:
        """Yield its members in their order; raise InputError at one that may not be unpacked."""

    def pieces(self, member: Member, size: int) -> Iterator[bytes]:
        """Yield a file's bytes, in pieces of at most ``size``."""

    def finish(self) -> None:
        """Read on to the archive's end, where some say what all of it should add up to."""


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive, by what its first bytes say it is.

    Raises
    ------
    InputError
        When it is damaged or of another kind, then or while it is read.
    MissingError
        When it is compressed in a way that this Python cannot read.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(512)
    except IsADirectoryError:
        msg = f"{path}: a zip or tar archive is expected, got a folder"
        raise InputError(msg) from None
    try:
        with ExitStack() as stack:
            if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
                yield _Zip(path, stack.enter_context(zipfile.ZipFile(path)))
            else:
                metered = _Metered(stack.enter_context(_decompressed(path, head)), path)
                yield _Tar(path, stack.enter_context(tarfile.open(fileobj=cast("IO[bytes]", metered), mode="r:")))
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    except OSError as error:
        # gzip's and bzip2's have no number; a place before the file's start that a header names is no argument.
        if error.errno not in {None, errno.EINVAL}:
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    said = str(error) or "it ends too early"
    return InputError(f"{path}: cannot be unpacked: {said}; the archive is damaged, get it again")


def _decompressed(path: Path, head: bytes) -> IO[bytes]:
    if head.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(path))
    if head.startswith(b"BZh"):
        return cast("IO[bytes]", bz2.open(path))
    if head.startswith(b"\xfd7zXZ\x00"):
        return cast("IO[bytes]", lzma.open(path))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            return cast("IO[bytes]", import_module("compression.zstd").open(path))
        except ImportError:
            msg = f"{path} is compressed by zstandard, which this Python does not read; first run: zstd -d {path.name}"
            raise MissingError(msg) from None
    if head[257:262] == b"ustar" or (head and _is_old_tar(head)):
        return path.open("rb")
    msg = f"{path}: a zip or tar archive is expected, got a file that begins with {head[:8]!r}"
    raise InputError(msg)


def _is_old_tar(head: bytes) -> bool:
    """Whether a block is the header of a tar of before 1988, which has no mark but its checksum."""
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


class _Metered(io.RawIOBase):
    """A stream that refuses to be read in one piece larger than any header is."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > _MOST_AT_ONCE:
            msg = f"{self._path}: a header of {size} bytes is more than any archive needs; it is refused"
            raise InputError(msg)
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class _Zip:
    """A zip archive."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive

    def members(self) -> Iterator[Member]:
        for info in self._archive.infolist():
            name = info.orig_filename
            place = _place(self.path, name)
            if info.flag_bits & 1:
                msg = f"{self.path}: {name!r} is encrypted; unpack it by hand, and name its files as the provider's"
                raise InputError(msg)
            kind = self._kind(info, name)
            if not place and kind == "folder":
                continue
            text = self._link(info) if kind == "link" else ""
            yield Member(name, place, kind, info.file_size, text, info)

    def _kind(self, info: zipfile.ZipInfo, name: str) -> Kind:
        form = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir() or form == stat.S_IFDIR:
            return "folder"
        if form == stat.S_IFLNK:
            return "link"
        if form in {0, stat.S_IFREG}:
            return "file"
        msg = f"{self.path}: {name!r} is a device, a pipe or a socket; an archive of images holds none"
        raise InputError(msg)

    def _link(self, info: zipfile.ZipInfo) -> str:
        with self._archive.open(info) as stream:
            return _link_text(self.path, info.orig_filename, stream.read(_MOST_LINK + 1).decode("utf-8", "replace"))

    def pieces(self, member: Member, size: int) -> Iterator[bytes]:
        try:
            with self._archive.open(member.entry) as stream:
                while piece := stream.read(size):
                    yield piece
        except NotImplementedError as error:
            msg = f"{self.path}: {member.name!r} is compressed in a way that is not read: {error}; unpack it by hand"
            raise InputError(msg) from error

    def finish(self) -> None:
        """Nothing is left: each member has its own sum, held when it was read."""


class _Tar:
    """A tar archive, of any compression."""

    def __init__(self, path: Path, archive: tarfile.TarFile) -> None:
        self.path, self._archive = path, archive

    def members(self) -> Iterator[Member]:
        sizes: dict[str, int] = {}
        for info in self._archive:
            name = info.name
            place = _place(self.path, name)
            if info.isdir() and not place:
                continue
            if info.isdir():
                yield Member(name, place, "folder", 0, entry=info)
            elif info.isreg():
                sizes[place] = info.size
                yield Member(name, place, "file", info.size, entry=info)
            elif info.issym():
                yield Member(name, place, "link", 0, _link_text(self.path, name, info.linkname))
            elif info.islnk():
                other = _place(self.path, info.linkname)
                yield Member(name, place, "copy", sizes.get(other, 0), other)
            else:
                msg = f"{self.path}: {name!r} is a device, a pipe or a socket; an archive of images holds none"
                raise InputError(msg)
        self._refuse_cut()

    def _refuse_cut(self) -> None:
        """Refuse an archive that goes on after the last member that could be read: tarfile stops there in silence."""
        stream = self._archive.fileobj
        if stream is not None:
            stream.seek(self._archive.offset)
            block = stream.read(tarfile.BLOCKSIZE)
            if block.strip(b"\0") or len(block) not in {0, tarfile.BLOCKSIZE}:
                msg = f"no header is where one should be, {self._archive.offset} bytes from the start"
                raise tarfile.ReadError(msg)

    def pieces(self, member: Member, size: int) -> Iterator[bytes]:
        stream = self._archive.extractfile(member.entry)
        while stream is not None and (piece := stream.read(size)):
            yield piece

    def finish(self) -> None:
        """Read what pads the archive, up to the sum at the end of a compressed one."""
        stream, left = self._archive.fileobj, _MOST_AFTER
        while stream is not None and left >= 0 and (piece := stream.read(1 << 20)):
            left -= len(piece)
        if left < 0:
            msg = f"it goes on for more than {_MOST_AFTER} bytes after its last member"
            raise tarfile.ReadError(msg)


def _link_text(path: Path, name: str, text: str) -> str:
    if not text or len(text) > _MOST_LINK or "\0" in text:
        msg = (
            f"{path}: {name!r} is a link to a place of {len(text)} characters; none is more than {_MOST_LINK}, or empty"
        )
        raise InputError(msg)
    return text


def _place(path: Path, name: str) -> str:
    """Return where a member goes inside the folder, empty for the folder itself; refuse a name that leads out of it."""
    where = f"{path}: the name {name!r}"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        msg = f"{where} is absolute; a member's name is a path inside the archive"
        raise InputError(msg)
    if "\\" in name or any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in name):
        msg = f"{where} holds a backslash or a character that no name has; pack the archive again"
        raise InputError(msg)
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts:
        msg = f"{where} leads out of the archive's folder by '..'"
        raise InputError(msg)
    return unicodedata.normalize("NFC", "/".join(parts))
