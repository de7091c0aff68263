"""What a MetaImage's header promises, held to what its file holds: SimpleITK reads damaged voxels without an error."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import BinaryIO

from fidopt.errors import InputError

#: Bytes of a number of each of MetaImage's types.
_BYTES = {"CHAR": 1, "SHORT": 2, "INT": 4, "LONG": 4, "LONG_LONG": 8, "FLOAT": 4, "DOUBLE": 8}
#: Keys of the geometry, by all the names that they go by.
_GEOMETRY = (
    "ElementSpacing",
    "ElementSize",
    "Offset",
    "Origin",
    "Position",
    "TransformMatrix",
    "Rotation",
    "Orientation",
)
_TRUE = ("true", "1", "t")
_LOCAL = ("LOCAL", "local", "Local")
_STEP = 1 << 20


def check_metaimage(path: str | Path) -> None:
    """Refuse a MetaImage whose header is not whole, or whose voxels end too soon or do not unpack to the last byte.

    Voxels in several files, and types that are not of numbers, are left to the reader.

    Raises
    ------
    InputError
        With how many bytes there are and how many were promised.
    """
    where = Path(path)
    with where.open("rb") as stream:
        header = _header(stream)
        missing = [key for key in ("DimSize", "ElementType", "ElementDataFile") if key not in header]
        if missing:
            msg = f"{where}: its header lacks {', '.join(missing)}; it was cut short or is no MetaImage, write it again"
            raise InputError(msg)
        _check_numbers(header, where)
        # ITK takes what says nothing of it for bytes, too.
        if header.get("BinaryData", "True").lower() not in _TRUE:
            msg = f"{where}: its header says BinaryData = {header['BinaryData'] or 'nothing'}; voxels as bytes (True)"
            raise InputError(f"{msg} are read, not in words: mend the header, or write it again")
        promised = _promised(header, where)
        if promised is None:
            return
        if header["ElementDataFile"] in _LOCAL:
            _compare(stream, header, promised, where)
            return
    voxels = where.with_name(header["ElementDataFile"])
    if " " in header["ElementDataFile"] or header["ElementDataFile"] == "LIST":
        return
    if not voxels.is_file():
        msg = f"{where}: its voxels' file {voxels.name} is not beside it; fetch it too"
        raise InputError(msg)
    with voxels.open("rb") as stream:
        _compare(stream, header, promised, voxels)


def _header(stream: BinaryIO) -> dict[str, str]:
    """Return the keys of a header, and leave the stream where its voxels begin."""
    header: dict[str, str] = {}
    while line := stream.readline(1 << 16):
        key, equals, value = line.decode("latin-1").partition("=")
        if not equals:
            break
        header[key.strip()] = value.strip()
        if key.strip() == "ElementDataFile":
            break
    return header


def _check_numbers(header: dict[str, str], path: Path) -> None:
    """Refuse a geometry that is not of finite numbers: readers take what they cannot read for zero."""
    for key in _GEOMETRY:
        for word in header.get(key, "").split():
            try:
                finite = math.isfinite(float(word))
            except ValueError:
                finite = False
            if not finite:
                msg = f"{path}: its header says {key} = {header[key]}, finite numbers are expected; mend the header"
                raise InputError(msg)


def _promised(header: dict[str, str], path: Path) -> int | None:
    """Return how many bytes the voxels take, None where the type is not one of numbers."""
    kind = header["ElementType"].removeprefix("MET_").removesuffix("_ARRAY").removeprefix("U")
    try:
        sizes = [int(n) for n in header["DimSize"].split()]
        channels = int(header.get("ElementNumberOfChannels", "1"))
        axes = int(header.get("NDims", len(sizes)))
    except ValueError:
        sizes, channels, axes = [0], 1, 1
    if any(n < 1 for n in [*sizes, channels]) or len(sizes) != axes:
        msg = f"{path}: a positive size an axis is expected, its header says DimSize = {header['DimSize']}"
        raise InputError(msg)
    if kind not in _BYTES:
        return None
    total = channels * _BYTES[kind]
    for size in sizes:
        total *= size
    return total


def _compare(stream: BinaryIO, header: dict[str, str], promised: int, path: Path) -> None:
    if header.get("CompressedData", "False").lower() in _TRUE:
        held, taken = unpacked(stream, path)
        said = header.get("CompressedDataSize", "nothing")
        if said != str(taken):
            # The reader hands out memory that was never written where the length is not the stream's.
            msg = f"{path}: its compressed voxels take {taken} bytes, its header says CompressedDataSize = {said};"
            raise InputError(f"{msg} mend the header, or write it again")
    else:
        held = path.stat().st_size - stream.tell()
    if held < promised:
        msg = f"{path}: its voxels end after {held} of {promised} bytes; it was cut short, fetch or write it again"
        raise InputError(msg)


def unpacked(stream: BinaryIO, path: Path) -> tuple[int, int]:
    """Return how many bytes a zlib or gzip stream holds, read to its end and its checksum, and how many it takes."""
    unpacking, held, taken = zlib.decompressobj(zlib.MAX_WBITS | 32), 0, 0
    try:
        while not unpacking.eof and (step := stream.read(_STEP)):
            held, taken = held + len(unpacking.decompress(step)), taken + len(step)
    except zlib.error as error:
        msg = f"{path}: its compressed voxels are damaged after about {held} bytes ({error}); fetch or write it again"
        raise InputError(msg) from error
    if not unpacking.eof:
        msg = f"{path}: its compressed voxels end too soon, after {held} bytes; fetch or write it again"
        raise InputError(msg)
    return held, taken - len(unpacking.unused_data)
