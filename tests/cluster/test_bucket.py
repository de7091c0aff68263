"""Stores in a bucket written by the processes of a cluster: the objects of a local store's files, taken up as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import blocks
from blocks.execute import rewrite_levels
from blocks.storage import StoreError
from fidopt.cli import main
from tests.killing import files
from tests.remote import Objects

SHAPE = (130, 140, 600)
URL = "s3://data/out.ome.zarr"


@pytest.fixture
def cluster(bucket: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a cluster of two processes that find the bucket in their environment."""
    from distributed import LocalCluster

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**settings) as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(cluster) as made:
        yield made


def image(seed: int = 5) -> xr.DataArray:
    voxels = np.random.default_rng(seed).integers(0, 50, SHAPE, dtype="uint8")
    return blocks.image_of(voxels, blocks.Grid.of(SHAPE, spacing=(0.5, 0.5, 2.0)))


def objects(bucket: Objects, store: str = "out.ome.zarr") -> dict[str, bytes]:
    """Return a store's objects by their names in it."""
    start = f"data/{store}/"
    return {name.removeprefix(start): held for name, held in bucket.content.items() if name.startswith(start)}


def test_workers_write_a_store_into_a_bucket(bucket: Objects, client: Any, tmp_path: Path):
    blocks.write_image(tmp_path / "here.ome.zarr", image())
    # From a store, so that the workers read it themselves.
    outcome = blocks.write_image(URL, blocks.open_image(tmp_path / "here.ome.zarr"), made_from="a", client=client)
    assert (outcome.there, outcome.begun_again) == (0, False)
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")
    blocks.write_image("s3://data/copy.ome.zarr", blocks.open_image(URL), made_from="b", client=client)
    assert objects(bucket, "copy.ome.zarr") == files(tmp_path / "here.ome.zarr")
    assert rewrite_levels(URL, made_from="level 0", client=client).shards > 0
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")


def test_what_workers_left_is_taken_up_by_workers(bucket: Objects, client: Any, tmp_path: Path):
    blocks.write_image(tmp_path / "here.ome.zarr", image())
    source = blocks.open_image(tmp_path / "here.ome.zarr")
    bucket.failing["/out.ome.zarr/0/c/0/0/2"] = [403] * 99
    with pytest.raises(StoreError, match=r"out.ome.zarr/0/c/0/0/2 may not be written"):
        blocks.write_image(URL, source, made_from="a", client=client)
    with pytest.raises(StoreError, match="was not finished"):
        blocks.open_image(URL)
    bucket.failing.clear()
    bucket.sent.clear()
    outcome = blocks.write_image(URL, source, made_from="a", client=client)
    assert outcome.there > 0
    assert sum("/c/" in name for name in bucket.names("PUT")) == outcome.shards - outcome.there
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")
    assert not list((tmp_path / "state").rglob("*.log"))


def test_a_command_warps_within_a_bucket_on_a_cluster(
    bucket: Objects, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    blocks.write_image("moving.ome.zarr", image())
    bucket.put_folder(tmp_path / "moving.ome.zarr", "data/moving.ome.zarr")
    Path("shift.tfm").write_text(
        "#Insight Transform File V1.0\n#Transform 0\nTransform: TranslationTransform_double_3_3\n"
        "Parameters: 1.5 -2.25 3.0\nFixedParameters: \n"
    )
    moving, fixed = "s3://data/moving.ome.zarr", ["--like", "moving.ome.zarr"]
    assert main(["warp", moving, "shift.tfm", URL, *fixed, "--cluster", cluster.scheduler_address]) == 0
    assert main(["warp", moving, "shift.tfm", "here.ome.zarr", *fixed]) == 0
    assert objects(bucket) == files(tmp_path / "here.ome.zarr")
