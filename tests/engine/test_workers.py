"""Workers that die in the middle: the run goes on without them, they are named, and the store is the same."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from dask.highlevelgraph import HighLevelGraph

import blocks
from blocks.execute import rewrite_levels, run_shards, write_image
from blocks.execute.cluster import graph_on_cluster
from blocks.execute.counting import Count
from blocks.graphs.store import ShardError
from blocks.graphs.writes import Graph
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


def test_a_field_that_travels_with_its_graph_is_no_warning(
    client: Any, tmp_path: Path, recwarn: pytest.WarningsRecorder
):
    grid = blocks.Grid.of((32, 32, 32))
    field = blocks.DisplacementField(grid, np.random.default_rng(0).random((3, *grid.shape)).astype(np.float32))
    image = blocks.image_of(np.zeros(grid.shape, np.uint8), grid)
    # 384 KiB of field stand for the 10 MB and more that are warned of.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100KiB"}):
        write_image(tmp_path / "a.ome.zarr", blocks.warp(image, field, image), client=client)
    assert not [one for one in recwarn if "large graph" in str(one.message)]


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
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("wave", [4096, 1])
def test_fifty_killed_workers_leave_the_store_of_an_undisturbed_run(
    moving: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wave: int
):
    from distributed import Client, LocalCluster

    image, out, killed, chance = blocks.open_image(moving), tmp_path / "out.ome.zarr", 0, random.Random(2)
    warped = blocks.warp(image, blocks.Affine.translation((1.5, -2.25, 3.0)), image)
    write_image(tmp_path / "whole.ome.zarr", warped)
    whole = files(tmp_path / "whole.ome.zarr")
    monkeypatch.setattr("blocks.graphs.writes.writes.__kwdefaults__", {"wave": wave})
    monkeypatch.setattr("blocks.graphs.writes.level_writes.__kwdefaults__", {"first": 1, "wave": wave})
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 100}),
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        while killed < 50:
            with _dying(cluster.scheduler_address, chance) as deaths:
                write_image(out, warped, client=client, overwrite=True, made_from="a")
                assert files(out) == whole
                rewrite_levels(out, client=client)
                assert files(out) == whole
            killed += len(deaths)


@contextmanager
def _dying(address: str, chance: random.Random) -> Iterator[list[int]]:
    """Keep two workers, of which one is killed now and then whatever it does; yield the processes that were.

    They have no nanny: it gives a worker up that dies while it starts.
    """
    over, deaths = threading.Event(), list[int]()
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL)

    workers = [start(), start()]

    def kill() -> None:
        while not over.wait(chance.uniform(0.5, 5.0)):
            dead = workers.pop(chance.randrange(2))
            dead.kill()
            deaths.append(dead.pid)
            dead.wait()
            workers.append(start())

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield deaths
    finally:
        over.set()
        killer.join()
        for worker in workers:
            worker.kill()
            worker.wait()


@pytest.mark.slow
def test_a_shard_that_ends_every_worker_is_named(client: Any):
    with pytest.raises(ShardError, match=r"shard .*7.*: the workers that ran it died one after the other, tcp://.*"):
        run_shards(_deadly, ((n,) for n in range(100)), total=100, client=client)
    client.wait_for_workers(2)


def test_work_goes_on_when_the_only_worker_dies_with_what_all_its_shards_share(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    from distributed import Client, LocalCluster

    task = partial(_first_time_deadly, tmp_path / "died", np.arange(100_000.0))
    with (
        caplog.at_level(logging.WARNING, logger="blocks"),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as alone,
    ):
        assert run_shards(task, ((n,) for n in range(20)), total=20, client=alone) == 20
    assert (tmp_path / "died").exists()
    assert "died; what it had in work waits for a worker, of which none is left" in caplog.text


def test_a_scheduler_that_goes_away_is_said_to_be_gone(tmp_path: Path):
    from distributed import Client, LocalCluster

    started = tmp_path / "started"
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")
        with Client(cluster.scheduler_address, timeout="2s") as alone:
            ended = threading.Thread(target=lambda: (_wait_for(started), cluster.close()))
            ended.start()
            with pytest.raises(ShardError, match=r"the Dask scheduler is gone.*: what is written is taken up"):
                run_shards(partial(_slow, started), ((n,) for n in range(1000)), total=1000, client=alone)
            ended.join()


def _as_a_stream(task: Any, client: Any) -> None:
    run_shards(task, ((n,) for n in range(2)), total=2, client=client)


def _as_a_graph(task: Any, client: Any) -> None:
    tasks: dict[Any, Any] = {(f"task-{id(task)}", n): (task, (n,)) for n in range(2)}
    graph = Graph(HighLevelGraph.from_collections("tasks", tasks), {key: (0, key[1:]) for key in tasks})
    graph_on_cluster(graph, Count(2, done=0, written=None, progress=None), client)


@pytest.mark.parametrize("run", [_as_a_stream, _as_a_graph])
def test_nothing_is_in_work_any_more_when_a_run_has_failed(client: Any, tmp_path: Path, run: Any):
    with pytest.raises(ShardError, match=r"shard 1 .*no luck"):
        run(partial(_failing_beside_a_long_one, tmp_path), client)
    assert (tmp_path / "started").exists()
    assert (tmp_path / "ended").exists()


def _failing_beside_a_long_one(folder: Path, index: tuple[int, ...]) -> int:
    if index == (0,):
        (folder / "started").touch()
        time.sleep(2)
        (folder / "ended").touch()
        return 1
    _wait_for(folder / "started")
    msg = "no luck"
    raise ValueError(msg)


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


def _slow(started: Path, index: tuple[int, ...]) -> int:
    if index == (3,):
        started.touch()
    time.sleep(0.1)
    return 1


def _first_time_deadly(died: Path, _shared: np.ndarray, index: tuple[int, ...]) -> int:
    if index == (7,) and not died.exists():
        died.touch()
        os._exit(1)
    return 1


def _deadly(index: tuple[int, ...]) -> int:
    if index == (7,):
        os._exit(1)
    return 0
