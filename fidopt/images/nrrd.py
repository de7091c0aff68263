"""What a NRRD's header promises, held to what its file holds: the reader does not compare a stream's checksum."""

from __future__ import annotations

import math
from pathlib import Path
from typing import BinaryIO

from fidopt.errors import InputError
from fidopt.images.metaimage import unpacked

#: Bytes of a number, by the last word of its type's name without sign, size or ending.
_BYTES = {"char": 1, "short": 2, "int": 4, "long long": 8, "longlong": 8, "float": 4, "double": 8}
_SIZED = {
    f"{sign}int{bits}{ending}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64) for ending in ("", "_t")
}
#: Most bytes of a header's line.
_LINE = 1 << 16


def check_nrrd(path: str | Path) -> None:
    """Refuse a NRRD whose header is not whole, or whose voxels end too soon or do not unpack to the last byte.

    Voxels in several files or written as text are left to the reader.

    Raises
    ------
    InputError
        With how many bytes there are and how many were promised.
    """
    where = Path(path)
    with where.open("rb") as stream:
        header = _header(stream, where)
        missing = [key for key in ("type", "dimension", "sizes", "encoding") if key not in header]
        if missing:
            msg = f"{where}: its header lacks {', '.join(missing)}; it was cut short or is no NRRD, write it again"
            raise InputError(msg)
        promised, named = _promised(header, where), header.get("data file", header.get("datafile"))
        packed = {"gzip": True, "gz": True, "raw": False}.get(header["encoding"].lower())
        skips = any(header.get(key, "0") != "0" for key in ("line skip", "lineskip", "byte skip", "byteskip"))
        if promised is None or packed is None or skips:
            return
        if named is None:
            _compare(stream, promised, where, packed=packed)
            return
    if named.split()[0].upper() == "LIST" or "%" in named:
        return
    voxels = where.parent / named
    if not voxels.is_file():
        msg = f"{where}: its voxels' file {named} is not beside it; fetch it too"
        raise InputError(msg)
    with voxels.open("rb") as stream:
        _compare(stream, promised, voxels, packed=packed)


def _header(stream: BinaryIO, path: Path) -> dict[str, str]:
    """Return the fields of a header, and leave the stream where attached voxels begin."""
    if not stream.readline(_LINE).startswith(b"NRRD000"):
        msg = f"{path}: this is no NRRD file (it does not begin with NRRD and its version); fetch or write it again"
        raise InputError(msg)
    header: dict[str, str] = {}
    while line := stream.readline(_LINE):
        text = line.decode("latin-1").strip()
        if not text:
            return header
        key, colon, value = text.partition(":")
        # A key and its value are told from a field by an equals sign.
        if colon and not text.startswith("#") and not value.startswith("="):
            header[key.strip().lower()] = value.strip()
    if "data file" not in header and "datafile" not in header:
        msg = f"{path}: its header breaks off: no empty line ends it; it was cut short, fetch or write it again"
        raise InputError(msg)
    return header


def _promised(header: dict[str, str], path: Path) -> int | None:
    """Return how many bytes the voxels take, None where their type is none of numbers."""
    kind = " ".join(word for word in header["type"].lower().split() if word not in {"signed", "unsigned"})
    short = kind.removesuffix(" int") if kind != "int" else kind
    number = _SIZED.get(kind, _BYTES.get(short, _BYTES.get(short.removeprefix("u"))))
    try:
        sizes = [int(word) for word in header["sizes"].split()]
    except ValueError:
        sizes = []
    if header["dimension"] != str(len(sizes)) or any(n < 1 for n in sizes):
        said = f"dimension {header['dimension']} and sizes {header['sizes'][:60]}"
        msg = f"{path}: a positive size an axis is expected, its header says {said}; mend the header"
        raise InputError(msg)
    return None if number is None else number * math.prod(sizes)


def _compare(stream: BinaryIO, promised: int, path: Path, *, packed: bool) -> None:
    held = unpacked(stream, path)[0] if packed else path.stat().st_size - stream.tell()
    if held < promised:
        msg = f"{path}: its voxels end after {held} of {promised} bytes; it was cut short, fetch or write it again"
        raise InputError(msg)
