"""A lazy warp: one task a shard, nothing computed early, the same bits whatever the shards, scheduler and workers."""

from __future__ import annotations

import pickle

import dask
import dask.array
import numpy as np
import pytest
from dask.core import flatten
from hypothesis import given
from hypothesis import strategies as st

from blocks import Affine, BSpline, Composite, DisplacementField, Grid, compute, image_of, open_image, write_image
from blocks.graphs.warp import displacement, warp
from blocks.image import grid_of, kind_of, unit_of
from blocks.memory import MemoryBudgetError
from tests import strategies


def refuse(*_args, **_kwargs):
    raise AssertionError("a graph was computed while it was being made")


@pytest.fixture
def spline() -> tuple[Grid, Grid, BSpline]:
    rng = np.random.default_rng(3)
    fixed = Grid.of((21, 30, 41), spacing=(0.8, 1.1, 2.3), origin=(5, -7, 30))
    moving = Grid.of((25, 27, 45), spacing=(0.7, 1.2, 2.0), origin=(6, -6, 31))
    lattice = strategies.lattice_around(fixed, rng, shape=(7, 7, 7), aligned=True)
    return fixed, moving, BSpline(lattice, rng.normal(size=(3, 7, 7, 7)) * 2)


def test_making_a_graph_computes_nothing_and_has_one_task_a_shard(spline):
    fixed, moving, transform = spline
    image = image_of(np.zeros((2, *moving.shape), dtype=np.int16), moving, unit="um", kind="labels", name="seen")
    with dask.config.set(scheduler=refuse):
        warped = warp(image, transform, fixed, interpolation="nearest", shard=(8, 16, 41))
        field = displacement(transform, fixed, shard=(21, 30, 20))
    keys = list(flatten(warped.__dask_keys__()))
    assert len(keys) == 3 * 2
    assert all(str(key[0]).startswith("warp-shard-") for key in keys)
    assert sum(str(key).startswith("warp-") or "warp-shard" in str(key) for key in dict(warped.__dask_graph__())) == 7
    assert warped.chunks == ((2,), (8, 8, 5), (16, 14), (41,))
    assert (warped.dims, warped.dtype, warped.name) == (("c", "z", "y", "x"), np.dtype(np.int16), "seen")
    assert (grid_of(warped), unit_of(warped), kind_of(warped)) == (fixed, "um", "labels")
    assert (field.shape, field.dtype) == ((3, *fixed.shape), np.dtype(np.float32))
    assert len(list(flatten(field.__dask_keys__()))) == 3


def test_the_transform_and_the_image_are_in_the_graph_once(spline):
    fixed, moving, transform = spline
    image = image_of(np.zeros(moving.shape, dtype=np.uint8), moving)
    warped = warp(image, transform, fixed, shard=(3, 30, 41))
    tasks = [task for key, task in dict(warped.__dask_graph__()).items() if isinstance(key, tuple)]
    assert len(tasks) == 7
    assert max(len(pickle.dumps(task)) for task in tasks) < 600


def test_the_name_says_what_is_computed(spline):
    fixed, moving, transform = spline
    image = image_of(np.ones(moving.shape, dtype=np.uint8), moving)
    name = warp(image, transform, fixed).data.name
    assert warp(image.copy(deep=True), transform, fixed).data.name == name
    other = BSpline(transform.grid, transform.coefficients * 1.001)
    others = [
        warp(image, other, fixed),
        warp(image + np.uint8(1), transform, fixed),
        warp(image, transform, fixed, interpolation="nearest"),
        warp(image, transform, fixed, background=1),
        warp(image, transform, fixed.halved()),
    ]
    assert len({name, *(w.data.name for w in others)}) == 6


