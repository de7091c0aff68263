"""NIfTI files: read to the end and to the last bit, and written as ITK writes them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import xarray as xr
from nibabel.nifti1 import Nifti1Header
from nibabel.nifti2 import Nifti2Header
from nibabel.spatialimages import HeaderDataError

from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of, unit_of
from fidopt.errors import InputError
from fidopt.images.atomic import written_whole
from fidopt.images.geometry import grid_from_nifti, nifti_header

#: NIfTI's intent of a vector whose components ITK leaves as they are, and of one whose x and y it negates.
INTENT_VECTOR, INTENT_DISPLACEMENT = 1007, 1006
#: NIfTI's codes of the units it knows, in ``xyzt_units``.
UNIT_CODES = {"m": 1, "mm": 2, "um": 3}
_GZIP_MAGIC = b"\x1f\x8b"
_STEP = 1 << 24


@dataclass(frozen=True)
class NiftiFile:
    """What a NIfTI file holds, before it is decided what it means.

    Parameters
    ----------
    name
        The file, as errors call it.
    header
        nibabel's header, exactly as in the file.
    shape
        Voxels an axis as in the file: x, y[, z[, volumes[, components]]].
    voxels
        Values in the file's order (its axes are those of ``shape``), not scaled; a view of the file where it is not
        compressed.
    """

    name: str
    header: Any
    shape: tuple[int, ...]
    voxels: npt.NDArray[Any]

    @property
    def intent(self) -> int:
        """NIfTI's intent code."""
        return int(self.header["intent_code"])

    @property
    def is_vector(self) -> bool:
        """Whether the file says that it holds a vector a voxel: five axes and an intent for vectors."""
        return len(self.shape) == 5 and self.intent in {INTENT_VECTOR, INTENT_DISPLACEMENT}

    def grid(self, ndim: int) -> Grid:
        """Return the grid of the first ``ndim`` axes, in millimetres, as ITK reads it."""
        return grid_from_nifti(self.header, ndim=ndim, name=self.name)

    def values(self) -> npt.NDArray[Any]:
        """Return the values scaled as the header says, in the machine's byte order.

        A scaled integer of at most 16 bits becomes float32 as in ITK, a wider one float64.
        """
        slope, inter = float(self.header["scl_slope"]), float(self.header["scl_inter"])
        native = self.voxels.dtype.newbyteorder("=")
        if np.isfinite(slope) and slope != 0 and not np.isfinite(inter):
            msg = f"{self.name}: its header adds scl_inter = {inter} to every voxel, not a number; mend the header"
            raise InputError(msg)
        scaled = np.isfinite(slope) and slope != 0 and (slope, inter) != (1.0, 0.0) and native.names is None
        if not scaled:
            return self.voxels if self.voxels.dtype == native else self.voxels.astype(native)
        small = native.kind in "iub" and native.itemsize <= 2
        kind = np.float32 if small or native == np.float32 else np.float64
        return np.asarray(self.voxels * np.float64(slope) + np.float64(inter)).astype(kind)


def open_nifti(path: str | Path) -> NiftiFile:
    """Read a .nii or .nii.gz file whole: a gzip stream to its end and its checksum, and every byte the header promises.

    Raises
    ------
    InputError
        When the file is no NIfTI file, is damaged, or ends before its last voxel.
    """
    where = Path(path)
    try:
        with where.open("rb") as raw:
            packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            if packed:
                with gzip.open(raw) as stream:
                    return _read(where, stream, packed=packed)
            return _read(where, raw, packed=packed)
    except FileNotFoundError as error:
        msg = f"{where}: there is no such file"
        raise InputError(msg) from error


def check_gzip(path: str | Path) -> int:
    """Read a gzip file to its end and return how many bytes it holds.

    Raises
    ------
    InputError
        When the stream breaks off or its checksum is wrong.
    """
    with gzip.open(path) as stream:
        total = 0
        while step := _some(Path(path), stream):
            total += len(step)
    return total


