"""The digest by which an image is recognised wherever it lies: of its voxels and their type, and of nothing else.

The same voxels give the same digest in any file format, with any geometry, chunks and compression, on any machine.
Voxels that were turned round, cut, resampled or given another type give another: such a copy is not recognised.

It is the sha256 of a line ``<type> <axes> <size>x<size>...``, such as ``int16 zyx 129x157x115``, ended by a newline,
and of the sha256 of every box of 256 voxels a side (of 4096 in two dimensions) with all channels, the last axis
fastest; a box's bytes are its voxels in C order, little-endian.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

#: Sides of the boxes, by the number of axes in space.
BOX = {2: 4096, 3: 256}
#: An image of fewer voxels may be another one's equal by chance.
LEAST_VOXELS = 256
#: Boxes whose digests are computed at once.
_AT_ONCE = 64

#: A box's digest, the bytes of its first voxel, and whether all the others are the same.
_Part = tuple[bytes, bytes, bool]


def voxel_digest(
    image: xr.DataArray | Path,
    *,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
) -> str | None:
    """Return the digest of an image's voxels and type.

    Parameters
    ----------
    image
        An image ((c,) (z,) y, x), which may be lazy, or the path of a store, whose level 0 is read.
    client
        A Dask client; by default threads on this machine's cores.

    Returns
    -------
    str or None
        ``sha256:<hex>``; None of an image that tells nothing: one of fewer than 256 voxels, or of one value.
    """
    from blocks.image import open_image

    opened = open_image(image) if isinstance(image, Path) else image
    if opened.size < LEAST_VOXELS:
        return None
    sizes = "x".join(str(size) for size in opened.shape)
    total = hashlib.sha256(f"{opened.dtype.name} {''.join(map(str, opened.dims))} {sizes}\n".encode())
    first: bytes | None = None
    plain = True
    for digest, value, same in _parts(opened, client):
        total.update(digest)
        first = value if first is None else first
        plain = plain and same and value == first
    return None if plain else f"sha256:{total.hexdigest()}"


def _parts(image: xr.DataArray, client: Any) -> Iterator[_Part]:  # noqa: ANN401 - distributed is not typed
    boxes = _boxes(image)
    if isinstance(image.data, np.ndarray):
        yield from (_part(image.data[box]) for box in boxes)
        return
    from dask import delayed

    from blocks.execute import compute

    while some := list(islice(boxes, _AT_ONCE)):
        found = compute(*(delayed(_part)(image.data[box]) for box in some), client=client)
        yield from found if len(some) > 1 else [found]


def _boxes(image: xr.DataArray) -> Iterator[tuple[slice, ...]]:
    """Yield the boxes of an image, the last axis fastest; all channels are in each."""
    spatial = [dim for dim in image.dims if dim != "c"]
    side = BOX[len(spatial)]
    spans: Sequence[Sequence[slice]] = [
        [slice(0, size)] if dim == "c" else [slice(at, min(at + side, size)) for at in range(0, size, side)]
        for dim, size in zip(image.dims, image.shape, strict=True)
    ]
    yield from product(*spans)


def _part(values: npt.NDArray[np.generic]) -> _Part:
    ordered = np.ascontiguousarray(values)
    if sys.byteorder == "big" or ordered.dtype.byteorder == ">":
        ordered = ordered.astype(ordered.dtype.newbyteorder("<"))
    flat = ordered.reshape(-1)
    words = flat.view(f"u{ordered.dtype.itemsize}")  # by its bits, for which one NaN is another's equal
    return hashlib.sha256(ordered.data).digest(), words[0].tobytes(), bool((words == words[0]).all())
