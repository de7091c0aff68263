"""The tiles and strips of a TIFF, decoded one at a time and kept for whoever asks for the same one next."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tifffile

Voxels = npt.NDArray[Any]
#: A decoded segment (None where it holds no voxels), where it lies in its page, and its shape.
Decoded = tuple[Voxels | None, tuple[int, ...], tuple[int, ...]]

#: Decoded segments kept by one process: a shard's edge cuts tiles, and its neighbour wants the other part of them. What
#: lies inside a shard nobody asks for again.
KEPT_BYTES = 1 << 26
#: TIFF's codes for JPEG, whose tables lie beside the segments.
_JPEG = {6, 7, 34892, 33007}


@dataclass(frozen=True)
class Place:
    """Which image of which file.

    Parameters
    ----------
    path, size, modified_ns
        The file as it was when it was opened: another one under its name is not read with this one's offsets.
    series, level
        As tifffile counts them; level 0 is the full resolution.
    """

    path: str
    size: int
    modified_ns: int
    series: int = 0
    level: int = 0

    @classmethod
    def of(cls, path: str | Path, *, series: int = 0, level: int = 0) -> Place:
        """Return the place of an image in a file that is there."""
        stat = os.stat(path)  # noqa: PTH116 - called for every plane of a stack
        return cls(str(path), stat.st_size, stat.st_mtime_ns, series, level)


@dataclass(frozen=True, eq=False)
class Page:
    """One page of a TIFF: where its segments lie, and how one is decoded.

    Parameters
    ----------
    file
        The file it lies in: its path, size and time.
    offsets, counts
        First byte and number of bytes of each segment.
    shaped
        Its shape as (separate samples, depth, y, x, samples of a pixel).
    segment
        Shape of a segment: depth, y, x.
    decode
        Segment's bytes and index -> voxels (depth, y, x, samples), None where it holds none.
    """

    file: tuple[str, int, int]
    offsets: tuple[int, ...]
    counts: tuple[int, ...]
    shaped: tuple[int, int, int, int, int]
    segment: tuple[int, int, int]
    decode: Callable[[bytes | None, int], Decoded]

    def read(self, rows: slice, columns: slice, dtype: np.dtype[Any]) -> Voxels:
        """Return a box of the page as (separate samples, depth, rows, columns, samples)."""
        separate, depth, _, _, samples = self.shaped
        shape = (separate, depth, rows.stop - rows.start, columns.stop - columns.start, samples)
        out = np.zeros(shape, dtype=dtype)
        for index, cut in self._touched(rows, columns):
            voxels, (s, d, y, x, _), _ = self._kept(index) if cut else self._decoded(index)
            if voxels is None:
                continue
            top, bottom = max(y, rows.start), min(y + voxels.shape[1], rows.stop)
            left, right = max(x, columns.start), min(x + voxels.shape[2], columns.stop)
            deep = min(voxels.shape[0], depth - d)
            box = (slice(top - rows.start, bottom - rows.start), slice(left - columns.start, right - columns.start))
            out[(s, slice(d, d + deep), *box)] = voxels[:deep, top - y : bottom - y, left - x : right - x]
        return out

    def _touched(self, rows: slice, columns: slice) -> Iterator[tuple[int, bool]]:
        """Yield the segments that a box touches, in the order of the file's table, and whether it cuts them."""
        thick, high, wide = self.segment
        along = [-(-n // s) for n, s in zip(self.shaped[1:4], self.segment, strict=True)]
        y, x = range(rows.start // high, -(-rows.stop // high)), range(columns.start // wide, -(-columns.stop // wide))
        for s, d, j, i in product(range(self.shaped[0]), range(-(-self.shaped[1] // thick)), y, x):
            beside = j * high < rows.start or min((j + 1) * high, self.shaped[2]) > rows.stop
            across = i * wide < columns.start or min((i + 1) * wide, self.shaped[3]) > columns.stop
            yield ((s * along[0] + d) * along[1] + j) * along[2] + i, beside or across or self.shaped[1] > 1

    def _decoded(self, index: int) -> Decoded:
        return self.decode(_bytes(self.file[0], self.offsets[index], self.counts[index]), index)

    def _kept(self, index: int) -> Decoded:
        """Return a segment of which another box wants the rest."""
        return _KEPT.get((self.file, self.offsets[index], index), partial(self._decoded, index))


class _Kept:
    """Decoded segments, the ones used last, up to so many bytes."""

    def __init__(self) -> None:
        self._held: OrderedDict[object, Decoded] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: object, load: Callable[[], Decoded]) -> Decoded:
        """Return what is held under a key, or load and hold it."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        found = load()
        size = 0 if found[0] is None else found[0].nbytes
        with self._lock:
            if key not in self._held and size <= KEPT_BYTES:
                self._held[key] = found
                self._bytes += size
            while self._bytes > KEPT_BYTES:
                _, (voxels, *_) = self._held.popitem(last=False)
                self._bytes -= 0 if voxels is None else voxels.nbytes
        return found

    def clear(self) -> None:
        """Hold nothing."""
        with self._lock:
            self._held.clear()
            self._bytes = 0


_KEPT = _Kept()


def forget() -> None:
    """Let go of every decoded segment, when a file has been read for good.

    glibc keeps what many small arrays leave in its heaps, and the next step would come on top of it: it is asked for
    it back where it can be asked.
    """
    _KEPT.clear()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of an image, each a part of it.

    Parameters
    ----------
    pages
        In the file's order.
    lead
        Voxels of the file's axes that count the pages.
    axes, shape
        tifffile's letters of a page's own axes, such as "YXS", and its voxels along them.
    """

    pages: tuple[Page, ...]
    lead: tuple[int, ...]
    axes: str
    shape: tuple[int, ...]

    def read(self, box: Sequence[slice], dtype: np.dtype[Any]) -> Voxels:
        """Return a box of the image, its axes those of the file; starts and stops inside the image."""
        count = len(self.lead)
        own = dict(zip(self.axes, box[count:], strict=True))
        rows, columns = own["Y"], own["X"]
        across = {"Y": rows.stop - rows.start, "X": columns.stop - columns.start}
        sizes = tuple(across.get(axis, n) for axis, n in zip(self.axes, self.shape, strict=True))
        planes = []
        for at in product(*(range(s.start, s.stop) for s in box[:count])):
            page = self.pages[int(np.ravel_multi_index(at, self.lead)) if count else 0]
            planes.append(page.read(rows, columns, dtype).reshape(sizes))
        joined = np.stack(planes).reshape(*(s.stop - s.start for s in box[:count]), *sizes)
        rest = tuple(slice(None) if axis in "YX" else part for axis, part in own.items())
        return np.asarray(joined[(*(slice(None) for _ in range(count)), *rest)])


@lru_cache(maxsize=512)
def pages_of(place: Place) -> Pages | None:
    """Return the pages of an image; None where tifffile has to put it together itself.

    The file is closed again: a page holds what decoding takes, so that threads read side by side.
    """
    with tifffile.TiffFile(place.path) as tiff:
        level = tiff.series[place.series].levels[place.level]
        key = level.keyframe
        lead = tuple(level.shape[: len(level.shape) - len(key.shape)])
        plain = level.axes.endswith(key.axes) and math.prod(lead) == len(level.pages)
        if not plain or not {"Y", "X"} <= set(key.axes) or any(page is None for page in level.pages):
            return None
        pages = tuple(_page(page) for page in level.pages)
        whole = all(len(page.offsets) == _segments(page) for page in pages)
        return Pages(pages, lead, key.axes, tuple(key.shape)) if whole else None


def _page(page: Any) -> Page:  # noqa: ANN401 - tifffile is not typed here
    key = page.keyframe
    size = (key.tiledepth, key.tilelength, key.tilewidth) if key.is_tiled else (1, key.rowsperstrip, key.imagewidth)
    arguments: dict[str, Any] = {"_fullsize": False}
    if key.compression in _JPEG:
        arguments |= {"jpegtables": page.jpegtables, "jpegheader": key.jpegheader}
    decode = key.decode

    def decoded(data: bytes | None, index: int) -> Decoded:
        voxels, at, shape = decode(data, index, **arguments)
        return voxels, at, shape

    high = min(int(size[1]), max(1, key.shaped[2]))
    place = Place.of(page.parent.filehandle.path)
    return Page(
        (place.path, place.size, place.modified_ns),
        tuple(int(v) for v in page.dataoffsets),
        tuple(int(v) for v in page.databytecounts),
        key.shaped,
        (max(1, int(size[0])), int(size[1]) if key.is_tiled else high, int(size[2])),
        decoded,
    )


def _segments(page: Page) -> int:
    separate, depth, length, width, _ = page.shaped
    return separate * math.prod(-(-n // s) for n, s in zip((depth, length, width), page.segment, strict=True))


def _bytes(path: str, offset: int, count: int) -> bytes | None:
    """Return the bytes of a segment; None for one that the writer left out.

    Raises
    ------
    ValueError
        When the file ends before them.
    """
    if offset == 0 or count == 0:
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        data = os.pread(handle, count, offset)
    finally:
        os.close(handle)
    if len(data) != count:
        msg = f"{path} was cut short: it ends before byte {offset + count}"
        raise ValueError(msg)
    return data
