"""What the coarser levels of an image cost: ours beside tensorstore, dask coarsen and ngff-zarr, in one run.

Four questions: the mean and the most frequent label, in memory and from a store's level 0 into its levels. Every
contender computes the same levels, down to one chunk; they take turns, and each figure is the median of its turns.
Memory is watched in a turn of its own, the first, above what the process held at its start.

    python benchmarks/pyramid.py                    # 64 million voxels, some minutes on two cores
    python benchmarks/pyramid.py --shape 128 256 256 --repeats 3 --json
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import psutil
import zarr

import blocks
from blocks.execute import compute, rewrite_levels
from blocks.image import levels_of, open_image
from blocks.image.levels import planned_levels
from blocks.storage import Layout, create_array

AXES = ("z", "y", "x")


@dataclass
class Contender:
    """One way to make the levels, and what its turns cost."""

    case: str
    name: str
    run: Callable[[], object]
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    peak_mib: float = 0.0

    def turn(self) -> None:
        """Run once and keep what it cost."""
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        self.run()
        self.wall_s.append(time.perf_counter() - wall)
        self.cpu_s.append(time.process_time() - cpu)

    def watched_turn(self) -> None:
        """Run once more, untimed: to warm up, and to keep the memory it takes."""
        gc.collect()
        with Peak() as peak:
            self.run()
        self.peak_mib = peak.mib


class Peak:
    """The most memory this process held, above what it held at the start, sampled every few milliseconds."""

    def __enter__(self) -> Peak:
        self._process, self._done = psutil.Process(), threading.Event()
        self._base = self._most = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.004):
            self._most = max(self._most, self._process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def mib(self) -> float:
        """Memory above the start, in MiB."""
        return (self._most - self._base) / 2**20


def phantom(shape: tuple[int, ...], *, labels: bool) -> np.ndarray:
    """Return a smooth image with noise (uint16), or its tissue classes (uint8)."""
    z, y, x = (np.linspace(-1, 1, n, dtype=np.float32) for n in shape)
    waves = np.sin(9 * z)[:, None, None] + np.sin(7 * y)[None, :, None] * np.sin(8 * x)[None, None, :]
    inside = (z[:, None, None] ** 2 + y[None, :, None] ** 2 + x[None, None, :] ** 2) < 0.9
    if labels:
        return np.where(inside, (waves + 2) * 5, 0).astype(np.uint8)
    noise = np.random.default_rng(0).normal(0, 12, shape).astype(np.float32)
    return np.where(inside, waves * 400 + 1000 + noise, 40 + noise * 0.5).clip(0).astype(np.uint16)


def halved(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-n // 2) for n in shape)


def in_memory(voxels: np.ndarray, kind: str) -> list[tuple[str, Callable[[], object]]]:
    image = blocks.image_of(voxels, blocks.Grid.of(voxels.shape), kind=kind)
    count = len(planned_levels(voxels.shape)) - 1
    runs: list[tuple[str, Callable[[], object]]] = [("fidopt", lambda: compute(*blocks.pyramid(image)[1:]))]
    if importlib.util.find_spec("tensorstore"):
        import tensorstore as ts

        def with_tensorstore() -> None:
            finer = voxels
            for _ in range(count):
                method = "mean" if kind == "image" else "mode"
                finer = ts.downsample(ts.array(finer), [2, 2, 2], method).read().result()

        runs.append(("tensorstore", with_tensorstore))
    if kind == "image":
        runs.append(("dask coarsen", lambda: dask.compute(*coarsened(da.from_array(voxels, chunks=256), count))))
    if importlib.util.find_spec("ngff_zarr"):
        runs.append(("ngff-zarr", lambda: dask.compute(*(i.data for i in ngff(voxels, kind, count).images[1:]))))
    return runs


def coarsened(data: da.Array, count: int) -> list[da.Array]:
    """Return the levels as dask.array.coarsen makes them, rounded as ours."""
    levels = []
    for _ in range(count):
        data = da.coarsen(np.mean, data, dict.fromkeys(range(3), 2)).round().astype(data.dtype)
        levels.append(data)
    return levels


def ngff(data: object, kind: str, count: int):
    import ngff_zarr

    method = ngff_zarr.Methods.DASK_BIN_SHRINK if kind == "image" else ngff_zarr.Methods.DASK_IMAGE_MODE
    image = ngff_zarr.to_ngff_image(data, dims=list(AXES))
    factors = [2**k for k in range(1, count + 1)]
    return ngff_zarr.to_multiscales(image, scale_factors=factors, method=method, chunks=64, cache=False)


def in_a_store(path: Path, kind: str, scratch: Path) -> list[tuple[str, Callable[[], object]]]:
    """Return the ways to write a store's levels from its level 0; all but ours write them into a scratch folder."""
    count = len(levels_of(path)) - 1
    runs: list[tuple[str, Callable[[], object]]] = [("fidopt", partial(rewrite_levels, path))]
    if importlib.util.find_spec("tensorstore"):
        runs.append(("fidopt on tensorstore", partial(rewrite_levels, path, library="tensorstore")))
        runs.append(("tensorstore", partial(store_tensorstore, path, kind, count, scratch)))
    if kind == "image":
        runs.append(("dask coarsen", partial(store_coarsened, path, count, scratch)))
    if importlib.util.find_spec("ngff_zarr"):
        runs.append(("ngff-zarr", partial(store_ngff, path, kind, count, scratch)))
    return runs


