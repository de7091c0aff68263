"""A provider's archive unpacked whole, or refused whole: every member is examined before anything is written.

For a dataset's ``prepare.py``::

    from fidopt.building import unpack

    files = unpack(source / "images.zip", scratch / "images")
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fidopt.building.members import Archive, Member, opened
from fidopt.errors import InputError, OutputExistsError

#: Most bytes that a byte of an archive may become. Images and label maps of a whole archive stay far below; the
#: archives made to fill a disk lie far above.
MOST_RATIO = 100.0
#: What no disk is filled by, however well it is compressed.
HARMLESS_BYTES = 1 << 20
#: Share of the free disk that an archive may fill.
_MOST_OF_DISK = 0.9
#: Most members: what a file system is slowed down by, and no provider packs into one file.
MOST_MEMBERS = 1 << 20
_PIECE = 1 << 20


def unpack(
    archive: Path, target: Path, *, most_ratio: float = MOST_RATIO, most_bytes: int | None = None
) -> tuple[Path, ...]:
    """Unpack a zip or tar archive (plain, gzip, bzip2, xz; zstandard where Python brings it) into a new folder.

    The kind is known by the file's first bytes, whatever its name. Nothing is written before every member was
    examined; what is written goes into a folder beside ``target`` that takes its name at the end.

    Parameters
    ----------
    archive
        The provider's file.
    target
        The folder to make; it must not be there yet, or be empty.
    most_ratio
        Most bytes that a byte of the archive may become, counted over all of it, once it becomes more than 1 MiB.
    most_bytes
        Most bytes of all members together; by default nine tenths of what is free on the disk.

    Returns
    -------
    tuple
        The files (and links to files) now in ``target``, in the order of their paths.

    Raises
    ------
    InputError
        When the archive is damaged, of another kind or too large, or a member leads out of the folder, is no file,
        folder or link inside, or has the name of another one; the message names the member.
    OutputExistsError
        When something is in ``target`` already.
    MissingError
        When it is compressed in a way that this Python cannot read.
    """
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        msg = f"{target} is there already; unpack {archive.name} into a folder of its own"
        raise OutputExistsError(msg)
    there = next(folder for folder in target.absolute().parents if folder.is_dir())
    space = int(shutil.disk_usage(there).free * _MOST_OF_DISK)
    limit = space if most_bytes is None else min(space, most_bytes)
    with opened(archive) as source:
        members = list(_bounded(source, most_ratio=most_ratio, most_bytes=limit))
        _refuse_unfit(source, members)
        with _whole_or_gone(target) as folder:
            for member in members:
                _write(source, member, folder)
            for member in members:
                _link(member, folder)
            source.finish()
    return tuple(sorted(path for path in target.rglob("*") if path.is_file()))


def _bounded(source: Archive, *, most_ratio: float, most_bytes: int) -> Iterator[Member]:
    """Yield an archive's members, and refuse it at the first one that makes it too large."""
    packed = source.path.stat().st_size
    total = 0
    for count, member in enumerate(source.members(), start=1):
        total += member.size
        where = f"{source.path}: {member.name!r}"
        if count > MOST_MEMBERS:
            msg = f"{where} is member {count}, and {MOST_MEMBERS} are the most that are unpacked"
            raise InputError(msg)
        if total > max(HARMLESS_BYTES, most_ratio * packed):
            msg = (
                f"{where} takes the archive from {packed} to {total} bytes, more than {most_ratio:g} times its size, "
                "as an archive does that is made to fill the disk; if it is sound, unpack it with a larger most_ratio"
            )
            raise InputError(msg)
        if total > most_bytes:
            msg = f"{where} takes what is unpacked to {total} bytes, and {most_bytes} are the most; make room first"
            raise InputError(msg)
        yield member


