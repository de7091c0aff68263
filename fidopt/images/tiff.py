"""TIFF, OME-TIFF and SVS, through tifffile; large ones read region by region."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
import tifffile
import xarray as xr
import zarr

from blocks.image import grid_of, unit_of
from fidopt.errors import InputError
from fidopt.images.atomic import written_whole
from fidopt.images.nifti import slabs

#: Endings of the files this module reads.
ENDINGS = (".tif", ".tiff", ".svs")
#: An image of more bytes is read lazily, a block at a time.
LAZY_BYTES = 1 << 28
# tifffile logs what is wrong with a file and reads on; what matters of it is refused here, in one line.
logging.getLogger("tifffile").setLevel(logging.CRITICAL)
#: What tifffile's letters of axes stand for; every other axis must hold one element.
_ROLES = {"Z": "z", "Q": "z", "I": "z", "C": "c", "S": "c", "Y": "y", "X": "x"}


@dataclass(frozen=True)
class Calibration:
    """What a TIFF says of its voxels' size.

    Parameters
    ----------
    spacing
        x, y[, z], NaN along an axis the file leaves out; None where it says nothing.
    unit
        Unit of the spacing, as the file writes it; None where it says nothing.
    channels
        Whether the image's first axis is of channels.
    """

    spacing: tuple[float, ...] | None
    unit: str | None
    channels: bool = False


@dataclass(frozen=True)
class TiffVoxels:
    """The first image of a TIFF as an array ([c,] [z,] y, x) whose regions are read when they are sliced.

    Parameters
    ----------
    path
        The file; it is opened anew for every region, so that the array pickles.
    order
        For each axis of the array, the axis of the file; the file's other axes hold one element.
    shape, dtype
        Of the array.
    channels
        Whether the first axis is of channels.
    """

    path: str
    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    channels: bool

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all voxels."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __getitem__(self, index: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the voxels of a region, a slice an axis."""
        with tifffile.TiffFile(self.path) as tiff:
            store = tiff.series[0].aszarr(level=0)
            try:
                array = zarr.open_array(store, mode="r")
                parts = dict(zip(self.order, index, strict=True))
                block = np.asarray(array[tuple(parts.get(axis, 0) for axis in range(array.ndim))])
            finally:
                store.close()
        return self.arrange(block)

    def arrange(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a block that has the axes of :attr:`order` as they come in the file, in the array's order."""
        kept = sorted(self.order)
        return block.transpose([kept.index(axis) for axis in self.order])


def read_tiff(path: str | Path) -> tuple[Any, Calibration]:
    """Read the first image of a TIFF file at its full resolution.

    Returns
    -------
    tuple of ndarray or dask array, and Calibration
        Voxels ([c,] [z,] y, x), lazy above :data:`LAZY_BYTES`; samples or channels come first. And the size of a
        voxel as OME, ImageJ or Aperio metadata state it (a resolution in dots an inch says nothing of the object).

    Raises
    ------
    InputError
        When the file is no TIFF, is damaged, or has other axes.
    """
    where = Path(path)
    try:
        with tifffile.TiffFile(where) as tiff:
            _refuse_cut(tiff)
            voxels = _voxels(tiff, where)
            calibration = replace(_calibration(tiff, ndim=voxels.ndim - voxels.channels), channels=voxels.channels)
            if voxels.nbytes <= LAZY_BYTES:
                whole = np.asarray(tiff.series[0].asarray(level=0))
                ones = tuple(axis for axis in range(whole.ndim) if axis not in voxels.order)
                return voxels.arrange(whole.squeeze(ones)), calibration
    except (tifffile.TiffFileError, ValueError, OSError, LookupError, TypeError, RuntimeError, struct.error) as error:
        msg = f"{where}: the TIFF cannot be read ({error}); fetch or write it again"
        raise InputError(msg) from error
    return _lazy(voxels), calibration


def write_tiff(path: str | Path, image: xr.DataArray) -> None:
    """Write an image as OME-TIFF, losslessly compressed, plane by plane; its spacing and unit are kept.

    TIFF has no place for an origin or a direction. The 64-bit integers and half floats that OME-TIFF does not know
    are written as plain TIFF, without a spacing.

    Parameters
    ----------
    path
        A name that ends in ``.tif`` or ``.tiff``.
    image
        Dims ([c,] [z,] y, x), lazy or not; three channels of uint8 or uint16 in 2D are written as RGB.
    """
    if "z" in image.dims and image.sizes["z"] == 1:
        msg = "a TIFF of one plane reads back as a picture, not as a volume; write a .nii.gz or .mha"
        raise InputError(msg)
    colour = image.dims == ("c", "y", "x") and image.sizes["c"] == 3 and image.dtype in (np.uint8, np.uint16)
    ome = image.dtype.str[1:] not in {"i8", "u8", "f2"}
    metadata: dict[str, Any] = {"axes": "YXS" if colour else "".join(str(d) for d in image.dims).upper()}
    unit = unit_of(image) or "px"
    if ome:
        for axis, size in zip("XYZ", grid_of(image).spacing, strict=False):
            metadata[f"PhysicalSize{axis}"] = size
            metadata[f"PhysicalSize{axis}Unit"] = {"um": "µm", "px": "pixel"}.get(unit, unit)
    shape = (*image.shape[1:], 3) if colour else image.shape
    with written_whole(path) as part:
        tifffile.imwrite(
            part,
            _colour_planes(image) if colour else _planes(image),
            shape=shape,
            dtype=image.dtype,
            photometric="rgb" if colour else "minisblack",
            bigtiff=image.nbytes > 1 << 31,
            compression="zlib",
            ome=ome,
            metadata=metadata,
        )


def _planes(image: xr.DataArray) -> Iterator[npt.NDArray[Any]]:
    """Yield the planes (y, x) of an image in the order of its axes."""
    flat = "z" not in image.dims
    for channel in image if "c" in image.dims else (image,):
        if flat:
            yield np.concatenate(list(slabs(channel)))
        else:
            for slab in slabs(channel):
                yield from slab


def _colour_planes(image: xr.DataArray) -> Iterator[npt.NDArray[Any]]:
    yield np.ascontiguousarray(np.stack(list(_planes(image)), axis=-1))


def _refuse_cut(tiff: Any) -> None:  # noqa: ANN401 - tifffile is not typed here
    """Refuse a file some of whose planes lie beyond its end; tifffile would leave them out, or read zeros."""
    handle, first, pages = tiff.filehandle, tiff.pages.first, _count_pages(tiff)
    # ImageJ, and tifffile itself, write one page for planes that follow one another.
    said = (tiff.imagej_metadata or {}).get("images", 1)
    if shaped := tiff.shaped_metadata:
        said = max(
            said, int(np.prod(shaped[0]["shape"], dtype=np.int64)) * first.dtype.itemsize // max(1, first.nbytes)
        )
    expected = first.dataoffsets[0] + said * first.nbytes
    if said > pages and handle.size < expected:
        msg = f"it was cut short: it ends after {handle.size} of {expected} bytes"
        raise ValueError(msg)


def _count_pages(tiff: Any) -> int:  # noqa: ANN401 - tifffile is not typed here
    """Return how many pages a file says it has; each says where the next one is, the last zero."""
    handle, form = tiff.filehandle, tiff.tiff
    seen: set[int] = set()
    offset = tiff.pages.first.offset
    while offset and offset not in seen:
        seen.add(offset)
        handle.seek(offset)
        (tags,) = struct.unpack(form.tagnoformat, handle.read(form.tagnosize))
        handle.seek(offset + form.tagnosize + tags * form.tagsize)
        word = handle.read(form.offsetsize)
        if len(word) < form.offsetsize or (offset := struct.unpack(form.offsetformat, word)[0]) >= handle.size:
            msg = f"it was cut short: its list of planes breaks off after {len(seen)}"
            raise ValueError(msg)
    return len(seen)


def _voxels(tiff: Any, path: Path) -> TiffVoxels:  # noqa: ANN401 - tifffile is not typed here
    series = tiff.series[0]
    roles: dict[str, int] = {}
    for axis, (letter, size) in enumerate(zip(series.axes, series.shape, strict=True)):
        role = _ROLES.get(letter, letter)
        if size == 1 and role not in {"y", "x"}:
            continue
        if role in roles or role not in "czyx":
            msg = f"{path}: axes x, y, z and channels are expected, got {series.axes} of {series.shape}"
            raise InputError(f"{msg}; write one image of them")
        roles[role] = axis
    order = tuple(roles[role] for role in "czyx" if role in roles)
    dtype = np.dtype(series.dtype).newbyteorder("=")
    return TiffVoxels(str(path), order, tuple(series.shape[a] for a in order), dtype, "c" in roles)


def _lazy(voxels: TiffVoxels) -> Any:  # noqa: ANN401 - dask is untyped
    block = (4096, 4096) if voxels.ndim - voxels.channels == 2 else (64, 1024, 1024)
    chunks = (voxels.shape[0], *block) if voxels.channels else block
    return da.from_array(voxels, chunks=chunks, meta=np.empty((0,) * voxels.ndim, voxels.dtype))


def _calibration(tiff: Any, *, ndim: int) -> Calibration:  # noqa: ANN401 - tifffile is not typed here
    if tiff.is_ome:
        return _of_ome(tifffile.xml2dict(tiff.ome_metadata), ndim=ndim)
    if tiff.is_imagej:
        facts = tiff.imagej_metadata or {}
        steps = [_pixel(tiff, "XResolution"), _pixel(tiff, "YResolution"), float(facts.get("spacing", np.nan))]
        unit = str(facts.get("unit") or "").replace("\\u00B5", "µ")
        return Calibration(tuple(steps[:ndim]), unit) if unit and unit != "pixel" else Calibration(None, None)
    if tiff.is_svs:
        facts = tifffile.tifffile.svs_description_metadata(tiff.pages[0].description)
        size = facts.get("MPP")
        return Calibration((float(size),) * ndim, "um") if size else Calibration(None, None)
    return Calibration(None, None)


def _of_ome(document: dict[str, Any], *, ndim: int) -> Calibration:
    image = document["OME"]["Image"]
    pixels = (image[0] if isinstance(image, list) else image)["Pixels"]
    axes = "XYZ"[:ndim]
    if not any(f"PhysicalSize{axis}" in pixels for axis in axes):
        return Calibration(None, None)
    spacing = tuple(float(pixels.get(f"PhysicalSize{axis}", np.nan)) for axis in axes)
    units = {str(pixels.get(f"PhysicalSize{axis}Unit", "µm")) for axis in axes if f"PhysicalSize{axis}" in pixels}
    if len(units) > 1:
        msg = f"its OME metadata give one voxel in several units ({', '.join(sorted(units))})"
        raise ValueError(msg)
    return Calibration(spacing, units.pop())


def _pixel(tiff: Any, tag: str) -> float:  # noqa: ANN401 - tifffile is not typed here
    found = tiff.pages[0].tags.get(tag)
    if found is None or not found.value[0]:
        return float("nan")
    count, length = found.value
    return float(length) / float(count)
