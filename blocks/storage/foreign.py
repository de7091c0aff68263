"""Chunks of arrays that other tools wrote, looked at before zarr-python decodes them.

A chunk of blosc says in its header how long it is. Its decoder believes it, and of a file that was cut short it reads
what happens to lie in memory behind.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import zarr
from zarr.codecs import BloscCodec

from blocks.storage.layout import StoreError


def refuse_cut(path: str, array: zarr.Array[Any], box: Sequence[slice]) -> None:
    """Refuse a box that needs a chunk of blosc which is not as long as it says.

    Parameters
    ----------
    path
        Of the array, on this file system.
    array
        zarr-python's; what is sharded or compressed otherwise is left to it, which finds such damage.
    box
        A plain slice an axis, all axes.

    Raises
    ------
    StoreError
        With the chunk's file.
    """
    last = array.compressors[-1] if array.shards is None and array.compressors else None
    if last is None or not (isinstance(last, BloscCodec) or getattr(last, "codec_id", "") == "blosc"):
        return
    edges = [part.indices(n)[:2] for part, n in zip(box, array.shape, strict=True)]
    touched = [range(a // step, -(-b // step)) for (a, b), step in zip(edges, array.chunks, strict=True)]
    for index in product(*touched):
        file = Path(path, array.metadata.encode_chunk_key(index))
        try:
            with file.open("rb") as stream:
                header = stream.read(16)
            length = file.stat().st_size
        except FileNotFoundError:
            continue
        if len(header) < 16 or struct.unpack_from("<I", header, 12)[0] != length:
            msg = f"{file} is damaged: it holds {length} bytes, which is not what its header says"
            raise StoreError(f"{msg}; fetch or write the store again")