@strategies.QUICK
@given(data=st.data())
def test_any_shards_and_any_scheduler_give_the_same_bits(data):
    fixed = data.draw(strategies.grids())
    moving = data.draw(strategies.moving_grids(fixed))
    transform = data.draw(strategies.transforms(fixed))
    image = image_of(data.draw(strategies.voxels(moving.shape, channels=data.draw(st.booleans()))), moving)
    interpolation = data.draw(st.sampled_from(["linear", "nearest", "cubic"]))
    whole = warp(image, transform, fixed, interpolation=interpolation, shard=fixed.shape)
    parts = warp(image, transform, fixed, interpolation=interpolation, shard=data.draw(strategies.shards(fixed.shape)))
    with np.errstate(invalid="ignore"):
        expected = whole.compute(scheduler="synchronous").values
        scheduler = data.draw(st.sampled_from(["synchronous", "threads"]))
        assert parts.compute(scheduler=scheduler, num_workers=3).values.tobytes() == expected.tobytes()
    field = displacement(transform, fixed, dtype=np.float64, shard=fixed.shape).compute().values
    pieces = displacement(transform, fixed, dtype=np.float64, shard=data.draw(strategies.shards(fixed.shape)))
    assert pieces.compute(scheduler="threads").values.tobytes() == field.tobytes()


@pytest.mark.parametrize("interpolation", ["linear", "nearest", "cubic"])
def test_a_task_over_its_memory_works_in_parts_that_give_the_same_bits(interpolation):
    rng = np.random.default_rng(0)
    grid = Grid.of((40, 70, 90))
    turn = Affine.rigid(strategies.rotation(rng, 3, most=0.4), (1, 2, 3), centre=(45, 35, 20))
    # In Fortran order an array is read by boxes, as a store is.
    image = image_of(np.asfortranarray(rng.integers(0, 4000, grid.shape, dtype=np.uint16)), grid)
    whole = warp(image, turn, grid, interpolation=interpolation)
    (job,) = [task.value for key, task in dict(whole.__dask_graph__()).items() if not isinstance(key, tuple)]
    least = job.least_bytes(grid.region)
    assert least < job.bytes_of(grid.region)
    small = warp(image, turn, grid, interpolation=interpolation, memory_bytes=least)
    np.testing.assert_array_equal(small.compute().values, whole.compute().values)


def test_a_warp_that_no_part_of_fits_the_memory_is_refused_with_what_it_needs():
    grid = Grid.of((40, 70, 90))
    image = image_of(np.asfortranarray(np.zeros(grid.shape, dtype=np.uint16)), grid)
    said = r"shard of 40 x 70 x 90 voxels of uint16 needs 4\.5 MiB at least, got 4\.2 MiB"
    with pytest.raises(MemoryBudgetError, match=said):
        warp(image, Affine.identity(3), grid, memory_bytes=4_400_000)
    warp(image, Affine.identity(3), grid, memory_bytes=int(4.5 * 2**20)).compute()


