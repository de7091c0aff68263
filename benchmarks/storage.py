"""What a warp costs from store to store: ours beside copying the same store by the same storage path, in one run.

Two questions: a cubic B-spline transform, and the same followed by a rotation of 30 degrees. Copying reads every shard
and writes it again, through the same code and the same scheduler: whatever a warp takes beyond it is the price of
planning, of what is read around a shard, of the kernel, and of compressing voxels that are noisier for having been
interpolated. Beside it stands the same copy as zarr-python makes it with two threads, a shard at a time. With
tensorstore installed ours is measured on it too, and ngff-zarr where it can resample. The contenders take turns; each
figure is the median of its turns' CPU time.

How many chunks a shard decodes is counted as well, with the chunks that neighbours share kept, and without.

How much dearer it is to compress what was interpolated depends on the image: little for a stack from a microscope,
a fifth for the phantom, whose background is a noise of few grey levels. ``--image`` takes any store of a volume, which
is mirrored until it fills the shape.

    python benchmarks/storage.py                    # 64 million voxels, some minutes on two cores
    python benchmarks/storage.py --shape 512 512 1024 --json
    python benchmarks/storage.py --shape 512 512 1024 --image brain.ome.zarr
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import zarr
from pyramid import AXES, Contender, fresh, phantom

import blocks
from blocks.grid import Grid
from blocks.image import open_image
from blocks.region import Region
from blocks.storage import Layout
from blocks.storage.cache import CHUNKS
from blocks.transforms import Affine, BSpline, Composite, Transform

#: Voxels between the control points of the spline, and the standard deviation of its coefficients in voxels.
CELL, BEND = 32, 3.0


def spline(shape: tuple[int, ...]) -> BSpline:
    counts = tuple(-(-n // CELL) + 3 for n in shape)
    lattice = Grid.of(counts, spacing=(CELL,) * 3, origin=(-CELL,) * 3)
    return BSpline(lattice, np.random.default_rng(0).normal(scale=BEND, size=(3, *counts)))


def rotation(grid: Grid) -> Affine:
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    centre = grid.world([(n - 1) / 2 for n in grid.shape[::-1]])
    return Affine.rigid([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]], (0, 0, 0), centre=centre)


def transforms(shape: tuple[int, ...]) -> dict[str, Transform]:
    bent = spline(shape)
    return {"warp-store": bent, "warp-store-30-degrees": Composite((bent, rotation(Grid.of(shape))))}


def warped(path: Path, out: Path, transform: Transform, library: str) -> None:
    image = open_image(path, library=library)
    blocks.write_image(
        out, blocks.warp(image, transform, blocks.grid_of(image)), levels=False, overwrite=True, library=library
    )


def copied(path: Path, out: Path, library: str) -> None:
    blocks.write_image(out, open_image(path, library=library), levels=False, overwrite=True, library=library)


def copied_by_zarr(path: Path, out: Path) -> None:
    source = zarr.open_array(path / "0", mode="r")
    layout = {"chunks": source.chunks, "shards": source.shards, "compressors": source.compressors}
    target = zarr.create_array(fresh(out), shape=source.shape, dtype=source.dtype, fill_value=0, **layout)

    def copy(region: Region) -> None:
        target[region.slices] = source[region.slices]

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(copy, Region((0,) * source.ndim, source.shape).split(source.shards)))


def with_ngff_zarr(path: Path, out: Path, bent: BSpline) -> None:
    import dask.array as da
    import itk
    import ngff_zarr

    def image(data: object) -> object:
        return ngff_zarr.to_ngff_image(
            data, dims=AXES, scale=dict.fromkeys(AXES, 1.0), translation=dict.fromkeys(AXES, 0.0)
        )

    lattice = bent.grid
    transform = itk.BSplineTransform[itk.D, 3, 3].New()
    fixed = [*map(float, lattice.shape[::-1]), *lattice.origin, *lattice.spacing, *lattice.direction]
    transform.SetFixedParameters(itk.OptimizerParameters[itk.D](fixed))
    transform.SetParameters(itk.OptimizerParameters[itk.D](bent.coefficients.ravel().tolist()))
    moving = image(da.from_zarr(zarr.open_array(path / "0", mode="r"), chunks=256))
    result = ngff_zarr.to_multiscales(
        ngff_zarr.resample(transform, moving, moving), scale_factors=[], chunks=64, cache=False
    )
    ngff_zarr.to_ngff_zarr(str(fresh(out)), result, version="0.5", chunks_per_shard=4)


def mirrored(store: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the voxels of a store, mirrored at its faces until they fill a shape."""
    voxels = blocks.compute(open_image(store)).values
    if voxels.ndim != len(shape):
        raise SystemExit(f"{store} has the axes {open_image(store).dims}, a volume z, y, x is expected")
    kept = voxels[tuple(slice(n) for n in shape)]
    return np.pad(kept, [(0, n - m) for n, m in zip(shape, kept.shape, strict=True)], mode="symmetric")


