"""What a warp costs a voxel: ours beside SimpleITK, SciPy, dask-image, torch and ngff-zarr, in one run, on one core.

Three questions: a cubic B-spline transform read linearly, a dense displacement field read linearly, and the same field
with the nearest voxel. Ours warps the whole volume through the public, lazy call; a peer warps a few of its planes,
since its cost a voxel is the same and its time is not. They take turns, and each figure is the median of its turns'
CPU time in the program itself. What the system takes to hand out fresh pages is told apart (``system``): it depends on
what the machine's memory is like at the moment, and a few planes are written to memory that was there. Before anything
is timed, ours is compared with SimpleITK in float64.

    python benchmarks/warp.py                       # 64 million voxels, some minutes
    python benchmarks/warp.py --shape 64 256 256 --planes 8 --repeats 3 --json
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import resource
import statistics
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import psutil
import SimpleITK as sitk  # noqa: N813 - the package's customary name

import blocks

CASES = ("bspline-linear", "field-linear", "field-nearest")


@dataclass
class Contender:
    """One way to warp, the voxels it warps, and what its turns cost."""

    case: str
    name: str
    run: Callable[[], object]
    voxels: int
    cpu_s: list[float] = field(default_factory=list)
    system_s: list[float] = field(default_factory=list)
    peak_mib: float = 0.0

    def turn(self) -> None:
        """Run once and keep what it cost."""
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF)
        self.run()
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu_s.append(after.ru_utime - before.ru_utime)
        self.system_s.append(after.ru_stime - before.ru_stime)

    def watched_turn(self) -> None:
        """Run once, untimed: to warm up, and to keep the memory it takes above what was there."""
        gc.collect()
        process, done = psutil.Process(), threading.Event()
        base = most = process.memory_info().rss

        def watch() -> None:
            nonlocal most
            while not done.wait(0.004):
                most = max(most, process.memory_info().rss)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        self.run()
        done.set()
        thread.join()
        self.peak_mib = (most - base) / 2**20

    @property
    def nanoseconds(self) -> float:
        """Median CPU time a voxel."""
        return statistics.median(self.cpu_s) / self.voxels * 1e9

    @property
    def system_nanoseconds(self) -> float:
        """Median of the system's time a voxel."""
        return statistics.median(self.system_s) / self.voxels * 1e9


