"""What a file of ITK transforms promises, held to what it has: ITK takes a file that was cut short for an identity."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from fidopt.errors import InputError

#: Endings of the files in which ITK keeps transforms, by what they are.
TEXT, HDF5, MATLAB = (".tfm", ".txt"), (".h5", ".hdf5", ".hdf"), (".mat",)
#: Bytes of a number of MATLAB's fourth format: its type is a thousand for big-endian, and ten for single precision.
_MATLAB_BYTES = {0: 8, 10: 4}
#: A transform of transforms, which has no numbers of its own.
_COMPOSITE = "CompositeTransform"


#: Kinds whose fixed parameters are those of a lattice.
_ON_A_LATTICE = ("BSplineTransform", "DisplacementFieldTransform")


@dataclass(frozen=True)
class Promised:
    """One transform of a file.

    Parameters
    ----------
    kind
        ITK's name of it, such as ``Euler3DTransform_double_3_3``.
    parameters
        How many parameters the file has for it.
    """

    kind: str
    parameters: int


def promised(path: str | Path) -> list[Promised] | None:
    """Return the transforms that a file holds, those of a composite one by one; None where its format is not checked.

    Raises
    ------
    InputError
        When a part of one is missing, or what stands there is no number.
    """
    where = Path(path)
    ending = where.suffix.lower()
    if ending in TEXT:
        found = _of_text(where)
    elif ending in HDF5:
        found = _of_hdf5(where)
    elif ending in MATLAB:
        found = _of_matlab(where)
    else:
        return None
    if not found:
        msg = f"{where}: an ITK transform is expected, but there is none in the file; fetch or write it again"
        raise InputError(msg)
    return found


def _of_text(path: Path) -> list[Promised]:
    blocks: list[dict[str, str]] = []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), start=1):
        words = line.strip().strip("\0")
        if not words or words.startswith("#"):
            continue
        tag, colon, value = words.partition(":")
        if not colon or (tag.strip() != "Transform" and not blocks):
            msg = f"{path}: line {number}: an ITK transform has lines such as `Parameters: 1 2 3`, got {words[:40]!r}"
            raise InputError(f"{msg}; fetch or write it again")
        if tag.strip() == "Transform":
            blocks.append({})
        blocks[-1][tag.strip()] = value.strip()
    return [_of_block(block, path) for block in blocks if not block["Transform"].startswith(_COMPOSITE)]


def _of_block(block: dict[str, str], path: Path) -> Promised:
    kind = block["Transform"]
    for tag in ("Parameters", "FixedParameters"):
        if tag not in block:
            msg = f"{path}: its transform {kind} lacks the line {tag}: it was cut short, fetch or write it again"
            raise InputError(msg)
        for word in block[tag].split():
            if not _is_finite(word):
                msg = f"{path}: {tag} of {kind} must be finite numbers, got {word[:40]!r}; mend the file"
                raise InputError(msg)
    if kind.startswith(_ON_A_LATTICE):
        _refuse_broken_sizes(block["FixedParameters"].split(), kind, path)
    return Promised(kind, len(block["Parameters"].split()))


def _refuse_broken_sizes(words: list[str], kind: str, path: Path) -> None:
    """Refuse a lattice of 6.5 points, which ITK takes for 6; sizes are followed by origin, spacing and direction."""
    sizes = words[: {10: 2, 18: 3}.get(len(words), 0)]
    if any(not float(word).is_integer() for word in sizes):
        msg = f"{path}: FixedParameters of {kind} begin with its sizes, whole numbers, got {' '.join(sizes)}"
        raise InputError(f"{msg}; mend the file")


def _is_finite(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _of_hdf5(path: Path) -> list[Promised]:
    found: list[Promised] = []
    try:
        # ITK's own copy of HDF5 prints pages about what it cannot read: all of it is read here before.
        with h5py.File(path, "r") as file:
            group = file["TransformGroup"]
            for name in sorted(group, key=int):
                kind = np.ravel(group[name]["TransformType"][()])[0].decode("latin-1")
                if not kind.startswith(_COMPOSITE):
                    # ITK wrote the names without the letter s of Transform for years, and reads them to this day.
                    keys = [key for key in group[name] if key.endswith("Parameters")]
                    values = {"Fixed" in key: np.ravel(group[name][key][()]) for key in keys}
                    for numbers in values.values():
                        _refuse_infinite(numbers, kind, path)
                    found.append(Promised(kind, values[False].size))
    except InputError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        msg = f"{path}: an ITK transform is expected in the HDF5 file, which cannot be read ({said}); it was cut short"
        raise InputError(f"{msg}, is damaged or is none: fetch or write it again") from error
    return found


def _refuse_infinite(values: npt.ArrayLike, kind: str, path: Path) -> None:
    if not np.isfinite(np.asarray(values, dtype=np.float64)).all():
        msg = f"{path}: the parameters of {kind} must be finite numbers; mend the file"
        raise InputError(msg)


def _of_matlab(path: Path) -> list[Promised]:
    content, at = path.read_bytes(), 0
    matrices: list[tuple[str, int]] = []
    while at < len(content):
        name, size, stop = _matrix(content, at, path)
        matrices.append((name, size))
        at = stop
    if len(matrices) % 2 or any(name != "fixed" for name, _ in matrices[1::2]):
        msg = f"{path}: every transform of ITK's is followed by its fixed parameters, got the matrices"
        raise InputError(f"{msg} {', '.join(name for name, _ in matrices)}: it was cut short, fetch or write it again")
    return [Promised(name, size) for name, size in matrices[::2] if not name.startswith(_COMPOSITE)]


def _matrix(content: bytes, at: int, path: Path) -> tuple[str, int, int]:
    """Return the name of a matrix, how many numbers it has, and where the next one begins."""
    for order in "<>":
        if len(content) - at < 20:
            break
        kind, rows, columns, imaginary, letters = struct.unpack_from(f"{order}5i", content, at)
        number = _MATLAB_BYTES.get(kind - (1000 if order == ">" else 0))
        if number is None or imaginary or min(rows, columns, letters - 1) < 0:
            continue
        first = at + 20 + letters
        stop = first + rows * columns * number
        if stop > len(content):
            break
        name = content[at + 20 : first].rstrip(b"\0").decode("latin-1")
        _refuse_infinite(np.frombuffer(content[first:stop], dtype=f"{order}f{number}"), name, path)
        return name, rows * columns, stop
    msg = f"{path}: a MATLAB file (version 4) of ITK transforms is expected, but byte {at} begins no whole matrix"
    raise InputError(f"{msg}; it was cut short or is none: fetch or write it again")