def write_nifti(path: str | Path, image: xr.DataArray, *, state_unit: bool = False) -> None:
    """Write an image as NIfTI, its type kept (bool as uint8, float16 as float32), a slab at a time.

    The direction is the image's as NIfTI holds it: float32 numbers, the same that SimpleITK writes. Channels are
    written as SimpleITK writes a vector image: five axes, intent 1007.

    Parameters
    ----------
    path
        A name that ends in ``.nii`` or ``.nii.gz``.
    image
        Dims ([c,] [z,] y, x), lazy or not.
    state_unit
        Write the image's unit into the header when NIfTI knows it. By default only millimetres are stated and other
        numbers are written as they are, with no unit, since ITK turns micrometres and metres into millimetres.
    """
    unit = unit_of(image)
    code = UNIT_CODES.get(unit or "", 0) if state_unit or unit == "mm" else 0
    dtype = _nifti_type(image.dtype, Path(path))
    grid = grid_of(image)
    components = int(image.sizes["c"]) if "c" in image.dims else None
    header = _header(grid, dtype, components=components, unit_code=code)
    with _writing(Path(path)) as stream:
        stream.write(header.binaryblock + b"\0" * (int(header["vox_offset"]) - len(header.binaryblock)))
        for slab in slabs(image):
            stream.write(np.ascontiguousarray(slab, dtype=dtype).data)


def write_field(path: str | Path, vectors: npt.ArrayLike, grid: Grid) -> None:
    """Write a displacement field as NIfTI: five axes, intent 1007, float32, the world (LPS) components as they are.

    Parameters
    ----------
    path
        A name that ends in ``.nii`` or ``.nii.gz``.
    vectors
        Displacements (ndim, [z,] y, x), components x, y[, z], in the grid's unit.
    grid
        Where the vectors stand.
    """
    array = np.asarray(vectors)
    if array.shape != (grid.ndim, *grid.shape):
        msg = f"a field on a grid of shape {grid.shape} has shape {(grid.ndim, *grid.shape)}, got {array.shape}"
        raise InputError(msg)
    header = _header(grid, np.dtype(np.float32), components=grid.ndim, unit_code=0)
    with _writing(Path(path)) as stream:
        stream.write(header.binaryblock + b"\0" * (int(header["vox_offset"]) - len(header.binaryblock)))
        for component in array:
            stream.write(np.ascontiguousarray(component, dtype=np.float32).data)


def slabs(image: xr.DataArray) -> Iterator[npt.NDArray[Any]]:
    """Yield an image's values in the order they lie in a file, a slab of whole chunks along z (y in 2D) at a time."""
    channels = range(image.sizes["c"]) if "c" in image.dims else (None,)
    for channel in channels:
        plane = image if channel is None else image.isel(c=channel)
        axis = plane.dims[0]
        stops = np.cumsum(plane.chunksizes[axis]) if plane.chunksizes else [plane.sizes[axis]]
        start = 0
        for stop in stops:
            yield np.asarray(compute(plane.isel({axis: slice(start, int(stop))})))
            start = int(stop)


def _read(path: Path, stream: BufferedIOBase, *, packed: bool) -> NiftiFile:
    header = _read_header(path, stream)
    shape = tuple(int(n) for n in header["dim"][1 : int(header["dim"][0]) + 1])
    if not 2 <= len(shape) <= 5 or any(n < 1 for n in shape):
        msg = f"{path}: an image of 2 to 5 axes is expected, its header says {shape}"
        raise InputError(msg)
    dtype, offset = _stored_type(path, header), _offset(path, header)
    expected = offset + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if packed:
        content = np.empty(expected, dtype=np.uint8)
        have = _fill(path, stream, content)
    else:
        have = path.stat().st_size
    if have < expected:
        msg = f"{path}: the file ends after {have} of {expected} bytes; it was cut short, fetch or write it again"
        raise InputError(msg)
    voxels: npt.NDArray[Any]
    if packed:
        voxels = content[offset:].view(dtype).reshape(shape, order="F")
    else:
        voxels = np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order="F")
    return NiftiFile(str(path), header, shape, voxels)


def _read_header(path: Path, stream: BufferedIOBase) -> Any:  # noqa: ANN401 - nibabel is untyped
    first = _exactly(path, stream, 4)
    size = {348: 348, 540: 540}.get(int.from_bytes(first, "little"), int.from_bytes(first, "big"))
    kinds = {348: Nifti1Header, 540: Nifti2Header}
    if size not in kinds:
        msg = f"{path}: this is no NIfTI file (it does not begin with a header's length)"
        raise InputError(msg)
    header = kinds[size](first + _exactly(path, stream, size - 4), check=False)
    # ITK takes any other word for the older Analyze, whose geometry is another.
    magic, wanted = header["magic"].tobytes()[:4], b"n+1\0" if size == 348 else b"n+2\0"
    if magic != wanted:
        msg = f"{path}: this is no NIfTI file in one piece (its header says {magic!r} where {wanted!r} is expected);"
        raise InputError(f"{msg} fetch it again, or have it written as .nii")
    return header