def _refuse_unfit(source: Archive, members: list[Member]) -> None:
    """Refuse members that cannot all lie in one folder: the same place twice, in a file, behind a link, or outside."""
    taken: dict[str, Member] = {}
    spelled: dict[str, tuple[str, Member]] = {}
    links = {member.place for member in members if member.kind == "link"}
    for member in members:
        where = f"{source.path}: {member.name!r}"
        before = taken.get(member.place)
        if before is not None and not before.kind == member.kind == "folder":
            msg = f"{where} is in the archive twice; only one of the two could be kept"
            raise InputError(msg)
        for above in member.above:
            if above in links:
                msg = f"{where} lies behind the link {above!r}, which could lead anywhere"
                raise InputError(msg)
        for place in (*member.above, member.place):
            spelling, other = spelled.setdefault(place.casefold(), (place, member))
            if spelling != place:
                msg = f"{where} and {other.name!r} differ by upper and lower case only; some disks keep one of the two"
                raise InputError(msg)
        taken[member.place] = member
    files = {place for place, member in taken.items() if member.kind in {"file", "copy"}}
    for member in members:
        if inside := files.intersection(member.above):
            msg = f"{source.path}: {member.name!r} lies inside {inside.pop()!r}, which is a file"
            raise InputError(msg)
        _refuse_link(source, member, taken, links)


def _refuse_link(source: Archive, member: Member, taken: dict[str, Member], links: set[str]) -> None:
    """Refuse a link out of the folder, or by way of another link, whose end its text does not tell."""
    where = f"{source.path}: {member.name!r}"
    if member.kind == "copy":
        if taken.get(member.leads_to) is None or taken[member.leads_to].kind != "file":
            msg = f"{where} is a hard link to {member.leads_to!r}, which is no file of the archive"
            raise InputError(msg)
    elif member.kind == "link":
        at = member.place.split("/")[:-1]
        parts = member.leads_to.split("/")
        if "\\" in member.leads_to or member.leads_to[1:2] == ":" or not parts[0]:
            msg = (
                f"{where} is a link to the absolute place {member.leads_to!r}; a link may lead inside the archive alone"
            )
            raise InputError(msg)
        for number, part in enumerate(parts):
            if part == ".." and not at:
                msg = f"{where} is a link to {member.leads_to!r}, outside the archive's folder"
                raise InputError(msg)
            at = at[:-1] if part == ".." else at if part in {"", "."} else [*at, part]
            if "/".join(at) in links and number + 1 < len(parts):
                msg = f"{where} is a link to {member.leads_to!r} by way of another link, which could lead anywhere"
                raise InputError(msg)


def _write(source: Archive, member: Member, folder: Path) -> None:
    """Write a member that is a folder or a file; links wait until nothing is written any more."""
    path = folder / member.place
    if member.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
    elif member.kind == "file":
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            written = _copied(lambda: source.pieces(member, _PIECE), stream.write, most=member.size)
        if written != member.size:
            msg = f"{source.path}: {member.name!r} has {written} bytes or more, and says that it has {member.size}"
            raise InputError(f"{msg}; the archive is damaged, get it again")


def _copied(pieces: Callable[[], Iterator[bytes]], write: Callable[[bytes], int], *, most: int) -> int:
    """Write pieces until they end, or until there are more bytes than there may be; return how many there were."""
    total = 0
    for piece in pieces():
        total += len(piece)
        if total > most:
            break
        write(piece)
    return total


def _link(member: Member, folder: Path) -> None:
    path = folder / member.place
    if member.kind in {"link", "copy"}:
        path.parent.mkdir(parents=True, exist_ok=True)
    if member.kind == "copy":
        shutil.copyfile(folder / member.leads_to, path)
    elif member.kind == "link":
        path.symlink_to(member.leads_to)


@contextmanager
def _whole_or_gone(target: Path) -> Iterator[Path]:
    """Give a folder beside ``target`` that takes its name when the block ends well, and goes when it does not."""
    fresh = [folder for folder in target.absolute().parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.replace(target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        for above in fresh:
            with suppress(OSError):  # something else was put there meanwhile
                above.rmdir()
        raise
