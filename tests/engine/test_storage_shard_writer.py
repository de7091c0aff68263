"""A shard encoded straight into its file is zarr-python's to the byte, appears whole, and is never held compressed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import zarr

from blocks.storage import Layout, create_array, shard_file, write_shard
from blocks.storage import shard_writer as writer_module

SHAPES = [
    ((2, 130, 70, 300), ("c", "z", "y", "x")),
    ((64, 192, 256), ("z", "y", "x")),
    ((4100, 600), ("y", "x")),
    ((3, 5, 7), ("c", "y", "x")),
    ((1, 1, 1), ("z", "y", "x")),
]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint16", "float16", "float32", "uint64", "float64"])
@pytest.mark.parametrize(("shape", "names"), SHAPES)
def test_every_shard_is_zarr_pythons_to_the_byte(tmp_path: Path, shape: tuple[int, ...], names, dtype: str):
    layout = Layout.of(shape, dtype, names)
    voxels = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    voxels[..., : shape[-1] // 2] = 0
    ours, theirs = (create_array(str(tmp_path / name), layout) for name in ("ours", "theirs"))
    theirs_open = zarr.open_array(theirs.path, mode="r+").with_config({"write_empty_chunks": True})
    for index in layout.indices():
        region = layout.region(index)
        write_shard(ours, index, voxels[region.slices])
        theirs_open[region.slices] = voxels[region.slices]
        assert shard_file(ours, index).read_bytes() == shard_file(theirs, index).read_bytes()


def test_a_shard_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    voxels = np.ones((64, 64, 128), dtype=np.uint16)
    array = create_array(str(tmp_path / "0"), Layout.of(voxels.shape, voxels.dtype, ("z", "y", "x")))

    def full(reader: object, stream: object, shard: object) -> None:
        stream.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(writer_module, "_encode", full)
    with pytest.raises(OSError, match="No space left"):
        write_shard(array, (0, 0, 0), voxels)
    assert list((tmp_path / "0" / "c").rglob("*.*")) == []
    assert not shard_file(array, (0, 0, 0)).exists()


def test_a_shard_is_written_in_a_few_chunks_of_memory(tmp_path: Path):
    voxels = np.random.default_rng(0).integers(0, 4000, (128, 256, 256), dtype=np.uint16)
    array = create_array(str(tmp_path / "0"), Layout.of(voxels.shape, voxels.dtype, ("z", "y", "x")))
    write_shard(array, (0, 0, 0), voxels)
    tracemalloc.start()
    try:
        write_shard(array, (0, 0, 0), voxels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2 * 64**3
