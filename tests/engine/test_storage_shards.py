"""Boxes decoded straight out of shards are zarr-python's, and a damaged shard is said to be one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.region import Region
from blocks.storage import Layout, StoreError, create_array, shard_file, write_shard
from blocks.storage.shards import ShardReader

SHAPE = (2, 300, 150, 70)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[ShardReader, zarr.Array]:
    path = str(tmp_path_factory.mktemp("shards") / "0")
    layout = Layout.of(SHAPE, "int16", ("c", "z", "y", "x"))
    array = create_array(path, layout)
    voxels = np.random.default_rng(0).integers(-300, 300, SHAPE, dtype=np.int16)
    for index in layout.indices():
        write_shard(array, index, voxels[layout.region(index).slices])
    reader = ShardReader.of(path)
    assert reader is not None
    return reader, zarr.open_array(path, mode="r")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_box_is_zarr_pythons(stored: tuple[ShardReader, zarr.Array], data: st.DataObject):
    reader, array = stored
    start = tuple(data.draw(st.integers(0, n)) for n in SHAPE)
    stop = tuple(data.draw(st.integers(a, n)) for a, n in zip(start, SHAPE, strict=True))
    box = Region(start, stop)
    read = reader.read(box)
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array[box.slices])


@pytest.mark.parametrize("fill", [0, 7])
def test_what_is_not_stored_is_the_fill_value(tmp_path: Path, fill: int):
    array = zarr.create_array(
        tmp_path / "0", shape=(200, 70), chunks=(32, 32), shards=(64, 64), dtype="u1", fill_value=fill,
        compressors=zarr.codecs.BloscCodec(),
    )  # fmt: skip
    array[70:75, 3:50] = 9
    reader = ShardReader.of(str(tmp_path / "0"))
    assert reader is not None
    np.testing.assert_array_equal(reader.read(Region.of((200, 70))), array[...])


@pytest.mark.parametrize(
    "changes",
    [
        {"shards": None},
        {"compressors": zarr.codecs.GzipCodec()},
        {"compressors": None},
        {"zarr_format": 2, "shards": None, "compressors": "auto"},
        {"chunk_key_encoding": {"name": "v2", "separator": "."}},
        {"dtype": "float32", "fill_value": np.nan},
        {"serializer": zarr.codecs.BytesCodec(endian="big"), "dtype": "uint16"},
    ],
    ids=["no shards", "gzip", "no codec", "zarr v2", "other keys", "nan", "big endian"],
)
def test_any_other_layout_is_left_to_zarr_python(tmp_path: Path, changes: dict):
    layout = {"shape": (70, 70), "chunks": (32, 32), "shards": (64, 64), "dtype": "uint8"}
    zarr.create_array(tmp_path / "0", **{**layout, "compressors": zarr.codecs.BloscCodec(), **changes})
    assert ShardReader.of(str(tmp_path / "0")) is None


def test_a_changed_index_and_a_chunk_cut_short_are_found(tmp_path: Path):
    layout = Layout.of((130, 4, 4), "uint16", ("z", "y", "x"))
    array = create_array(str(tmp_path / "0"), layout)
    voxels = np.random.default_rng(1).integers(0, 9, layout.shape, dtype=np.uint16)
    write_shard(array, (0, 0, 0), voxels)
    file = shard_file(array, (0, 0, 0))
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[-20] ^= 1
    file.write_bytes(bytes(changed))
    with pytest.raises(StoreError, match="the index at its end does not match its checksum"):
        array.read(Region.of(layout.shape))
    reader = ShardReader.of(array.path)
    assert reader is not None
    changed = bytearray(whole)
    changed[4] ^= 1
    file.write_bytes(bytes(changed))
    with pytest.raises(StoreError, match=r"chunk \(0, 0, 0\) is damaged: it does not hold a chunk of 524288 bytes"):
        array.read(Region.of(layout.shape))
    np.testing.assert_array_equal(array.read(Region((64, 0, 0), (130, 4, 4))), voxels[64:])
