"""Bytes known before a task runs, against what it takes."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from blocks import image_of, open_image, write_image
from blocks.graphs.warp_job import FieldJob, WarpJob
from blocks.grid import Grid
from blocks.image import source_of
from blocks.memory import displacement_bytes, warp_bytes
from blocks.plan import read_region
from blocks.region import Region
from blocks.storage import let_go
from blocks.storage.cache import CHUNKS
from blocks.transforms import Affine, BSpline, Composite, DisplacementField
from tests import strategies

#: The stated bytes are never less than what is taken, and at most this many times as much, beyond the fixed buffers.
FACTOR = 1.6


@dataclass(frozen=True)
class Stored:
    """A source whose every read is a new array, as a store's is."""

    shape: tuple[int, ...]
    dtype: np.dtype
    channels: int | None = None

    def read(self, region: Region, *, touched: object = None) -> np.ndarray:
        lead = () if self.channels is None else (self.channels,)
        return np.ones((*lead, *region.shape), dtype=self.dtype)


class LazyVectors:
    """Vectors made when they are asked for."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.dtype = shape, np.dtype(np.float32)

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        return np.zeros((3, *(s.stop - s.start for s in index[1:])), dtype=np.float32)


def peak(run) -> int:
    """The most bytes that NumPy holds while ``run`` runs, its result included."""
    run()
    let_go()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_stated(stated: int, taken: int) -> None:
    buffers = warp_bytes(0, 0, itemsize=1)
    assert taken <= stated
    assert stated <= FACTOR * taken + buffers


@pytest.fixture
def grid() -> Grid:
    return Grid.of((100, 110, 120), spacing=(1.0, 1.0, 1.2))


@pytest.mark.parametrize("kind", ["affine", "bspline", "lazy-field", "turned-lazy-field"])
@pytest.mark.parametrize(
    ("dtype", "channels", "interpolation"),
    [("uint8", None, "linear"), ("float32", 3, "nearest"), ("float16", 2, "linear"), ("bool", None, "cubic")],
)
def test_what_a_warp_takes_is_known_before_it_runs(grid, kind, dtype, channels, interpolation):
    rng = np.random.default_rng(0)
    turn = Affine.rigid(strategies.rotation(rng, 3, most=0.2), (2, 1, 0), centre=grid.world([50, 55, 60]))
    lattice = Grid.of((9, 9, 9), spacing=(20, 20, 24), origin=(-20, -20, -24))
    lazy = DisplacementField(grid, LazyVectors((3, *grid.shape)))
    transform = {
        "affine": turn,
        "bspline": BSpline(lattice, rng.normal(size=(3, 9, 9, 9))),
        "lazy-field": lazy,
        "turned-lazy-field": Composite((turn, lazy)),
    }[kind]
    source = Stored(grid.shape, np.dtype(dtype), channels)
    job = WarpJob(source, transform, grid, grid, interpolation, 0, 1 << 40)
    region = Region((10, 10, 10), (80, 90, 100))
    assert_stated(job.bytes_of(region), peak(lambda: job.shard(region)))


def test_what_a_warp_of_a_store_takes_is_known_before_it_runs(tmp_path):
    grid = Grid.of((130, 200, 210))
    array = np.random.default_rng(0).integers(0, 4000, grid.shape, dtype=np.uint16)
    write_image(tmp_path / "moving.ome.zarr", image_of(array, grid), levels=False)
    source = source_of(open_image(tmp_path / "moving.ome.zarr"))
    turn = Affine.rigid(strategies.rotation(np.random.default_rng(1), 3, most=0.2), (2, 1, 0), centre=(100, 100, 60))
    for interpolation in ("linear", "cubic"):
        region = Region((0, 0, 0), (128, 160, 200))
        free = WarpJob(source, turn, grid, grid, interpolation, 0, 1 << 40)
        job = WarpJob(source, turn, grid, grid, interpolation, 0, free.bytes_of(region))
        assert_stated(job.bytes_of(region), peak(lambda job=job, region=region: job.shard(region)))


@pytest.mark.parametrize("share", [1.0, 0.75, 1.5])
def test_a_task_and_the_chunks_kept_for_the_next_stay_within_the_memory(tmp_path, share):
    grid = Grid.of((130, 200, 210))
    array = np.random.default_rng(0).integers(0, 4000, grid.shape, dtype=np.uint16)
    write_image(tmp_path / "moving.ome.zarr", image_of(array, grid), levels=False)
    source = source_of(open_image(tmp_path / "moving.ome.zarr"))
    turn = Affine.rigid(strategies.rotation(np.random.default_rng(1), 3, most=0.2), (2, 1, 0), centre=(100, 100, 60))
    regions = [Region((0, 0, x), (128, 160, x + 80)) for x in (0, 80)]
    free = WarpJob(source, turn, grid, grid, "linear", 0, 1 << 40)
    memory = int(share * free.bytes_of(regions[0]))
    job = WarpJob(source, turn, grid, grid, "linear", 0, memory)
    let_go()

    def run() -> None:
        for region in regions:
            np.testing.assert_array_equal(job.shard(region), free.shard(region))
            let_go()

    def measured() -> None:
        for region in regions:
            job.shard(region)

    run()
    taken = peak(measured)
    let_go()
    assert taken <= memory
    assert taken >= (memory - warp_bytes(0, 0, itemsize=1)) * 0.5


@pytest.mark.parametrize(("interpolation", "dtype"), [("linear", "uint16"), ("nearest", "uint8"), ("cubic", "float32")])
def test_a_turned_task_decodes_the_chunks_it_touches_alone(tmp_path, interpolation, dtype):
    grid = Grid.of((64, 448, 448))
    array = np.random.default_rng(0).integers(0, 250, grid.shape).astype(dtype)
    write_image(tmp_path / "moving.ome.zarr", image_of(array, grid), levels=False)
    source = source_of(open_image(tmp_path / "moving.ome.zarr"))
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turn = Affine.rigid([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]], (0, 0, 0), centre=(224, 224, 32))
    job = WarpJob(source, turn, grid, grid, interpolation, 0, 1 << 30)
    region = Region((0, 96, 96), (64, 352, 352))
    box = read_region(turn, grid, region, grid, interpolation=interpolation)
    let_go()
    before = CHUNKS.decoded
    voxels = job.shard(region)
    decoded, of_box = CHUNKS.decoded - before, len(list(box.split((64, 64, 64))))
    assert 0.5 * of_box < decoded <= 0.9 * of_box
    whole = WarpJob(source_of(image_of(array, grid)), turn, grid, grid, interpolation, 0, 1 << 30)
    np.testing.assert_array_equal(voxels, whole.shard(region))


def test_what_a_displacement_field_takes_is_known_before_it_runs(grid):
    region = Region((10, 10, 10), (80, 90, 100))
    for dtype in (np.float32, np.float64):
        job = FieldJob(Affine.translation((1, 2, 3)), grid, np.dtype(dtype))
        assert_stated(job.bytes_of(region), peak(lambda job=job: job.shard(region)))
    lazy = DisplacementField(grid, LazyVectors((3, *grid.shape)))
    job = FieldJob(lazy, grid, np.dtype(np.float32))
    assert_stated(job.bytes_of(region), peak(lambda: job.shard(region)))


def test_bytes_by_hand():
    buffers = warp_bytes(0, 0, itemsize=1)
    assert buffers == 4 << 20
    assert warp_bytes(1000, 500, itemsize=2) - buffers == 3000
    assert warp_bytes(1000, 500, itemsize=2, channels=3) - buffers == 9000
    assert warp_bytes(1000, 500, itemsize=2, copied=False) - buffers == 1000
    assert warp_bytes(1000, 500, itemsize=1, chunk=64, lattice=7) - buffers == 1571
    assert warp_bytes(1000, 500, itemsize=1, cubic=True) - buffers >= 1500 + 8000
    assert displacement_bytes(1000, ndim=3, itemsize=4, lattice=12) - buffers == 12012
