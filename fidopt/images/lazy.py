"""An image whose voxels are read from a file when they are asked for, as lazy blocks that are the shards of a store."""

from __future__ import annotations

import atexit
import math
import os
import re
import shutil
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import dask.array as da
import numpy as np
import numpy.typing as npt

from blocks.storage import Layout
from fidopt.images.atomic import is_alive

#: How the name of a folder of decoded bands begins; host, process and chance follow.
_BANDS = "fidopt-bands-"
#: Bytes of what one row of shards makes a reader decode, above which it is decoded once and kept on disk.
SLAB_BYTES = 1 << 28
#: Bytes of one band on disk, about.
BAND_BYTES = 1 << 26


class FileVoxels(Protocol):
    """Voxels ([c,] [z,] y, x) in a file that give NumPy arrays when sliced; picklable, a slice an axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""

    @property
    def channels(self) -> bool:
        """Whether the first axis is of channels."""

    @property
    def segment(self) -> tuple[int, ...] | None:
        """Spatial shape of what is decoded at a time, None where any box is read by itself."""

    def __getitem__(self, index: tuple[slice, ...], /) -> npt.NDArray[Any]:
        """Return the voxels of a box."""


def lazy(voxels: FileVoxels) -> da.Array:
    """Return a file's voxels as a Dask array with one block a shard.

    Where a segment of the file reaches over many shards (a plane of one strip), every shard would decode it again:
    such a file is decoded once, band by band, into a scratch folder that goes when this process ends, and the shards
    are cut from there. A disk without the room for it is left alone, and the segments are decoded as often as asked.
    """
    clear_stale_bands()
    layout = _layout(voxels)
    source: Any = Bands(voxels, _band(voxels)) if _is_kept(voxels, layout) else voxels
    meta = np.empty((0,) * len(voxels.shape), voxels.dtype)
    return da.from_array(source, chunks=layout.blocks, meta=meta, name=False, asarray=False, fancy=False)


@dataclass(frozen=True)
class Bands:
    """Voxels of a file that are decoded a band of planes (rows in 2D) at a time, once, and then read from disk.

    Parameters
    ----------
    voxels
        The file's.
    band
        Planes or rows of a band.
    """

    voxels: FileVoxels
    band: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels an axis."""
        return self.voxels.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.voxels.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        return self.voxels.dtype

    def __getitem__(self, index: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the voxels of a box, a slice an axis."""
        axis = int(self.voxels.channels)
        start, stop, _ = index[axis].indices(self.shape[axis])
        parts = []
        for number in range(start // self.band, -(-stop // self.band)):
            first = number * self.band
            inside = slice(max(start - first, 0), min(stop - first, self.band))
            parts.append(np.array(_SCRATCH.band(self, number)[(*index[:axis], inside, *index[axis + 1 :])]))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)

    def decode(self, number: int) -> npt.NDArray[Any]:
        """Return one band, decoded."""
        axis = int(self.voxels.channels)
        box = [slice(0, n) for n in self.shape]
        box[axis] = slice(number * self.band, min((number + 1) * self.band, self.shape[axis]))
        return self.voxels[tuple(box)]


class _Scratch:
    """The decoded bands of one process, each a file."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._locks: dict[tuple[Bands, int], threading.Lock] = {}
        self._names: dict[Bands, int] = {}
        self._lock = threading.Lock()

    def band(self, bands: Bands, number: int) -> npt.NDArray[Any]:
        """Return a band as a view of its file, which is made by whoever asks first."""
        with self._lock:
            if self._folder is None:
                clear_stale_bands()
                self._folder = Path(tempfile.mkdtemp(prefix=f"{_BANDS}{socket.gethostname()}-{os.getpid()}-"))
                atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
            name = self._names.setdefault(bands, len(self._names))
            lock = self._locks.setdefault((bands, number), threading.Lock())
            path = self._folder / f"{name}-{number}.npy"
        with lock:
            if not path.exists():
                part = path.with_suffix(".part.npy")
                np.save(part, bands.decode(number))
                part.rename(path)
        mapped: npt.NDArray[Any] = np.load(path, mmap_mode="r")
        return mapped


_SCRATCH = _Scratch()


def clear_stale_bands() -> None:
    """Remove the folders of processes of this host that were killed before they could remove their own."""
    named = re.compile(rf"{_BANDS}{re.escape(socket.gethostname())}-(\d+)-\w+")
    for folder in Path(tempfile.gettempdir()).glob(f"{_BANDS}*"):
        if (found := named.fullmatch(folder.name)) and not is_alive(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _layout(voxels: FileVoxels) -> Layout:
    spatial = len(voxels.shape) - voxels.channels
    names = (("c",) if voxels.channels else ()) + ("z", "y", "x")[-spatial:]
    return Layout.of(voxels.shape, voxels.dtype, names)


def _is_kept(voxels: FileVoxels, layout: Layout) -> bool:
    """Whether a file's bands are to be kept on disk."""
    if voxels.segment is None:
        return False
    spatial = len(voxels.segment)
    shape, shard = voxels.shape[-spatial:], layout.blocks[-spatial:]
    wide = any(min(s, n) > 2 * b for s, n, b in zip(voxels.segment[1:], shape[1:], shard[1:], strict=True))
    voxel = voxels.dtype.itemsize * math.prod(voxels.shape[:-spatial])
    slab = max(shard[0], voxels.segment[0]) * math.prod(shape[1:]) * voxel
    room = shutil.disk_usage(tempfile.gettempdir()).free
    return wide and slab > SLAB_BYTES and math.prod(shape) * voxel < room // 2


def _band(voxels: FileVoxels) -> int:
    """Return how many planes or rows a band has: whole segments."""
    first = int(voxels.channels)
    thick = (voxels.segment or (1,))[0]
    line = voxels.dtype.itemsize * math.prod(n for axis, n in enumerate(voxels.shape) if axis != first)
    return max(1, BAND_BYTES // (line * thick)) * thick
