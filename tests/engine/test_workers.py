"""Workers that die in the middle: the run goes on without them, they are named, and the store is the same."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocks
from blocks.execute import run_shards, write_image
from blocks.graphs.store import ShardError
from tests.killing import files

SHAPE = (520, 300, 300)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Yield a client of two workers of one thread, each in a process of its own that a nanny starts again."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("moving") / "moving.ome.zarr"
    voxels = (np.random.default_rng(3).random(SHAPE) * 200).astype("uint8")
    write_image(path, blocks.image_of(voxels, blocks.Grid.of(SHAPE)), levels=False)
    return path


@pytest.mark.parametrize("wave", [4096, pytest.param(1, marks=pytest.mark.slow)])
def test_a_worker_killed_in_the_middle_of_a_warp_is_named_and_the_run_goes_on(
    client: Any,
    moving: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    wave: int,
):
    image = blocks.open_image(moving)
    warped = blocks.warp(image, blocks.Affine.translation((1.5, -2.25, 3.0)), image)
    write_image(tmp_path / "whole.ome.zarr", warped)
    if wave == 1:
        monkeypatch.setattr("blocks.graphs.writes.writes.__kwdefaults__", {"wave": 1})
    (address, pid), _ = client.run(os.getpid).items()
    told = []

    def kill(done: int, _total: int, _written: int, /) -> None:
        told.append(done)
        if done == 2:
            os.kill(pid, signal.SIGKILL)

    with caplog.at_level(logging.WARNING, logger="blocks"):
        write_image(tmp_path / "out.ome.zarr", warped, client=client, progress=kill, made_from="a")
    assert files(tmp_path / "out.ome.zarr") == files(tmp_path / "whole.ome.zarr")
    assert told == list(range(1, len(told) + 1))
    assert f"worker {address} died; what it had in work is computed again" in caplog.text
    client.wait_for_workers(2)


@pytest.mark.slow
def test_a_shard_that_ends_every_worker_is_named(client: Any):
    with pytest.raises(ShardError, match=r"shard .*7.*: the workers that ran it died one after the other, tcp://.*"):
        run_shards(_deadly, ((n,) for n in range(100)), total=100, client=client)
    client.wait_for_workers(2)


def _deadly(index: tuple[int, ...]) -> int:
    if index == (7,):
        os._exit(1)
    return 0
