"""Does it stay flat: the same warp, pyramid and label score of 1 to 32 GiB by workers of one fixed budget.

One volume of the largest size is made once, with its labels; each size warps, onto a grid that covers as much of it,
through a cubic B-spline and with all levels, and then counts labels. What is reported is CPU time a voxel and the most
memory of any worker: neither may grow with the size. A part of each result is compared with the same warp in memory.

    python benchmarks/scale.py                          # 1 and 4 GiB, some minutes on two cores
    python benchmarks/scale.py --sizes 1 4 16 32        # needs 90 GiB of disk
    python benchmarks/scale.py --simulate               # a terabyte and a petabyte planned, a million shards driven
    python benchmarks/scale.py --workers-against-processes      # what the scheduler takes from two workers
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil

import blocks
from blocks.execute import run_shards
from blocks.graphs.shard_layer import job_of
from blocks.graphs.store import warp_shard
from blocks.grid import Grid
from blocks.image import open_image
from blocks.plan import in_morton_order, read_region
from blocks.storage import Layout, create_array
from blocks.transforms import BSpline
from fidopt.cluster.budget import task_bytes
from fidopt.cluster.connection import run
from fidopt.descriptors.deployment import Local

AXES = ("z", "y", "x")
#: Voxels between the control points of the spline, and the standard deviation of its coefficients in voxels.
CELL, BEND = 64, 3.0
#: Voxels a side of the part that is compared with the warp in memory.
COMPARED = 1024


@dataclass
class Cost:
    """What one operation took.

    Parameters
    ----------
    case
        The operation and the size.
    voxels
        Voxels of the result.
    cpu_ns
        CPU time of all workers, a voxel.
    seconds
        How long it took.
    peak_mib
        The most memory any worker held meanwhile.
    """

    case: str
    voxels: int
    cpu_ns: float
    seconds: float
    peak_mib: float


def shape_of(gib: float) -> tuple[int, int, int]:
    """Return the shape of a volume of 16-bit voxels, about a cube."""
    voxels = int(gib * 2**30) // 2
    side = round(voxels ** (1 / 3))
    return (voxels // side**2, side, side)


def some_block(block_info: Any = None, *, labels: bool = False) -> np.ndarray:
    """Return a block of waves with noise, or of labels, from where it lies alone."""
    where = block_info[None]["array-location"]
    z, y, x = (np.arange(a, b, dtype=np.float32) for a, b in where)
    if labels:
        one = (z // 97 % 5)[:, None, None] * 25 + (y // 83 % 5)[None, :, None] * 5 + (x // 71 % 5)[None, None, :]
        return (one + 1).astype(np.uint8)
    waves = np.sin(z / 31)[:, None, None] + np.sin(y / 43)[None, :, None] * np.sin(x / 37)[None, None, :]
    noise = np.random.default_rng([int(a) for a, _ in where]).integers(0, 32, waves.shape, dtype=np.uint16)
    return (waves * 400 + 1200).astype(np.uint16) + noise


def make(path: Path, shape: tuple[int, ...], client: Any, *, labels: bool = False) -> None:
    dtype = np.uint8 if labels else np.uint16
    chunks = Layout.of(shape, dtype, AXES).blocks
    data = da.map_blocks(some_block, chunks=da.core.normalize_chunks(chunks, shape), dtype=dtype, labels=labels)
    image = blocks.image_of(data, Grid.of(shape), kind="labels" if labels else "image")
    blocks.write_image(path, image, levels=False, client=client)


def spline(shape: tuple[int, ...]) -> BSpline:
    counts = tuple(-(-n // CELL) + 3 for n in shape)
    lattice = Grid.of(counts, spacing=(CELL,) * 3, origin=(-CELL,) * 3)
    return BSpline(lattice, np.random.default_rng(0).normal(scale=BEND, size=(3, *counts)))


@contextmanager
def measured(case: str, voxels: int, client: Any, costs: list[Cost]) -> Iterator[None]:
    """Take the CPU time and the peak memory of a cluster's workers while something runs."""
    workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, *(worker.memory_info().rss for worker in workers))

    def cpu() -> float:
        return sum(sum(worker.cpu_times()[:2]) for worker in workers)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    before, start = cpu(), time.perf_counter()
    yield
    seconds, used = time.perf_counter() - start, cpu() - before
    done.set()
    thread.join()
    costs.append(Cost(case, voxels, used / voxels * 1e9, seconds, peak / 2**20))
    print(f"{case}: {costs[-1].cpu_ns:.1f} ns/voxel, {seconds:.0f} s, {costs[-1].peak_mib:.0f} MiB", file=sys.stderr)


