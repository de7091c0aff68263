"""Datasets of HDF5 files, as ``FILE:dataset``, read region by region."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fidopt.errors import InputError
from fidopt.images.calibration import Calibration
from fidopt.images.lazy import lazy

#: Endings of the files this module reads.
ENDINGS = (".h5", ".hdf5", ".hdf")
#: The attribute in which ilastik, PlantSeg and others write a voxel's size: z, y, x in micrometres.
ELEMENT_SIZE = "element_size_um"
#: Bytes of decoded chunks that an opened dataset keeps while a region is read.
_CACHE_BYTES = 1 << 26


@dataclass(frozen=True)
class Hdf5Voxels:
    """A dataset as an array ([c,] [z,] y, x) whose regions are read when they are sliced.

    Parameters
    ----------
    path, dataset
        The file, opened anew for every region so that the array pickles, and the dataset's name in it.
    order
        For each axis of the array, the axis of the dataset; the dataset's others hold one element.
    axes
        Voxels an axis of the dataset.
    dtype
        Of the array.
    channels
        Whether the first axis is of channels.
    chunks
        Voxels that are decoded at a time, the dataset's axes; None where it is not chunked.
    """

    path: str
    dataset: str
    order: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    channels: bool
    chunks: tuple[int, ...] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis."""
        return tuple(self.axes[axis] for axis in self.order)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.order)

    @property
    def segment(self) -> tuple[int, ...] | None:
        """Spatial shape of what is decoded at a time."""
        if self.chunks is None:
            return None
        return tuple(self.chunks[axis] for axis in self.order[int(self.channels) :])

    def __getitem__(self, index: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the voxels of a box, a slice an axis."""
        import h5py

        parts = dict(zip(self.order, index, strict=True))
        box = tuple(parts.get(axis, slice(0, 1)) for axis in range(len(self.axes)))
        with h5py.File(self.path, "r", rdcc_nbytes=_CACHE_BYTES) as file:
            block = np.asarray(file[self.dataset][box]).astype(self.dtype, copy=False)
        kept = sorted(self.order)
        squeezed = block.squeeze(tuple(axis for axis in range(block.ndim) if axis not in self.order))
        return squeezed.transpose([kept.index(axis) for axis in self.order])


def split_name(name: str) -> tuple[str, str] | None:
    """Return file and dataset of ``FILE:dataset`` (the dataset empty for ``FILE`` alone); None for another name."""
    for ending in ENDINGS:
        before, found, after = name.partition(ending)
        if found and (not after or after.startswith(":")):
            return before + found, after[1:].strip("/")
    return None


def read_hdf5(path: str, dataset: str) -> tuple[Any, Calibration]:
    """Read a dataset of an HDF5 file.

    Parameters
    ----------
    path
        The file.
    dataset
        Its name in the file; may be empty where there is only one.

    Returns
    -------
    tuple of dask array and Calibration
        Voxels ([c,] [z,] y, x), lazy: of four axes the one of at most four elements is the channels, the first or
        the last. And the size of a voxel, from the attribute :data:`ELEMENT_SIZE`.

    Raises
    ------
    InputError
        When there is no such dataset, or it is no image.
    """
    import h5py

    if not Path(path).is_file():
        msg = f"{path}: there is no such file"
        raise InputError(msg)
    try:
        with h5py.File(path, "r") as file:
            voxels, said = _opened(file, path, dataset)
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        msg = f"{path}: the HDF5 file cannot be read ({' '.join(str(error).split())}); fetch or write it again"
        raise InputError(msg) from error
    return lazy(voxels), said


def _opened(file: Any, path: str, dataset: str) -> tuple[Hdf5Voxels, Calibration]:  # noqa: ANN401 - h5py is not typed
    import h5py

    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    chosen = dataset or (names[0] if len(names) == 1 else "")
    if chosen not in names:
        msg = f"{path}: name one of its datasets as {path}:DATASET; it holds {', '.join(names) or 'none'}"
        raise InputError(msg)
    item = file[chosen]
    kind = np.dtype(item.dtype)
    if kind.kind not in "biuf":
        msg = f"{path}:{chosen}: numbers are expected, got {kind}"
        raise InputError(msg)
    if 0 in item.shape:
        msg = f"{path}:{chosen}: at least one voxel an axis is expected, got {tuple(item.shape)}"
        raise InputError(msg)
    order, channels = _order(tuple(item.shape), f"{path}:{chosen}")
    native = kind.newbyteorder("=")
    voxels = Hdf5Voxels(path, chosen, order, tuple(item.shape), native, channels, item.chunks)
    return voxels, _calibration(item, len(order) - channels, channels=channels)


def _order(shape: tuple[int, ...], name: str) -> tuple[tuple[int, ...], bool]:
    """Return which axes of a dataset are those of the image, and whether the first is of channels."""
    axes = tuple(axis for axis, n in enumerate(shape) if n > 1 or axis >= len(shape) - 2)
    if len(axes) in (2, 3):
        return axes, False
    if len(axes) == 4:
        few = next((axis for axis in (axes[0], axes[-1]) if shape[axis] <= 4), None)
        if few is not None:
            return (few, *(axis for axis in axes if axis != few)), True
    msg = f"{name}: axes (z,) y, x are expected, and of four one of at most four channels, got {shape}"
    raise InputError(msg)


def _calibration(item: Any, ndim: int, *, channels: bool) -> Calibration:  # noqa: ANN401 - h5py is not typed
    stated = item.attrs.get(ELEMENT_SIZE)
    if stated is None:
        return Calibration(None, None, channels)
    sizes = [float(v) for v in np.ravel(stated)]
    known = sizes[-ndim:] if len(sizes) >= ndim else [float("nan")] * ndim
    return Calibration(tuple(known[::-1]), "um", channels)