def _stored_type(path: Path, header: Any) -> np.dtype[Any]:  # noqa: ANN401 - nibabel is untyped
    try:
        dtype: np.dtype[Any] = np.dtype(header.get_data_dtype())
    except (HeaderDataError, KeyError) as error:
        msg = f"{path}: its data type (code {int(header['datatype'])}) is not known"
        raise InputError(msg) from error
    if dtype.kind == "c" or dtype.itemsize == 16:
        msg = f"{path}: integers, floats of 32 or 64 bits or RGB are expected, got {dtype}"
        raise InputError(msg)
    return dtype


def _offset(path: Path, header: Any) -> int:  # noqa: ANN401 - nibabel is untyped
    offset = float(header["vox_offset"])
    if not int(header["sizeof_hdr"]) <= offset < 2.0**63:
        msg = f"{path}: voxels are expected behind the header, its vox_offset says byte {offset:g}; mend the header"
        raise InputError(msg)
    return int(offset)


def _fill(path: Path, stream: BufferedIOBase, content: npt.NDArray[np.uint8]) -> int:
    """Fill ``content`` from the stream's beginning, read on to its end, and return how many bytes there were."""
    stream.seek(0)
    total = 0
    while step := _some(path, stream, expected=content.size):
        kept = np.frombuffer(step, dtype=np.uint8)[: max(0, content.size - total)]
        content[total : total + kept.size] = kept
        total += len(step)
    return total


def _some(path: Path, stream: BufferedIOBase, *, expected: int | None = None) -> bytes:
    try:
        return stream.read(_STEP)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        goal = f" of {expected}" if expected else ""
        what = "ends too soon" if isinstance(error, EOFError) else f"is damaged ({error})"
        msg = f"{path}: the gzip stream {what}, after {_held(path)}{goal} bytes; fetch or write it again"
        raise InputError(msg) from error


def _held(path: Path) -> int:
    """Return how many bytes a damaged gzip file gives before it breaks off."""
    total = 0
    # ``read1`` reads once what lies beneath, where ``read`` throws away what it has when the stream breaks off.
    with gzip.open(path) as stream, suppress(EOFError, zlib.error, gzip.BadGzipFile):
        while step := stream.read1(_STEP):
            total += len(step)
    return total


def _exactly(path: Path, stream: BufferedIOBase, count: int) -> bytes:
    try:
        block = stream.read(count)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        block, reason = b"", f" ({error})"
    else:
        reason = ""
    if len(block) < count:
        msg = f"{path}: the file ends inside its header{reason}; it was cut short, fetch or write it again"
        raise InputError(msg)
    return block


def _nifti_type(dtype: np.dtype[Any], path: Path) -> np.dtype[Any]:
    kept = {"b1": "u1", "f2": "f4"}.get(dtype.str[1:], dtype.str[1:])
    if kept not in {"i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"}:
        msg = f"{path}: NIfTI holds integers and floats of 32 or 64 bits, not {dtype}"
        raise InputError(msg)
    return np.dtype("<" + kept)


def _header(grid: Grid, dtype: np.dtype[Any], *, components: int | None, unit_code: int) -> Any:  # noqa: ANN401
    header = nifti_header(grid)
    dim = np.ones(8, dtype=np.int64)
    dim[0] = grid.ndim if components is None else 5
    dim[1 : grid.ndim + 1] = grid.shape[::-1]
    dim[5] = components or 1
    if dim.max() > np.iinfo(np.int16).max:
        msg = f"NIfTI holds at most 32767 voxels an axis, the image has {grid.shape[::-1]} (x, y, z)"
        raise InputError(msg)
    header["dim"] = dim
    header.set_data_dtype(dtype)
    header["vox_offset"] = 352
    header["intent_code"] = 0 if components is None else INTENT_VECTOR
    header["xyzt_units"] = unit_code
    return header


@contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    with written_whole(path) as part, part.open("wb") as raw:
        if path.name.endswith(".gz"):
            # No name and no time in the gzip header: the same image gives the same bytes. Higher levels save 2 %.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=1, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield raw