def differs(moving: Path, out: Path, transform: BSpline, grid: Grid) -> int:
    """Return how many voxels of a part of the result differ from the same warp in memory."""
    start = [max(0, n // 2 - COMPARED // 2) for n in grid.shape]
    part = blocks.Region(tuple(start), tuple(min(a + COMPARED, n) for a, n in zip(start, grid.shape, strict=True)))
    source = open_image(moving)
    here = grid.crop(part)
    read = read_region(transform, here, here.region, blocks.grid_of(source), interpolation="linear")
    around = blocks.image_of(source[read.slices].compute().values, blocks.grid_of(source).crop(read))
    expected = blocks.compute(blocks.warp(around, transform, here)).values
    return int((open_image(out)[part.slices].values != expected).sum())


def at_sizes(sizes: Sequence[float], folder: Path, *, workers: int, memory: str) -> tuple[list[Cost], int]:
    costs: list[Cost] = []
    wrong = 0
    with run(Local(workers=workers, dashboard="127.0.0.1:0"), memory=memory) as running:
        client = running.client
        whole = shape_of(max(sizes))
        for name in ("moving", "labels"):
            make(folder / f"{name}.ome.zarr", whole, client, labels=name == "labels")
        transform = spline(whole)
        # The kernels are compiled, and the workers' pools filled, before anything is measured.
        small, out = Grid.of(shape_of(1 / 8)), folder / "warped.ome.zarr"
        blocks.write_image(out, blocks.warp(open_image(folder / "moving.ome.zarr"), transform, small), client=client)
        few = open_image(folder / "labels.ome.zarr")[small.region.slices]
        client.compute(blocks.overlap(few, few)).result()
        for size in sizes:
            grid = Grid.of(tuple(min(a, b) for a, b in zip(shape_of(size), whole, strict=True)))
            voxels, image = math.prod(grid.shape), open_image(folder / "moving.ome.zarr")
            warped = blocks.warp(image, transform, grid, memory_bytes=task_bytes(client))
            with measured(f"warp and pyramid, {size:g} GiB", voxels, client, costs):
                blocks.write_image(out, warped, client=client, overwrite=True)
            wrong += differs(folder / "moving.ome.zarr", out, transform, grid)
            labels = open_image(folder / "labels.ome.zarr")[grid.region.slices]
            with measured(f"label counts, {size:g} GiB", voxels, client, costs):
                client.compute(blocks.overlap(labels, labels)).result()
    return costs, wrong


def rows(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    found = []
    for cost in costs:
        first = next(c for c in costs if c.case.split(",")[0] == cost.case.split(",")[0])
        row = {"case": cost.case, "ours": cost.cpu_ns, "peer": first.case, "peer_value": first.cpu_ns}
        row |= {"unit": "ns/voxel", "ratio": first.cpu_ns / cost.cpu_ns, "peak_mib": cost.peak_mib}
        found.append(row | {"peak_ratio": cost.peak_mib / first.peak_mib, "seconds": cost.seconds})
    return found


def alone(task: partial[int], indices: Sequence[tuple[int, ...]], ready: Any, begin: Any) -> None:
    """Write shards in a process of its own, from the moment that all are ready."""
    task(indices[0])
    ready.release()
    begin.wait()
    for index in indices:
        task(index)


def beside_processes(gib: float, *, workers: int, turns: int) -> list[dict[str, Any]]:
    """Measure workers of a cluster beside as many processes that share nothing, on the same shards, in turns."""
    shape = shape_of(gib)
    with (
        tempfile.TemporaryDirectory(prefix="fidopt-scale-") as folder,
        run(Local(workers=workers, cores=1, dashboard="127.0.0.1:0"), memory="2GiB") as running,
    ):
        moving, out = Path(folder, "moving.ome.zarr"), str(Path(folder, "out"))
        make(moving, shape, running.client)
        warped = blocks.warp(open_image(moving), spline(shape), Grid.of(shape))
        array = create_array(out, Layout.of(shape, np.uint16, AXES))
        task = partial(warp_shard, job_of(warped), array, None)
        order = list(in_morton_order(array.layout.blocks_along))
        run_shards(task, order, total=len(order), client=running.client)
        seconds: dict[str, list[float]] = {"workers": [], "processes": []}
        for _ in range(turns):
            start = time.perf_counter()
            run_shards(task, order, total=len(order), name="warp-shard", client=running.client)
            seconds["workers"].append(time.perf_counter() - start)
            seconds["processes"].append(by_processes(task, order, workers))
    ours, theirs = (statistics.median(seconds[who]) / math.prod(shape) * 1e9 for who in ("workers", "processes"))
    row = {
        "case": f"{workers} workers, {gib:g} GiB",
        "ours": ours,
        "peer": f"{workers} processes",
        "peer_value": theirs,
    }
    return [row | {"unit": "ns/voxel", "ratio": theirs / ours}]


def by_processes(task: partial[int], order: Sequence[tuple[int, ...]], count: int) -> float:
    """Return the seconds that processes take which share the shards among them and nothing else."""
    spawn = multiprocessing.get_context("spawn")
    ready, begin = spawn.Semaphore(0), spawn.Event()
    share = -(-len(order) // count)
    parts = [order[first : first + share] for first in range(0, len(order), share)]
    processes = [spawn.Process(target=alone, args=(task, part, ready, begin)) for part in parts]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    start = time.perf_counter()
    begin.set()
    for process in processes:
        process.join()
    return time.perf_counter() - start


def simulated(shards: int, *, workers: int) -> list[dict[str, Any]]:
    """Plan a terabyte and a petabyte, and drive tasks that do nothing through the scheduler that drives shards."""
    found = []
    for name, size in (("terabyte", 10**12), ("petabyte", 10**15)):
        start = time.perf_counter()
        side = round((size / 2) ** (1 / 3))
        layout = Layout.of((side,) * 3, np.uint16, AXES)
        order = in_morton_order(layout.blocks_along)
        grid, bent = Grid.of((side,) * 3), spline((1024,) * 3)
        first = [read_region(bent, grid, layout.region(next(order)), grid, interpolation="linear") for _ in range(8)]
        seconds = time.perf_counter() - start
        count = math.prod(layout.blocks_along)
        found.append({"case": f"plan of a {name}", "ours": seconds, "unit": "s", "shards": count, "read": len(first)})
    with run(Local(workers=workers, dashboard="127.0.0.1:0")) as running:
        process, begun = psutil.Process(), 0.0
        base, peak = process.memory_info().rss, 0

        def note(done: int, _total: int, _written: int, /) -> None:
            nonlocal begun, peak
            begun = begun or time.perf_counter() - start
            if done % 1000 == 0:
                peak = max(peak, process.memory_info().rss)

        counts = (100, 100, -(-shards // 10_000))
        start = time.perf_counter()
        total = math.prod(counts)
        run_shards(len, in_morton_order(counts), total=total, name="no-shard", progress=note, client=running.client)
        seconds = time.perf_counter() - start
    case = f"{total} shards that do nothing"
    found.append({"case": case, "ours": seconds / total * 1e3, "unit": "ms/shard", "shards": total})
    found.append({"case": "first shard done", "ours": begun, "unit": "s"})
    found.append({"case": "driver above its base", "ours": (peak - base) / 2**20, "unit": "MiB"})
    return [row | {"peer": None, "peer_value": None, "ratio": None} for row in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 4], help="GiB of 16-bit voxels")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GiB", help="of a worker")
    parser.add_argument("--dir", type=Path, help="where the volumes go meanwhile")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--workers-against-processes", action="store_true")
    parser.add_argument("--shards", type=int, default=10**6, help="of the simulation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wrong, costs = 0, list[Cost]()
    if options.simulate:
        found = simulated(options.shards, workers=options.workers)
    elif options.workers_against_processes:
        found = beside_processes(options.sizes[0], workers=options.workers, turns=3)
    else:
        folder = Path(tempfile.mkdtemp(prefix="fidopt-scale-", dir=options.dir))
        try:
            costs, wrong = at_sizes(options.sizes, folder, workers=options.workers, memory=options.memory)
        finally:
            shutil.rmtree(folder)
        found = rows(costs)
    if options.json:
        print(json.dumps({"rows": found}, indent=2))
    else:
        for row in found:
            more = f", {row['peak_mib']:.0f} MiB a worker" if "peak_mib" in row else ""
            more += f", {row['ratio']:.2f} of what {row['peer']} reach" if "ratio" in row else ""
            print(f"{row['case']:36} {row['ours']:10.3f} {row['unit']}{more}")
    if wrong:
        print(f"{wrong} voxels differ from the warp in memory", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