def test_displacements_are_what_the_transform_adds(spline):
    fixed, _, transform = spline
    turn = Affine.rigid(strategies.rotation(np.random.default_rng(0), 3, most=0.1), (1, 2, 3))
    centres = fixed.world(np.stack(np.indices(fixed.shape), axis=-1)).reshape(-1, 3)
    for case in (
        turn,
        transform,
        Composite((transform, turn)),
        Composite((turn, transform)),
        Composite((transform,) * 2),
    ):
        expected = (case.points(centres) - centres).T.reshape(3, *fixed.shape)
        field = displacement(case, fixed, dtype=np.float64)
        np.testing.assert_allclose(field.compute().values, expected, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(displacement(case, fixed), field.compute().values.astype(np.float32))


def test_a_store_is_read_by_its_path_and_a_lazy_field_from_its_own(tmp_path, spline):
    fixed, moving, transform = spline
    rng = np.random.default_rng(4)
    array = rng.integers(0, 255, moving.shape, dtype=np.uint8)
    write_image(tmp_path / "moving.ome.zarr", image_of(array, moving))
    write_image(tmp_path / "field.ome.zarr", displacement(transform, fixed))
    stored, vectors = open_image(tmp_path / "moving.ome.zarr"), open_image(tmp_path / "field.ome.zarr")
    field = DisplacementField(grid_of(vectors), vectors.data)
    warped = warp(stored, field, fixed, shard=(8, 16, 20))
    assert max(len(pickle.dumps(task)) for task in dict(warped.__dask_graph__()).values()) < 5000
    in_memory = DisplacementField(fixed, displacement(transform, fixed).compute().values)
    expected = warp(image_of(array, moving), in_memory, fixed).compute().values
    np.testing.assert_array_equal(warped.compute(scheduler="threads").values, expected)


def test_a_lazy_field_that_covers_a_part_of_the_image_warps_as_the_same_field_in_memory():
    rng = np.random.default_rng(9)
    fixed = Grid.of((20, 24, 28))
    array = rng.normal(size=fixed.shape)
    for shape, origin in (((4, 5, 6), (18.0, 3.0, 2.0)), ((1, 7, 2), (2.0, 2.0, 19.4)), ((3, 1, 1), (50.0, 1.0, 1.0))):
        for turned in (False, True):
            turn = strategies.rotation(rng, 3, most=0.3) if turned else np.eye(3)
            grid = Grid.of(shape, spacing=(1.7, 1.0, 0.9), origin=origin, direction=turn.ravel())
            vectors = rng.normal(size=(3, *shape)).astype(np.float32) * 3
            lazy = DisplacementField(grid, dask.array.from_array(vectors, chunks=2))
            image, shard = image_of(array, fixed), (7, 8, 9)
            expected = warp(image, DisplacementField(grid, vectors), fixed).compute().values
            np.testing.assert_array_equal(warp(image, lazy, fixed, shard=shard).compute().values, expected)


@pytest.mark.parametrize("turned", [False, True])
def test_a_shard_that_lies_before_the_first_centre_of_a_lazy_field_is_moved_by_its_outer_vectors(turned):
    rng = np.random.default_rng(9)
    turn = strategies.rotation(rng, 3, most=0.02) if turned else np.eye(3)
    fixed = Grid.of((4, 6, 8))
    grid = Grid.of((3, 3, 3), spacing=(10.0,) * 3, origin=(4.5,) * 3, direction=turn.ravel())
    vectors = rng.normal(size=(3, 3, 3, 3))
    lazy = DisplacementField(grid, dask.array.from_array(vectors))
    moved = displacement(lazy, fixed, shard=(2, 3, 4), dtype=np.float64).compute().values
    np.testing.assert_allclose(moved[:, :2, :3, :4], np.broadcast_to(vectors[:, :1, :1, :1], (3, 2, 3, 4)), atol=1e-14)
    whole = displacement(DisplacementField(grid, vectors), fixed, dtype=np.float64).compute().values
    np.testing.assert_array_equal(moved, whole)


@pytest.mark.parametrize("outside", [-0.4, 7.4])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_a_shard_within_half_a_voxel_outside_has_the_edge(tmp_path, interpolation, outside):
    array = np.random.default_rng(8).integers(0, 1000, (6, 5, 8)).astype(np.uint16)
    write_image(tmp_path / "moving.ome.zarr", image_of(array, Grid.of(array.shape)))
    fixed = Grid.of((6, 5, 1), origin=(outside, 0.0, 0.0))
    warped = compute(
        warp(open_image(tmp_path / "moving.ome.zarr"), Affine.identity(3), fixed, interpolation=interpolation)
    )
    edge = array[:, :, :1] if outside < 0 else array[:, :, -1:]
    np.testing.assert_array_equal(warped.values, edge)


def test_workers_of_a_cluster_give_the_same_bits(spline, tmp_path):
    distributed = pytest.importorskip("distributed")
    fixed, moving, transform = spline
    array = np.random.default_rng(6).normal(size=moving.shape).astype(np.float32)
    write_image(tmp_path / "moving.ome.zarr", image_of(array, moving))
    stored = open_image(tmp_path / "moving.ome.zarr")
    whole = warp(image_of(array, moving), transform, fixed).compute(scheduler="synchronous").values
    settings = {"n_workers": 2, "threads_per_worker": 2, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster):
        warped = warp(stored, transform, fixed, shard=(8, 9, 20)).compute().values
    assert warped.tobytes() == whole.tobytes()


def test_nearest_keeps_labels_that_no_float_holds():
    grid = Grid.of((3, 4, 5))
    values = np.arange(60, dtype=np.int64).reshape(grid.shape) + 2**62 + 1
    for dtype in (np.int64, np.uint64):
        image = image_of(values.astype(dtype), grid)
        warped = warp(image, Affine.translation((0.4, -0.3, 0.0)), grid, interpolation="nearest").compute().values
        np.testing.assert_array_equal(warped, values.astype(dtype))


def test_channels_share_positions_and_stay_apart(spline):
    fixed, moving, transform = spline
    array = np.random.default_rng(5).normal(size=(3, *moving.shape)).astype(np.float32)
    for interpolation in ("linear", "nearest", "cubic"):
        together = warp(image_of(array, moving), transform, fixed, interpolation=interpolation).compute().values
        for channel, values in enumerate(array):
            alone = warp(image_of(values, moving), transform, fixed, interpolation=interpolation).compute().values
            np.testing.assert_array_equal(together[channel], alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interpolation": "lanczos"}, "'linear', 'nearest' or 'cubic'"),
        ({"background": 256}, "whole number from 0 to 255, got 256"),
        ({"background": 0.5}, "whole number from 0 to 255, got 0.5"),
        ({"background": np.nan}, "whole number from 0 to 255, got nan"),
        ({"background": np.inf}, "whole number from 0 to 255, got inf"),
        ({"background": "0"}, "whole number from 0 to 255, got '0'"),
        ({"shard": (4, 4)}, r"a shard of 3 whole positive numbers is expected, got \(4, 4\)"),
        ({"shard": (4, 0, 4)}, "a shard of 3 whole positive numbers"),
        ({"shard": (4, 4.0, -4)}, "a shard of 3 whole positive numbers"),
        ({"like": Grid.of((4, 4))}, "3 axes, the fixed grid 2"),
        ({"transform": Affine.identity(2)}, "the transform has 2 axes"),
    ],
)
def test_a_warp_that_makes_no_sense_is_refused(change, message):
    grid = Grid.of((4, 4, 4))
    image = image_of(np.zeros(grid.shape, dtype=np.uint8), grid)
    asked = {"transform": Affine.identity(3), "like": grid, **change}
    with pytest.raises(ValueError, match=message):
        warp(image, asked.pop("transform"), asked.pop("like"), **asked)
    with pytest.raises(ValueError, match="a shard of 3 whole positive numbers"):
        displacement(Affine.identity(3), grid, shard=(4, 4, 0))
    with pytest.raises(ValueError, match="float32 or float64, got int16"):
        displacement(Affine.identity(3), grid, dtype=np.int16)


