"""TIFF, OME-TIFF and SVS, through tifffile; large ones read region by region."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tifffile
import xarray as xr
import zarr

from blocks.image import grid_of, unit_of
from fidopt.errors import InputError
from fidopt.images.atomic import written_whole
from fidopt.images.calibration import Calibration, calibration
from fidopt.images.lazy import lazy
from fidopt.images.nifti import slabs
from fidopt.images.segments import Place, pages_of

#: Endings of the files this module reads.
ENDINGS = (".tif", ".tiff", ".svs")
#: An image of more bytes is read lazily, a block at a time.
LAZY_BYTES = 1 << 28
# tifffile logs what is wrong with a file and reads on; what matters of it is refused here, in one line.
logging.getLogger("tifffile").setLevel(logging.CRITICAL)
#: What tifffile's letters of axes stand for; every other axis must hold one element.
_ROLES = {"Z": "z", "Q": "z", "I": "z", "C": "c", "S": "c", "Y": "y", "X": "x"}


@dataclass(frozen=True)
class TiffVoxels:
    """One image of a TIFF as an array ([c,] [z,] y, x) whose regions are read when they are sliced.

    Parameters
    ----------
    place
        Which image of which file; no file stays open, so that the array pickles.
    order
        For each axis of the array, the axis of the file; the file's other axes hold one element.
    shape, dtype
        Of the array.
    channels
        Whether the first axis is of channels.
    axes
        Voxels an axis of the file.
    mapped
        Where the voxels begin and their type in the file, where they lie there one after the other as they are; None
        where they do not.
    segment
        Spatial shape of what is decoded at a time, None where any box is read by itself.
    """

    place: Place
    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    channels: bool
    axes: tuple[int, ...]
    mapped: tuple[int, str] | None
    segment: tuple[int, ...] | None

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
        parts = dict(zip(self.order, index, strict=True))
        box = tuple(slice(*parts.get(axis, slice(0, 1)).indices(n)[:2]) for axis, n in enumerate(self.axes))
        if self.mapped is not None:
            offset, kind = self.mapped
            file = np.memmap(self.place.path, kind, "r", offset=offset, shape=self.axes)
            block = np.asarray(file[box]).astype(self.dtype)
        else:
            pages = pages_of(self.place)
            block = self._whole(box) if pages is None else pages.read(box, self.dtype)
        return self.arrange(block.squeeze(tuple(a for a in range(block.ndim) if a not in self.order)))

    def arrange(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a block that has the axes of :attr:`order` as they come in the file, in the array's order."""
        kept = sorted(self.order)
        return block.transpose([kept.index(axis) for axis in self.order])

    def _whole(self, box: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return a box of an image that tifffile has to put together itself."""
        with tifffile.TiffFile(self.place.path) as tiff:
            store = tiff.series[self.place.series].aszarr(level=self.place.level)
            try:
                return np.asarray(zarr.open_array(store, mode="r")[box])
            finally:
                store.close()


def read_tiff(
    path: str | Path, *, series: int = 0, level: int = 0, lazy_bytes: int = LAZY_BYTES
) -> tuple[Any, Calibration]:
    """Read an image of a TIFF file.

    Parameters
    ----------
    path
        The file.
    series, level
        Which image, and how often halved; the first at its full resolution.
    lazy_bytes
        An image of at most so many bytes is read at once.

    Returns
    -------
    tuple of ndarray or dask array, and Calibration
        Voxels ([c,] [z,] y, x), lazy where it is large; samples or channels come first. And the size of a
        voxel as OME, ImageJ or Aperio metadata state it (a resolution in dots an inch says nothing of the object).

    Raises
    ------
    InputError
        When the file is no TIFF, is damaged, has other axes, or no such image.
    """
    voxels, said = open_tiff(path, series=series, level=level)
    if voxels.nbytes > lazy_bytes:
        return lazy(voxels), said
    with _refusing(Path(path)):
        return voxels[tuple(slice(0, n) for n in voxels.shape)], said


def open_tiff(path: str | Path, *, series: int = 0, level: int = 0) -> tuple[TiffVoxels, Calibration]:
    """Return an image of a TIFF file, none of its voxels read; as :func:`read_tiff`."""
    where = Path(path)
    with _refusing(where), tifffile.TiffFile(where) as tiff:
        _refuse_cut(tiff)
        found = _chosen(tiff, where, series=series, level=level)
        voxels = _voxels(found, Place.of(where, series=series, level=level))
        ndim = voxels.ndim - voxels.channels
        said = replace(calibration(tiff, ndim=ndim, series=series), channels=voxels.channels)
        if level and said.spacing:
            whole = _voxels(tiff.series[series], voxels.place).shape[-ndim:]
            factors = [round(n / m) for n, m in zip(whole, voxels.shape[-ndim:], strict=True)]
            spacing = tuple(s * f for s, f in zip(said.spacing, factors[::-1], strict=True))
            said = replace(said, spacing=spacing)
        return voxels, said


@contextmanager
def _refusing(where: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (tifffile.TiffFileError, ValueError, OSError, RuntimeError) as error:
        msg = f"{where}: the TIFF cannot be read ({error}); fetch or write it again"
        raise InputError(msg) from error
    except (LookupError, TypeError, AttributeError, SyntaxError, struct.error) as error:
        # What these say is of the library's own insides, or of an XML document's columns.
        what = "its OME metadata are no XML" if isinstance(error, SyntaxError) else "its list of pages is damaged"
        msg = f"{where}: the TIFF cannot be read: {what}; it was cut short or changed, fetch or write it again"
        raise InputError(msg) from error


def _chosen(tiff: Any, where: Path, *, series: int, level: int) -> Any:  # noqa: ANN401 - tifffile is not typed here
    """Return one image of a file."""
    if not 0 <= series < len(tiff.series):
        msg = f"{where} holds the images 0 to {len(tiff.series) - 1}, there is no image {series}"
        raise InputError(msg)
    levels = tiff.series[series].levels
    if not 0 <= level < len(levels):
        msg = f"{where}: image {series} has the levels 0 to {len(levels) - 1}, there is no level {level}"
        raise InputError(msg)
    return levels[level]


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


def _voxels(series: Any, place: Place) -> TiffVoxels:  # noqa: ANN401 - tifffile is not typed here
    roles: dict[str, int] = {}
    for axis, (letter, size) in enumerate(zip(series.axes, series.shape, strict=True)):
        role = _ROLES.get(letter, letter)
        if size == 1 and role not in {"y", "x"}:
            continue
        if role in roles or role not in "czyx":
            msg = f"{place.path}: axes x, y, z and channels are expected, got {series.axes} of {series.shape}"
            raise InputError(f"{msg}; write one image of them")
        roles[role] = axis
    order = tuple(roles[role] for role in "czyx" if role in roles)
    kind = np.dtype(series.dtype)
    offset = series.dataoffset if kind.kind != "b" else None
    mapped = None if offset is None else (int(offset), f"{series.keyframe.parent.byteorder}{kind.str[1:]}")
    key, ndim = series.keyframe, len(order) - ("c" in roles)
    tile = (key.tilelength, key.tilewidth) if key.is_tiled else (min(key.rowsperstrip, key.imagelength), key.imagewidth)
    segment = None if mapped else ((1,) * (ndim - 2) + tuple(int(n) for n in tile))
    shape = tuple(series.shape[a] for a in order)
    return TiffVoxels(place, order, shape, kind.newbyteorder("="), "c" in roles, tuple(series.shape), mapped, segment)