def fresh(scratch: Path) -> Path:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    return scratch


def store_tensorstore(path: Path, kind: str, count: int, scratch: Path) -> None:
    import tensorstore as ts

    def opened(array: Path):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{array}/"}}
        return ts.open(spec | {"context": {"cache_pool": {"total_bytes_limit": 0}}}).result()

    fresh(scratch)
    finer = opened(path / "0")
    for level in range(1, count + 1):
        layout = Layout.of(halved(tuple(finer.shape)), finer.dtype.numpy_dtype, AXES)
        create_array(str(scratch / str(level)), layout)
        coarse = opened(scratch / str(level))
        coarse.write(ts.downsample(finer, [2, 2, 2], "mean" if kind == "image" else "mode")).result()
        finer = coarse


def store_coarsened(path: Path, count: int, scratch: Path) -> None:
    fresh(scratch)
    data = da.from_zarr(zarr.open_array(path / "0", mode="r"), chunks=256)
    for level in range(1, count + 1):
        (coarse,) = coarsened(data, 1)
        layout = Layout.of(coarse.shape, coarse.dtype, AXES)
        create_array(str(scratch / str(level)), layout)
        target = zarr.open_array(scratch / str(level), mode="r+")
        da.store(coarse.rechunk(layout.blocks), target, lock=False)
        data = da.from_zarr(target, chunks=256)


def store_ngff(path: Path, kind: str, count: int, scratch: Path) -> None:
    import ngff_zarr

    data = da.from_zarr(zarr.open_array(path / "0", mode="r"), chunks=256)
    levels = ngff(data, kind, count)
    # Level 0 is there already, under the name that ngff-zarr looks for.
    zarr.create_group(fresh(scratch)).create_group("scale0")
    (scratch / "scale0" / "image").symlink_to(path / "0")
    ngff_zarr.to_ngff_zarr(str(scratch), levels, version="0.5", chunks_per_shard=4, start_level=1, overwrite=False)


def check(path: Path, kind: str, voxels: np.ndarray) -> None:
    """Compare the store's levels with tensorstore's downsample of the one before, before anything is timed."""
    if not importlib.util.find_spec("tensorstore"):
        return
    import tensorstore as ts

    finer = voxels
    for level in range(1, len(levels_of(path))):
        finer = ts.downsample(ts.array(finer), [2, 2, 2], "mean" if kind == "image" else "mode").read().result()
        if not np.array_equal(finer, open_image(path, level).values):
            sys.exit(f"level {level} differs from tensorstore's: nothing is measured")


def contenders(shape: tuple[int, ...], folder: Path) -> list[Contender]:
    ways = []
    for case, kind in (("mean", "image"), ("mode", "labels")):
        voxels = phantom(shape, labels=kind == "labels")
        path = folder / f"{case}.ome.zarr"
        image = blocks.image_of(voxels, blocks.Grid.of(shape), kind=kind)
        blocks.write_image(path, image)
        check(path, kind, voxels)
        ways += [Contender(f"{case}-memory", name, run) for name, run in in_memory(voxels, kind)]
        ways += [Contender(f"{case}-store", name, run) for name, run in in_a_store(path, kind, folder / "scratch")]
    return ways


def rows(ways: list[Contender], voxels: int) -> list[dict[str, object]]:
    found = []
    for way in ways:
        ours = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        if way is ours:
            continue
        mine, theirs = (statistics.median(w.cpu_s) / voxels * 1e9 for w in (ours, way))
        row = {"case": way.case, "ours": mine, "peer": way.name, "peer_value": theirs, "unit": "ns/voxel"}
        found.append(row | {"ratio": theirs / mine, "peak_mib": ours.peak_mib, "peer_peak_mib": way.peak_mib})
    return found


def table(ways: list[Contender], voxels: int) -> str:
    lines = [f"{'case':12} {'who':22} {'cpu ns/voxel':>12} {'wall s':>8} {'peak MiB':>9} {'cost over ours':>15}"]
    for way in ways:
        ours = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        cpu, mine = statistics.median(way.cpu_s), statistics.median(ours.cpu_s)
        figures = f"{cpu / voxels * 1e9:12.2f} {statistics.median(way.wall_s):8.2f} {way.peak_mib:9.0f}"
        lines.append(f"{way.case:12} {way.name:22} {figures} {cpu / mine:15.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(256, 512, 512), metavar=("Z", "Y", "X"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    shape = tuple(options.shape)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        ways = contenders(shape, Path(folder))
        for way in ways:
            sys.stderr.write(f"\rwarm up: {way.case}, {way.name:30}")
            way.watched_turn()
        for repeat in range(options.repeats):
            for way in ways:
                sys.stderr.write(f"\rturn {repeat + 1} of {options.repeats}: {way.case}, {way.name:24}")
                way.turn()
        sys.stderr.write("\n")
    voxels = int(np.prod(shape))
    if options.json:
        print(json.dumps({"rows": rows(ways, voxels)}, indent=2))
    else:
        print(f"{shape[0]} x {shape[1]} x {shape[2]}, median CPU time of {options.repeats} turns, all levels\n")
        print(table(ways, voxels))


if __name__ == "__main__":
    main()
