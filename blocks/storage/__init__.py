"""The seam to Zarr: create an array, read a region, write a shard. Nothing else in the engine touches a chunk.

Arrays are named by path and opened where they are used, so that a task carries a few bytes. zarr-python is the default
and what every store of the corpus is written with; tensorstore, where it is installed, is a choice.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from blocks.storage.arrays import (
    StoredArray,
    Voxels,
    create_array,
    local_path,
    shard_file,
    shard_name,
    write_shard,
)
from blocks.storage.cache import CHUNKS
from blocks.storage.handles import Library, tensorstore_installed
from blocks.storage.layout import CHUNK, SHARD, Layout, StoreError, voxel_type
from blocks.storage.objects import is_url
from blocks.storage.scratch import SCRATCH, SHARDS

__all__ = [
    "CHUNK",
    "SHARD",
    "Layout",
    "Library",
    "StoreError",
    "StoredArray",
    "Voxels",
    "create_array",
    "is_url",
    "let_go",
    "letting_go",
    "local_path",
    "shard_file",
    "shard_name",
    "tensorstore_installed",
    "voxel_type",
    "write_shard",
]


def let_go() -> None:
    """Free what is kept for the next task: decoded chunks, and the memory of boxes and shards."""
    CHUNKS.forget()
    SCRATCH.forget()
    SHARDS.forget()


@contextmanager
def letting_go() -> Iterator[None]:
    """Free it at the end of what is done within, or of every call of a function that this decorates."""
    try:
        yield
    finally:
        let_go()
