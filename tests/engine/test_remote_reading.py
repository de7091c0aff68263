"""Stores in a bucket and on a web server: the same voxels, by parts, and one sentence where they cannot be had."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import numpy as np
import pytest

import blocks
from blocks.image.opening import open_store
from blocks.region import Region
from blocks.storage import CHUNKS, Library, StoreError
from blocks.transforms import Affine
from tests.remote import Objects

SHAPE = (70, 150, 280)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return a store of several shards, of voxels that do not compress."""
    voxels = np.random.default_rng(3).integers(0, 60000, SHAPE, dtype="uint16")
    path = tmp_path / "image.ome.zarr"
    blocks.write_image(path, blocks.image_of(voxels, blocks.Grid.of(SHAPE, spacing=(0.5, 0.5, 2.0))))
    return path


@pytest.fixture
def url(request: pytest.FixtureRequest, image: Path) -> str:
    """Return the same store's URL, in a bucket or on the web."""
    objects: Objects = request.getfixturevalue(request.param)
    if request.param == "web":
        return f"{objects.url}/image.ome.zarr"
    objects.put_folder(image, "data/image.ome.zarr")
    return "s3://data/image.ome.zarr"


BOTH = pytest.mark.parametrize("url", ["bucket", "web"], indirect=True)


@BOTH
@pytest.mark.parametrize("library", ["zarr", "tensorstore"])
def test_a_remote_store_is_the_same_image(image: Path, url: str, library: Library):
    if library == "tensorstore":
        pytest.importorskip("tensorstore")
    for level in (0, 1):
        there, here = blocks.open_image(url, level, library=library), blocks.open_image(image, level)
        assert there.attrs == here.attrs
        assert blocks.grid_of(there) == blocks.grid_of(here)
        np.testing.assert_array_equal(there.values, here.values)


@BOTH
def test_a_remote_store_is_warped_to_the_same_store(image: Path, url: str, tmp_path: Path):
    for name, path in (("there", url), ("here", str(image))):
        moving = blocks.open_image(path)
        blocks.write_image(
            tmp_path / name, blocks.warp(moving, Affine.translation((3.25, -1.5, 0.75)), moving), levels=False
        )
    there, here = (sorted((tmp_path / name).rglob("c/*/*/*")) for name in ("there", "here"))
    assert [file.read_bytes() for file in there] == [file.read_bytes() for file in here] != []


def counted(url: str, request: pytest.FixtureRequest) -> Objects:
    """Return the server of a URL, with nothing counted and nothing kept of what was read before."""
    objects: Objects = request.getfixturevalue("web" if url.startswith("http") else "bucket")
    objects.sent.clear()
    CHUNKS.forget()
    return objects


@BOTH
def test_of_a_shard_only_its_index_and_the_chunks_that_are_wanted_are_fetched(
    image: Path, url: str, request: pytest.FixtureRequest
):
    there, here = open_store(url).arrays[0], open_store(image).arrays[0]
    objects = counted(url, request)
    box = Region((10, 20, 30), (12, 22, 32))
    np.testing.assert_array_equal(there.read(box), here.read(box))
    chunk, index = 64**3 * 2, 16 * 2 * 3 * 4 + 4
    assert index < objects.fetched() <= 1.01 * chunk + index
    assert sum("/c/" in name for name in objects.names("GET")) == 2


@BOTH
def test_a_warp_fetches_the_chunks_that_its_shard_covers(image: Path, url: str, request: pytest.FixtureRequest):
    moving = blocks.open_image(url)
    fixed = blocks.image_of(np.zeros((60, 60, 60), "u1"), blocks.Grid.of((60, 60, 60), spacing=(0.5, 0.5, 2.0)))
    objects = counted(url, request)
    warped = blocks.warp(moving, Affine.translation((0.25, 0.25, 0.5)), fixed)
    expected = blocks.warp(blocks.open_image(image), Affine.translation((0.25, 0.25, 0.5)), fixed)
    np.testing.assert_array_equal(warped.values, expected.values)
    stored = sum(file.stat().st_size for file in (image / "0" / "c").rglob("*") if file.is_file())
    assert objects.fetched() < 1.05 * 64**3 * 2 < stored / 5


@BOTH
def test_a_store_that_is_not_there_is_one_sentence(url: str):
    with pytest.raises(StoreError, match=r"there is no OME-Zarr store at .*absent.ome.zarr: .*check the address"):
        blocks.open_image(url.replace("image.ome", "absent.ome"))


@BOTH
def test_no_right_to_read_is_one_sentence(url: str, request: pytest.FixtureRequest):
    objects = counted(url, request)
    objects.failing["image.ome.zarr"] = [403] * 50
    with pytest.raises(StoreError, match=r"image.ome.zarr may not be read .*ask for the right to it"):
        blocks.open_image(url)


@BOTH
def test_a_shard_that_cannot_be_had_is_no_shard_of_zeros(url: str, request: pytest.FixtureRequest):
    array = open_store(url).arrays[0]
    objects = counted(url, request)
    assert array.shape == SHAPE
    objects.failing["/c/"] = [403] * 50
    with pytest.raises(StoreError, match=r"image.ome.zarr/0/c/0/0/0 may not be read"):
        array.read(Region((0, 0, 0), (2, 2, 2)))


def test_a_shard_that_is_cut_short_is_named(image: Path, bucket: Objects):
    bucket.put_folder(image, "data/image.ome.zarr")
    name = "data/image.ome.zarr/0/c/0/0/0"
    bucket.put(name, bucket.content[name][:-1000])
    array = open_store("s3://data/image.ome.zarr").arrays[0]
    with pytest.raises(StoreError, match=r"s3://data/image.ome.zarr/0/c/0/0/0 is damaged"):
        array.read(Region((0, 0, 0), (2, 2, 2)))


def test_a_bucket_that_is_busy_is_asked_again(image: Path, bucket: Objects):
    bucket.put_folder(image, "data/image.ome.zarr")
    array = open_store("s3://data/image.ome.zarr").arrays[0]
    assert array.shape == SHAPE
    bucket.failing["/c/"] = [503, 500]
    voxels = array.read(Region((0, 0, 0), (2, 2, 2)))
    np.testing.assert_array_equal(voxels, open_store(image).arrays[0].read(Region((0, 0, 0), (2, 2, 2))))
    assert bucket.names("503")
    assert bucket.names("500")


def test_a_host_that_cannot_be_reached_is_one_sentence():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/image.ome.zarr"
    with pytest.raises(StoreError, match=r"image.ome.zarr cannot be read: its server cannot be reached .*try again"):
        blocks.open_image(url)


def test_a_library_that_is_missing_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StoreError, match=r"s3fs is not installed.*pip install 'fidopt\[remote\]'"):
        blocks.open_image("s3://data/image.ome.zarr")


def test_a_protocol_that_is_not_spoken_is_named():
    with pytest.raises(StoreError, match=r"got ftp://"):
        blocks.open_image("ftp://host/image.ome.zarr")


def test_a_store_that_is_put_anew_is_read_anew(image: Path, bucket: Objects):
    bucket.put_folder(image, "data/image.ome.zarr")
    assert blocks.open_image("s3://data/image.ome.zarr").values.any()
    other = blocks.image_of(np.zeros((20, 30, 40), "u1"), blocks.Grid.of((20, 30, 40)))
    blocks.write_image(image, other, overwrite=True)
    bucket.content.clear()
    bucket.put_folder(image, "data/image.ome.zarr")
    again = blocks.open_image("s3://data/image.ome.zarr")
    assert again.shape == (20, 30, 40)
    assert not again.values.any()
