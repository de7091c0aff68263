"""Stores written to a bucket: the objects of a local store's files, taken up after a kill, and nothing left over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import blocks
from blocks.execute import rewrite_levels
from blocks.image.construction import StoreExistsError
from blocks.storage import Library, StoreError
from tests.killing import files
from tests.remote import Objects

SHAPE = (130, 140, 600)
URL = "s3://data/out.ome.zarr"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the journals of a test in its own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def image(seed: int = 5) -> xr.DataArray:
    voxels = np.random.default_rng(seed).integers(0, 50, SHAPE, dtype="uint8")
    return blocks.image_of(voxels, blocks.Grid.of(SHAPE, spacing=(0.5, 0.5, 2.0)))


def objects(bucket: Objects) -> dict[str, bytes]:
    """Return the store's objects by their names in it."""
    return {name.removeprefix("data/out.ome.zarr/"): held for name, held in bucket.content.items()}


def notes(state: Path) -> list[str]:
    return [str(file.name) for file in state.rglob("*.log")]


@pytest.mark.parametrize("library", ["zarr", "tensorstore"])
def test_a_store_in_a_bucket_holds_the_objects_of_a_local_one(
    bucket: Objects, tmp_path: Path, state: Path, library: Library
):
    if library == "tensorstore":
        pytest.importorskip("tensorstore")
    blocks.write_image(tmp_path / "here.ome.zarr", image(), library=library)
    blocks.write_image(URL, image(), library=library)
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")
    put = [name for name in bucket.names("PUT") if not name.endswith(".journal/header.json")]
    assert put[-1] == "data/out.ome.zarr/zarr.json"
    assert notes(state) == []
    np.testing.assert_array_equal(blocks.open_image(URL).values, image().values)


def test_levels_are_written_again_in_a_bucket(bucket: Objects, tmp_path: Path):
    for place in (tmp_path / "here.ome.zarr", URL):
        blocks.write_image(place, image(), levels=False)
        outcome = rewrite_levels(place, kind="labels", made_from="level 0")
        assert outcome.shards > 0
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")


def stopped(bucket: Objects, *, made_from: str | None, seed: int = 5) -> int:
    """Begin to write, fail at the second shard of the finest level, and return how many are there."""
    bucket.failing["/0/c/0/0/1"] = [403] * 3
    with pytest.raises(StoreError, match=r"out.ome.zarr/0/c/0/0/1 may not be written"):
        blocks.write_image(URL, image(seed), made_from=made_from)
    bucket.failing.clear()
    return sum("/c/" in name for name in bucket.content)


def test_what_a_failure_left_opens_as_no_store_and_is_taken_up(bucket: Objects, tmp_path: Path, state: Path):
    left = stopped(bucket, made_from="image 5")
    with pytest.raises(StoreError, match=r"was not finished; run what wrote it again"):
        blocks.open_image(URL)
    assert len(notes(state)) == 1
    bucket.sent.clear()
    outcome = blocks.write_image(URL, image(), made_from="image 5")
    # What was under way when it failed may be there without having been noted.
    assert 0 < outcome.there <= left
    assert not outcome.begun_again
    assert sum("/c/" in name for name in bucket.names("PUT")) == outcome.shards - outcome.there
    blocks.write_image(tmp_path / "here.ome.zarr", image())
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")
    assert notes(state) == []


def test_what_can_never_be_written_leaves_nothing_in_a_bucket(bucket: Objects, state: Path):
    bucket.failing["/0/c/"] = [403] * 99
    with pytest.raises(StoreError, match=r"may not be written"):
        blocks.write_image(URL, image(), made_from="image 5")
    assert bucket.content == {}
    assert notes(state) == []


@pytest.mark.parametrize("again", ["another", None])
def test_another_header_begins_again(bucket: Objects, tmp_path: Path, again: str | None):
    stopped(bucket, made_from="image 5")
    bucket.put("data/out.ome.zarr/0/c/9/9/9", b"left by somebody")
    outcome = blocks.write_image(URL, image(6), made_from=again)
    assert (outcome.there, outcome.begun_again) == (0, True)
    blocks.write_image(tmp_path / "here.ome.zarr", image(6))
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")


def test_what_another_machine_began_since_is_not_taken_up(
    bucket: Objects, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
):
    stopped(bucket, made_from="image 5")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    stopped(bucket, made_from="image 6", seed=6)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    outcome = blocks.write_image(URL, image(), made_from="image 5")
    assert (outcome.there, outcome.begun_again) == (0, True)
    np.testing.assert_array_equal(blocks.open_image(URL).values, image().values)


def test_a_shard_that_is_noted_and_gone_is_written_again(bucket: Objects, tmp_path: Path):
    left = stopped(bucket, made_from="image 5")
    for name in [name for name in bucket.content if "/c/" in name]:
        del bucket.content[name]
    outcome = blocks.write_image(URL, image(), made_from="image 5")
    assert left > 0
    assert (outcome.there, outcome.begun_again) == (0, False)


def test_what_lies_in_a_bucket_is_replaced_only_when_that_is_asked_for(bucket: Objects):
    blocks.write_image(URL, image())
    with pytest.raises(StoreExistsError, match=r"exists; ask to overwrite it"):
        blocks.write_image(URL, image(6))
    blocks.write_image(URL, image(6), overwrite=True)
    np.testing.assert_array_equal(blocks.open_image(URL).values, image(6).values)
    with pytest.raises(StoreExistsError, match=r"lies inside the store s3://data/out.ome.zarr"):
        blocks.write_image(f"{URL}/inside.ome.zarr", image())
    bucket.put("data/other.ome.zarr/notes.txt", b"mine")
    with pytest.raises(StoreExistsError, match=r"exists and is not a store; it is left alone"):
        blocks.write_image("s3://data/other.ome.zarr", image(), overwrite=True)


def test_http_is_read_only(web: Objects):
    with pytest.raises(StoreError, match=r"out.ome.zarr can only be read: .* choose another path"):
        blocks.write_image(f"{web.url}/out.ome.zarr", image())
