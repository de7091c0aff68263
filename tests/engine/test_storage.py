"""The seam to Zarr: what is written is what is read, by either library, and a shard has one writer."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from blocks.region import Region
from blocks.storage import (
    Layout,
    Library,
    StoredArray,
    StoreError,
    create_array,
    local_path,
    shard_file,
    tensorstore_installed,
    write_shard,
)

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
TYPES += ["float16", "float32", "float64"]


@pytest.fixture(params=["zarr", "tensorstore"])
def library(request: pytest.FixtureRequest) -> Library:
    if request.param == "tensorstore" and not tensorstore_installed():
        pytest.skip("tensorstore is not installed")
    return request.param


def written(path: Path, voxels: np.ndarray, names: tuple[str, ...], library: Library) -> StoredArray:
    layout = Layout.of(voxels.shape, voxels.dtype, names)
    array = create_array(str(path), layout, library=library)
    for index in layout.indices():
        write_shard(array, index, voxels[layout.region(index).slices])
    return array


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_reads_back_as_it_was_written(tmp_path: Path, library: Library, dtype: str):
    voxels = (np.random.default_rng(0).random((2, 9, 70, 5)) * 200).astype(dtype)
    array = written(tmp_path / "0", voxels, ("c", "z", "y", "x"), library)
    for reader in {library, "zarr"}:
        read = StoredArray(array.path, reader)[(slice(None),) * 4]
        assert read.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(read, voxels)


def test_a_region_that_crosses_shards_is_read_with_all_channels(tmp_path: Path, library: Library):
    voxels = np.random.default_rng(1).integers(0, 9, (2, 300, 3, 5), dtype=np.uint8)
    array = written(tmp_path / "0", voxels, ("c", "z", "y", "x"), library)
    assert array.layout.blocks_along == (1, 2, 1, 1)
    np.testing.assert_array_equal(array.read(Region((250, 1, 0), (290, 3, 4))), voxels[:, 250:290, 1:3, :4])


def test_the_layout_is_the_one_every_store_is_written_in(tmp_path: Path):
    layout = Layout.of((3, 5000, 600), np.uint16, ("c", "y", "x"))
    assert layout.chunks == (3, 512, 512)
    assert layout.shards == (3, 4096, 1024)
    assert Layout.of((300, 65, 1), "u1", ("z", "y", "x")).shards == (256, 128, 64)
    create_array(str(tmp_path / "0"), layout)
    said = json.loads((tmp_path / "0" / "zarr.json").read_text())
    assert said["zarr_format"] == 3
    assert said["dimension_names"] == ["c", "y", "x"]
    assert said["chunk_grid"]["configuration"]["chunk_shape"] == [3, 4096, 1024]
    (sharding,) = said["codecs"]
    assert sharding["configuration"]["chunk_shape"] == [3, 512, 512]
    blosc = sharding["configuration"]["codecs"][1]["configuration"]
    assert (blosc["cname"], blosc["clevel"], blosc["shuffle"], blosc["typesize"]) == ("zstd", 3, "shuffle", 2)
    assert "consolidated_metadata" not in said
    assert not (tmp_path / "zarr.json").exists()


def test_the_shards_cover_every_voxel_once():
    layout = Layout.of((2, 300, 257, 64), "f4", ("c", "z", "y", "x"))
    count = np.zeros(layout.shape, dtype=int)
    for index in layout.indices():
        count[layout.region(index).slices] += 1
    assert (count == 1).all()


def test_a_shard_of_nothing_but_zeros_is_stored(tmp_path: Path, library: Library):
    array = written(tmp_path / "0", np.zeros((300, 4, 4), dtype=np.int16), ("z", "y", "x"), library)
    assert all(shard_file(array, index).is_file() for index in array.layout.indices())


def test_a_torn_shard_does_not_stop_the_next_attempt(tmp_path: Path, library: Library):
    voxels = np.arange(300 * 4 * 4, dtype=np.int32).reshape(300, 4, 4)
    array = written(tmp_path / "0", voxels, ("z", "y", "x"), library)
    file = shard_file(array, (1, 0, 0))
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(StoreError, match=r"0/c/1/0/0.* damaged|\[256:300, 0:4, 0:4\]"):
        array.read(Region((256, 0, 0), (300, 4, 4)))
    write_shard(array, (1, 0, 0), voxels[256:])
    np.testing.assert_array_equal(array.read(Region.of(voxels.shape)), voxels)


def test_the_same_voxels_make_the_same_bytes(tmp_path: Path):
    voxels = np.random.default_rng(2).integers(0, 3, (70, 130, 66), dtype=np.uint8)
    files = []
    for name in ("a", "b"):
        array = written(tmp_path / name, voxels, ("z", "y", "x"), "zarr")
        files.append([shard_file(array, i).read_bytes() for i in array.layout.indices()])
    assert files[0] == files[1]


def test_an_array_written_anew_is_not_read_from_an_old_handle(tmp_path: Path, library: Library):
    first = written(tmp_path / "0", np.zeros((4, 4), dtype=np.uint8), ("y", "x"), library)
    before = first.identity
    assert first.read(Region.of((4, 4))).sum() == 0
    shard_file(first, (0, 0)).unlink()
    (tmp_path / "0" / "zarr.json").unlink()
    second = written(tmp_path / "0", np.ones((6, 6), dtype=np.float32), ("y", "x"), library)
    assert second.shape == (6, 6)
    assert second.read(Region.of((6, 6))).sum() == 36
    assert second.identity != before


def test_an_array_copied_over_another_with_its_times_is_not_read_from_an_old_handle(tmp_path: Path, library: Library):
    for name, side in (("a", 4), ("b", 6)):
        written(tmp_path / name, np.full((side, side), side, dtype=np.uint8), ("y", "x"), library)
        os.utime(tmp_path / name / "zarr.json", (0, 0))
    first = StoredArray(str(tmp_path / "a"), library)
    assert first.read(Region.of((4, 4))).sum() == 64
    before = first.identity
    # As "cp -p" does it, over the files that are there.
    shutil.copytree(tmp_path / "b", tmp_path / "a", dirs_exist_ok=True)
    second = StoredArray(str(tmp_path / "a"), library)
    assert second.read(Region.of((6, 6))).sum() == 216
    assert second.identity != before


@pytest.mark.parametrize("other", [np.ones((3, 6), np.uint8), np.ones((2, 6), np.float32)])
@pytest.mark.parametrize("leading", [0, 1])
def test_an_array_that_became_another_is_not_read_as_the_one_it_was(
    tmp_path: Path, library: Library, other: np.ndarray, leading: int
):
    def write(voxels: np.ndarray) -> None:
        zarr.create_array(tmp_path / "a", data=voxels[None] if leading else voxels, overwrite=True)

    write(np.zeros((2, 6), np.uint8))
    array = StoredArray(str(tmp_path / "a"), library, leading)
    assert array[:2, :6].sum() == 0
    write(other)
    with pytest.raises(StoreError, match=r"was \(2, 6\) of uint8 when it was opened, and is .* now: .* open it again"):
        array[:2, :6]
    assert StoredArray(str(tmp_path / "a"), library, leading)[:2, :6].sum() == 12


def test_an_array_travels_as_its_path(tmp_path: Path):
    array = written(tmp_path / "0", np.ones((300, 300), dtype=np.uint8), ("y", "x"), "zarr")
    sent = pickle.dumps(StoredArray(array.path))
    assert len(sent) < 300
    assert pickle.loads(sent).read(Region((299, 299), (300, 300))).tolist() == [[1]]


def test_less_than_a_shard_is_refused(tmp_path: Path):
    array = create_array(str(tmp_path / "0"), Layout.of((80, 80, 80), "u1", ("z", "y", "x")))
    with pytest.raises(ValueError, match=r"shard \(0, 0, 0\) of .* is \(80, 80, 80\) of uint8, got \(64, 80, 80\)"):
        write_shard(array, (0, 0, 0), np.zeros((64, 80, 80), dtype=np.uint8))


@pytest.mark.parametrize("dtype", ["complex64", "S3", "datetime64[s]"])
def test_a_type_no_store_holds_is_refused(dtype: str):
    with pytest.raises(ValueError, match="booleans, integers and floats"):
        Layout.of((4, 4), dtype, ("y", "x"))


def test_a_missing_array_is_named(tmp_path: Path):
    with pytest.raises(StoreError, match=r"neither zarr\.json nor \.zarray"):
        StoredArray(str(tmp_path / "2")).read(Region.of((1, 1)))


def test_a_leading_axis_of_one_point_is_left_out(tmp_path: Path):
    voxels = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    zarr.create_array(str(tmp_path / "0"), data=voxels, chunks=(1, 2, 2))
    array = StoredArray(str(tmp_path / "0"), leading=1)
    assert array.shape == (3, 4)
    assert array.layout.shards is None
    np.testing.assert_array_equal(array.read(Region((1, 1), (3, 3))), voxels[0, 1:3, 1:3])


def test_paths_are_absolute_and_urls_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert local_path("a.ome.zarr/") == str(tmp_path / "a.ome.zarr")
    assert local_path("file:///data/a.ome.zarr") == "/data/a.ome.zarr"
    assert local_path("s3://bucket/a.ome.zarr") == "s3://bucket/a.ome.zarr"


@pytest.mark.parametrize("name", ["", " ", "s3://", "s3:///a.ome.zarr", "http:///a.ome.zarr", "file://"])
def test_a_name_of_no_place_is_refused(name: str):
    with pytest.raises(StoreError, match="the folder or the URL of a store is expected, got"):
        local_path(name)
