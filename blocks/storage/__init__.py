"""The seam to Zarr: create an array, read a region, write a shard. Nothing else in the engine touches a chunk.

Arrays are named by path and opened where they are used, so that a task carries a few bytes. zarr-python is the default
and what every store of the corpus is written with; tensorstore, where it is installed, is a choice.
"""

from blocks.storage.arrays import (
    Library,
    StoredArray,
    Voxels,
    create_array,
    local_path,
    shard_file,
    tensorstore_installed,
    write_shard,
)
from blocks.storage.layout import CHUNK, SHARD, Layout, StoreError

__all__ = [
    "CHUNK",
    "SHARD",
    "Layout",
    "Library",
    "StoreError",
    "StoredArray",
    "Voxels",
    "create_array",
    "local_path",
    "shard_file",
    "tensorstore_installed",
    "write_shard",
]