def test_a_lazy_result_that_no_task_can_read_is_refused():
    grid = Grid.of((4, 4, 4))
    lazy = warp(image_of(np.zeros(grid.shape), grid), Affine.identity(3), grid)
    with pytest.raises(ValueError, match="compute"):
        warp(lazy, Affine.identity(3), grid)


@pytest.mark.parametrize("background", [np.nan, np.inf, -np.inf, 65504])
def test_a_background_of_half_floats_is_any_value_they_have(background):
    grid = Grid.of((2, 2))
    image, away = image_of(np.zeros(grid.shape, np.float16), grid), Affine.translation((9.0, 0.0))
    np.testing.assert_array_equal(warp(image, away, grid, background=background).values, background)
    with pytest.raises(ValueError, match=r"of float16 voxels must be a number of at most 65504, got 1000000\.0"):
        warp(image, away, grid, background=1e6)


def test_an_array_that_is_no_image_is_refused_with_what_makes_one_of_it():
    grid = Grid.of((2, 2))
    with pytest.raises(TypeError, match=r"got ndarray; image_of\(array, grid\) makes one"):
        warp(np.zeros((2, 2)), Affine.identity(2), grid)
    with pytest.raises(TypeError, match=r"an image is an xarray\.DataArray, got str"):
        warp(image_of(np.zeros((2, 2)), grid), Affine.identity(2), "fixed.ome.zarr")
