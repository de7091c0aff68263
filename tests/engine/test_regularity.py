"""Regularity of a field of any size, lazily: the whole's bits for any chunks, in memory that does not grow with it."""

import subprocess
import sys
import tracemalloc

import dask
import dask.array as da
import numpy as np
import pytest
from dask.system import CPU_COUNT
from hypothesis import given
from hypothesis import strategies as st

from blocks.execute import compute, write_image
from blocks.graphs.regularity import TILE, Piece, RegularityJob, Stored, regularity
from blocks.grid import Grid
from blocks.image import image_of, open_image, source_of
from blocks.kernels import jacobian
from blocks.memory import regularity_bytes
from blocks.region import Region
from tests.strategies import QUICK, SEEDS, grids


@st.composite
def chunked(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Draw chunks of any sizes, whole blocks of the lattice or not."""
    sizes = []
    for n in shape:
        step = draw(st.sampled_from([17, 64, 70, 128, n]))
        sizes.append(tuple(min(step, n - a) for a in range(0, n, step)))
    return tuple(sizes)


@QUICK
@given(st.data())
def test_any_chunks_give_the_bits_of_the_whole(data):
    grid = data.draw(grids(most=150 if data.draw(st.booleans()) else 14).filter(lambda g: np.prod(g.shape) < 300_000))
    rng = np.random.default_rng(data.draw(SEEDS))
    kind = data.draw(st.sampled_from([np.float32, np.float64]))
    vectors = rng.normal(scale=0.4, size=(grid.ndim, *grid.shape)).astype(kind)
    mask = rng.random(grid.shape) < 0.4
    margin = data.draw(st.integers(0, 3))
    lead = data.draw(st.sampled_from([(grid.ndim,), (1,) * grid.ndim]))
    field = image_of(da.from_array(vectors, chunks=(lead, *data.draw(chunked(grid.shape)))), grid)
    inside = image_of(da.from_array(mask, chunks=data.draw(chunked(grid.shape))), grid)
    whole, masked = compute(regularity(field, inside=(None, inside), margin=margin))
    assert whole == jacobian.regularity(vectors, grid, margin=margin)
    assert masked == jacobian.regularity(vectors, grid, mask=mask, margin=margin)


@pytest.mark.parametrize("shape", [(90, 70, 130), (1500, 70)])
def test_a_field_in_memory_is_cut_into_tiles_and_gives_the_bits_of_the_whole(shape):
    ndim = len(shape)
    grid = Grid.of(shape, spacing=(0.9, 1.7, 3.1)[:ndim])
    assert any(n > TILE[ndim] for n in shape)
    vectors = np.random.default_rng(3).normal(scale=0.4, size=(ndim, *shape)).astype(np.float32)
    assert compute(regularity(image_of(vectors, grid))) == (jacobian.regularity(vectors, grid),)


@pytest.mark.parametrize("shape", [(40, 70, 50), (140, 90)])
def test_the_spread_and_the_folds_are_numpys(shape):
    ndim = len(shape)
    angle = 0.4
    turn = np.eye(ndim)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    grid = Grid.of(shape, spacing=(0.9, 1.7, 3.1)[:ndim], direction=turn.ravel())
    vectors = np.random.default_rng(3).normal(scale=0.4, size=(ndim, *shape))
    steps = np.tensordot(grid.inverse_matrix, vectors, axes=1)
    gradient = np.stack([np.stack(np.gradient(c)[::-1]) for c in steps])
    det = np.linalg.det(np.moveaxis(gradient, (0, 1), (-2, -1)) + np.eye(ndim))
    logarithm = np.log(np.clip(det + 3, 1e-9, 1e9))[(slice(2, -2),) * ndim]
    (got,) = compute(regularity(image_of(da.from_array(vectors, chunks=37), grid)))
    assert got.spread == pytest.approx(logarithm.std(), rel=1e-12)
    assert got.folded == (det <= 0).mean()


def _refuse(dsk, keys, **_):
    msg = "a graph was computed while it was built"
    raise AssertionError(msg)


def test_nothing_is_computed_before_it_is_asked_for():
    grid = Grid.of((100, 100))
    with dask.config.set(scheduler=_refuse):
        regularity(image_of(da.zeros((2, 100, 100), chunks=50), grid))


def test_a_scheduler_of_another_process_gives_the_same_bits():
    distributed = pytest.importorskip("distributed")
    grid = Grid.of((90, 70, 130))
    vectors = np.random.default_rng(3).normal(scale=0.4, size=(3, *grid.shape)).astype(np.float32)
    lazy = regularity(image_of(da.from_array(vectors, chunks=(3, 64, 64, 64)), grid))
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )
    with local, distributed.Client(local) as client:
        assert compute(lazy, client=client) == compute(lazy)


def test_a_store_gives_the_bits_of_the_whole(tmp_path):
    grid = Grid.of((70, 300, 90), spacing=(0.9, 1.7, 3.1))
    vectors = np.random.default_rng(3).normal(scale=0.4, size=(3, *grid.shape)).astype(np.float32)
    mask = np.random.default_rng(4).random(grid.shape) < 0.3
    write_image(tmp_path / "field.ome.zarr", image_of(vectors, grid), levels=False)
    write_image(tmp_path / "mask.ome.zarr", image_of(mask, grid, kind="labels"), levels=False)
    field, inside = (open_image(tmp_path / f"{name}.ome.zarr") for name in ("field", "mask"))
    assert compute(regularity(field, inside=(inside, None))) == (
        jacobian.regularity(vectors, grid, mask=mask),
        jacobian.regularity(vectors, grid),
    )


def test_what_a_tile_takes_is_known_before_it_runs(tmp_path):
    grid = Grid.of((140, 150, 160))
    vectors = np.random.default_rng(3).normal(scale=0.4, size=(3, *grid.shape)).astype(np.float32)
    write_image(tmp_path / "field.ome.zarr", image_of(vectors, grid), levels=False)
    write_image(tmp_path / "mask.ome.zarr", image_of(vectors[0] > 0, grid, kind="labels"), levels=False)
    field, mask = (Stored(source_of(open_image(tmp_path / f"{name}.ome.zarr"))) for name in ("field", "mask"))
    job = RegularityJob(grid, (True, False), 2, 3.0)
    pieces = [Piece(0, grid.region, field), Piece(1, grid.region, mask)]
    region = Region((0, 0, 0), (128, 128, 128))
    job.tile(Region((0, 0, 0), (64, 64, 64)), pieces)
    tracemalloc.start()
    job.tile(region, pieces)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    stated = regularity_bytes(129**3, ndim=3, itemsize=4, masked=region.size, chunk=3 * 4 * 64**3)
    assert taken <= stated <= 2 * taken


def test_a_mask_on_another_grid_is_refused():
    grid = Grid.of((9, 8))
    field = image_of(np.zeros((2, 9, 8)), grid)
    with pytest.raises(ValueError, match="lies on the field's grid"):
        regularity(field, inside=(image_of(np.ones((9, 8)), Grid.of((9, 8), origin=(1.0, 0.0))),))


def test_components_that_do_not_fit_the_grid_are_refused():
    with pytest.raises(ValueError, match="2 axes has 2 components"):
        regularity(image_of(np.zeros((3, 9, 8)), Grid.of((9, 8))))


#: Takes the regularity of a wave along z on a field of so many voxels a side; prints it and the memory it took (KiB).
PROGRAM = """
import resource, sys
import dask.array as da, numpy as np
from blocks.execute import compute
from blocks.graphs.regularity import regularity
from blocks.grid import Grid
from blocks.image import image_of
from blocks.transforms import DisplacementField

class Wave:
    dtype, ndim = np.dtype(np.float32), 4
    def __init__(self, side):
        self.shape = (3, side, side, side)
    def __getitem__(self, index):
        z, y, x = (np.arange(n, dtype=np.float32)[part] for n, part in zip(self.shape[1:], index[1:]))
        out = np.zeros((3, z.size, y.size, x.size), np.float32)
        out[2] = 15 * np.sin(z / 10)[:, None, None]
        return out

def measured(side, lazy):
    grid, wave = Grid.of((side,) * 3), Wave(side)
    if lazy:
        field = image_of(da.from_array(wave, chunks=(3, 64, 256, 256), asarray=False, fancy=False), grid)
    else:
        field = DisplacementField(grid, wave)
    return compute(regularity(field))[0]

lazy = sys.argv[2] == "lazy"
measured(9, lazy)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
got = measured(int(sys.argv[1]), lazy)
print(got.spread, got.folds, got.voxels, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", ["sliced", "lazy"])
@pytest.mark.parametrize("side", [300, pytest.param(1130, marks=pytest.mark.slow)])
def test_a_field_that_memory_does_not_hold_is_measured_in_bounded_memory(side, kind):
    command = [sys.executable, "-c", PROGRAM, str(side), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3000)
    spread, folds, voxels, taken = done.stdout.split()
    along = 15 * np.sin(np.arange(side, dtype=np.float32) / 10)
    det = 1 + np.gradient(along.astype(np.float64))
    assert float(spread) == pytest.approx(np.log(np.clip(det + 3, 1e-9, 1e9))[2:-2].std(), rel=1e-12)
    assert int(folds) == (det <= 0).sum() * side**2
    assert int(voxels) == side**3
    # A tile a thread; of a lazy field a layer of its blocks besides.
    stated = CPU_COUNT * regularity_bytes(258**3, ndim=3, itemsize=4)
    assert int(taken) << 10 < stated + (2 * 64 * side**2 * 12 if kind == "lazy" else 0)