@dataclass
class Volume:
    """What is warped: voxels on a grid, a B-spline, the same as a field, and the part of it that peers warp."""

    voxels: np.ndarray
    grid: blocks.Grid
    spline: blocks.BSpline
    field: blocks.DisplacementField
    part: blocks.Region

    @classmethod
    def of(cls, shape: tuple[int, ...], planes: int) -> Volume:
        """Return a smooth image with noise, displaced by some voxels on a lattice of about 20 voxels."""
        grid = blocks.Grid.of(shape, spacing=(0.8, 0.8, 1.2), origin=(-200.0, 12.5, 40.0))
        z, y, x = (np.linspace(-1, 1, n, dtype=np.float32) for n in shape)
        waves = np.sin(9 * z)[:, None, None] + np.sin(7 * y)[None, :, None] * np.sin(8 * x)[None, None, :]
        noise = np.random.default_rng(0).normal(0, 30, shape).astype(np.float32)
        voxels = (waves * 400 + 1200 + noise).clip(0).astype(np.uint16)
        mesh = [max(1, n // 20) for n in shape]
        spacing = [n * s / m for n, s, m in zip(shape[::-1], grid.spacing, mesh[::-1], strict=True)]
        origin = [o - s / 2 - d for o, s, d in zip(grid.origin, grid.spacing, spacing, strict=True)]
        lattice = blocks.Grid.of([m + 3 for m in mesh], spacing=spacing, origin=origin)
        spline = blocks.BSpline(lattice, np.random.default_rng(1).normal(size=(3, *lattice.shape)) * 2.5)
        vectors = blocks.displacement(spline, grid).compute(scheduler="synchronous").values
        first = max(0, shape[0] // 2 - planes // 2)
        part = blocks.Region((first, 0, 0), (min(first + planes, shape[0]), *shape[1:]))
        return cls(voxels, grid, spline, blocks.DisplacementField(grid, vectors), part)

    def transform(self, case: str) -> blocks.BSpline | blocks.DisplacementField:
        """Return the transform of a case."""
        return self.spline if case == "bspline-linear" else self.field


def in_itk(array: np.ndarray, grid: blocks.Grid, *, vector: bool = False) -> sitk.Image:
    image = sitk.GetImageFromArray(array, isVector=vector)
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)
    return image


def itk_transform(volume: Volume, case: str) -> sitk.Transform:
    if case == "bspline-linear":
        grid = volume.spline.grid
        spline = sitk.BSplineTransform(3, 3)
        spline.SetFixedParameters([*map(float, grid.shape[::-1]), *grid.origin, *grid.spacing, *grid.direction])
        spline.SetParameters(volume.spline.coefficients.ravel().tolist())
        return spline
    vectors = np.ascontiguousarray(np.moveaxis(np.asarray(volume.field.vectors, dtype=np.float64), 0, -1))
    return sitk.DisplacementFieldTransform(in_itk(vectors, volume.grid, vector=True))


def ours(volume: Volume, case: str) -> Callable[[], object]:
    image = blocks.image_of(volume.voxels, volume.grid)
    how = case.rsplit("-", 1)[1]
    transform = volume.transform(case)
    # One block: what is measured is the warp, not putting shards together in memory.
    shard = volume.grid.shape

    def run() -> object:
        warped = blocks.warp(image, transform, volume.grid, interpolation=how, shard=shard)
        return blocks.compute(warped)

    return run


def with_simpleitk(volume: Volume, case: str) -> Callable[[], object]:
    image, transform = in_itk(volume.voxels, volume.grid), itk_transform(volume, case)
    part = volume.grid.crop(volume.part)
    how = sitk.sitkNearestNeighbor if case == "field-nearest" else sitk.sitkLinear
    like = (part.shape[::-1], transform, how, part.origin, part.spacing, part.direction, 0.0, sitk.sitkUInt16)
    return partial(sitk.Resample, image, *like)


def coordinates(volume: Volume) -> np.ndarray:
    """Return the moving indices (3, z, y, x) of the part, as those who sample at given positions want them."""
    box = volume.part.slices
    vectors = np.asarray(volume.field.vectors)[(slice(None), *box)]
    index = np.meshgrid(*(np.arange(s.start, s.stop, dtype=np.float32) for s in box), indexing="ij", sparse=True)
    return np.stack([index[k] + vectors[2 - k] / np.float32(volume.grid.spacing[2 - k]) for k in range(3)])


def with_scipy(volume: Volume, case: str) -> Callable[[], object]:
    from scipy.ndimage import map_coordinates

    order = 0 if case == "field-nearest" else 1
    return lambda: map_coordinates(volume.voxels, coordinates(volume), order=order, mode="constant")


def with_dask_image(volume: Volume, case: str) -> Callable[[], object]:
    import dask.array as da
    from dask_image.ndinterp import map_coordinates

    order = 0 if case == "field-nearest" else 1
    data = da.from_array(volume.voxels, chunks=256)

    def run() -> object:
        at = da.from_array(coordinates(volume).reshape(3, -1), chunks=(3, 1 << 24))
        return map_coordinates(data, at, order=order, mode="constant").compute(scheduler="synchronous")

    return run


def with_torch(volume: Volume, case: str) -> Callable[[], object]:
    import torch

    torch.set_num_threads(1)
    values = torch.from_numpy(volume.voxels.astype(np.float32))[None, None]
    size = np.array(volume.grid.shape, dtype=np.float32)[:, None, None, None]
    mode = "nearest" if case == "field-nearest" else "bilinear"

    def run() -> object:
        at = 2 * coordinates(volume) / (size - 1) - 1
        places = torch.from_numpy(np.ascontiguousarray(np.moveaxis(at[::-1], 0, -1)))[None]
        return torch.nn.functional.grid_sample(values, places, mode=mode, align_corners=True)

    return run


def with_ngff_zarr(volume: Volume, case: str) -> Callable[[], object]:
    import itk
    import ngff_zarr

    def image(data: object, grid: blocks.Grid) -> object:
        dims = ("z", "y", "x")
        scale = dict(zip(dims, grid.spacing[::-1], strict=True))
        return ngff_zarr.to_ngff_image(
            data, dims=dims, scale=scale, translation=dict(zip(dims, grid.origin[::-1], strict=True))
        )

    import dask.array as da

    grid = volume.spline.grid
    spline = itk.BSplineTransform[itk.D, 3, 3].New()
    fixed = [*map(float, grid.shape[::-1]), *grid.origin, *grid.spacing, *grid.direction]
    spline.SetFixedParameters(itk.OptimizerParameters[itk.D](fixed))
    spline.SetParameters(itk.OptimizerParameters[itk.D](volume.spline.coefficients.ravel().tolist()))
    moving = image(da.from_array(volume.voxels, chunks=256), volume.grid)
    part = volume.grid.crop(volume.part)
    like = image(da.zeros(part.shape, chunks=256, dtype=np.uint16), part)
    return lambda: ngff_zarr.resample(spline, like, moving).data.compute(scheduler="synchronous")


def peers(case: str) -> dict[str, Callable[[Volume, str], Callable[[], object]]]:
    """Return the peers that are installed and answer a case."""
    found = {"SimpleITK": with_simpleitk}
    modules = {"scipy": with_scipy, "dask_image": with_dask_image, "torch": with_torch}
    if case == "bspline-linear":
        modules = {"ngff_zarr": with_ngff_zarr} if importlib.util.find_spec("itk") else {}
    for module, make in modules.items():
        if importlib.util.find_spec(module):
            found[module.replace("_", "-")] = make
    return found


def equality(volume: Volume, case: str) -> tuple[float, float]:
    """Return the share of the part's voxels that equal SimpleITK's in float64, rounded, and the largest difference."""
    part = volume.grid.crop(volume.part)
    how = sitk.sitkNearestNeighbor if case == "field-nearest" else sitk.sitkLinear
    exact = in_itk(volume.voxels.astype(np.float64), volume.grid)
    like = (part.shape[::-1], itk_transform(volume, case), how, part.origin, part.spacing, part.direction)
    expected = np.rint(sitk.GetArrayFromImage(sitk.Resample(exact, *like, 0.0, sitk.sitkFloat64)))
    warped = np.asarray(ours(volume, case)())[volume.part.slices]
    apart = np.abs(warped.astype(np.float64) - expected)
    return float((apart == 0).mean()), float(apart.max())


def contenders(volume: Volume) -> list[Contender]:
    ways = []
    for case in CASES:
        ways.append(Contender(case, "fidopt", ours(volume, case), volume.voxels.size))
        for name, make in peers(case).items():
            ways.append(Contender(case, name, make(volume, case), volume.part.size))
    return ways


def rows(ways: list[Contender]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for way in ways:
        mine = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        if way is not mine:
            row = {"case": way.case, "ours": mine.nanoseconds, "peer": way.name, "peer_value": way.nanoseconds}
            row |= {"ours_system": mine.system_nanoseconds, "peer_system": way.system_nanoseconds}
            found.append(row | {"unit": "ns/voxel", "ratio": way.nanoseconds / mine.nanoseconds})
    return found


def table(ways: list[Contender]) -> str:
    lines = [f"{'case':16} {'who':12} {'cpu ns/voxel':>12} {'cost over ours':>15} {'voxels':>12} {'peak MiB':>9}"]
    for way in ways:
        mine = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        figures = f"{way.nanoseconds:12.2f} {way.nanoseconds / mine.nanoseconds:15.1f}"
        lines.append(f"{way.case:16} {way.name:12} {figures} {way.voxels:12,} {way.peak_mib:9.0f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(256, 512, 512), metavar=("Z", "Y", "X"))
    parser.add_argument("--planes", type=int, default=8, help="planes that a peer warps")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    volume = Volume.of(tuple(options.shape), options.planes)
    same = {case: equality(volume, case) for case in CASES}
    for case, (share, most) in same.items():
        sys.stderr.write(f"{case}: {share:.4%} of voxels equal SimpleITK's, the largest difference is {most:g}\n")
        if share < 0.9999 or (most > 1 and case != "field-nearest"):
            sys.exit("that is too little: nothing is measured")
    ways = contenders(volume)
    for way in ways:
        sys.stderr.write(f"\rwarm up: {way.case}, {way.name:20}")
        way.watched_turn()
    for repeat in range(options.repeats):
        for way in ways:
            sys.stderr.write(f"\rturn {repeat + 1} of {options.repeats}: {way.case}, {way.name:20}")
            way.turn()
    sys.stderr.write("\n")
    if options.json:
        print(json.dumps({"rows": rows(ways)}, indent=2))
    else:
        size = " x ".join(str(n) for n in options.shape)
        print(f"{size} uint16, median CPU time of {options.repeats} turns, one thread\n")
        print(table(ways))


if __name__ == "__main__":
    main()