def contenders(shape: tuple[int, ...], path: Path, folder: Path) -> list[Contender]:
    ways = []
    libraries = ["zarr"] + ["tensorstore"] * bool(importlib.util.find_spec("tensorstore"))
    for case, transform in transforms(shape).items():
        for library in libraries:
            name, out = case if library == "zarr" else f"{case}-{library}", folder / f"{library}.ome.zarr"
            ways.append(Contender(name, "fidopt", partial(warped, path, out, transform, library)))
            ways.append(Contender(name, "copying", partial(copied, path, out, library)))
        ways.append(Contender(case, "zarr-python", partial(copied_by_zarr, path, folder / "copy.zarr")))
        if isinstance(transform, BSpline) and all(map(importlib.util.find_spec, ("ngff_zarr", "itk"))):
            ways.append(
                Contender(case, "ngff-zarr", partial(with_ngff_zarr, path, folder / "ngff.ome.zarr", transform))
            )
    return ways


def decodes(way: Contender, *, kept: bool) -> int:
    """Return how many chunks a warp decodes, with or without those that neighbours share."""
    CHUNKS.forget()
    before = CHUNKS.decoded
    with nullcontext() if kept else CHUNKS.room(0):
        way.run()
    return CHUNKS.decoded - before


def decode_rows(ways: list[Contender], shards: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for way in ways:
        if way.name == "fidopt" and not way.case.endswith("tensorstore"):
            kept, without = (decodes(way, kept=kept) / shards for kept in (True, False))
            row = {"case": f"{way.case}-decodes", "ours": kept, "peer": "without a cache", "peer_value": without}
            found.append(row | {"unit": "chunks/shard", "ratio": without / kept})
    return found


def rows(ways: list[Contender], voxels: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for way in ways:
        ours = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        if way is not ours:
            mine, theirs = (statistics.median(w.cpu_s) / voxels * 1e9 for w in (ours, way))
            row = {"case": way.case, "ours": mine, "peer": way.name, "peer_value": theirs, "unit": "ns/voxel"}
            found.append(row | {"ratio": theirs / mine, "peak_mib": ours.peak_mib, "peer_peak_mib": way.peak_mib})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(256, 512, 512), metavar=("Z", "Y", "X"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--image", type=Path, metavar="STORE", help="a volume to warp in place of the phantom")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    shape = tuple(options.shape)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        path = Path(name) / "moving.ome.zarr"
        voxels = mirrored(options.image, shape) if options.image else phantom(shape, labels=False)
        blocks.write_image(path, blocks.image_of(voxels, Grid.of(shape)), levels=False)
        del voxels
        ways = contenders(shape, path, Path(name))
        for way in ways:
            sys.stderr.write(f"\rwarm up: {way.case}, {way.name:20}")
            way.watched_turn()
        shards = len(Layout.of(shape, open_image(path).dtype, AXES).indices())
        counted = decode_rows(ways, shards)
        for repeat in range(options.repeats):
            for way in ways:
                sys.stderr.write(f"\rturn {repeat + 1} of {options.repeats}: {way.case}, {way.name:20}")
                way.turn()
        sys.stderr.write("\n")
    found = rows(ways, int(np.prod(shape))) + counted
    if options.json:
        print(json.dumps({"rows": found}, indent=2))
        return
    print(f"{' x '.join(map(str, shape))} voxels, median CPU time of {options.repeats} turns\n")
    print(f"{'case':38} {'peer':16} {'ours':>8} {'peer':>8} {'ours over peer':>15}  unit")
    for row in found:
        figures = f"{row['ours']:8.2f} {row['peer_value']:8.2f} {1 / row['ratio']:15.2f}"
        print(f"{row['case']:38} {row['peer']:16} {figures}  {row['unit']}")


if __name__ == "__main__":
    main()
