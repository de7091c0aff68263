"""What a region of the output is read from: never too little, and not much more than needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks.grid import Grid
from blocks.kernels.route import route_to_index
from blocks.plan import checked_interpolation, halves, in_morton_order, localised, others_read, read_region
from blocks.region import Region
from blocks.transforms import Affine, BSpline, Composite, DisplacementField, fold
from tests import strategies

REACH = {"linear": (0, 1), "nearest": (0, 0), "cubic": (18, 18)}


def needed(transform, fixed: Grid, region: Region, moving: Grid, interpolation: str) -> Region | None:
    """The smallest box that holds what every voxel of the region reads, from the positions themselves."""
    points = np.empty((fixed.ndim, region.size))
    route = route_to_index(fold(transform), fixed, moving=moving, region=region)
    planes = region.shape[0] if fixed.ndim == 3 else 1
    fill = route.fill(0, region.shape[-2])
    for plane, part in enumerate(np.split(points, planes, axis=1)):
        fill(plane, 0, part)
    at = points[::-1].T
    size = np.array(moving.shape)
    at = at[((at >= -0.5) & (at < size - 0.5)).all(axis=1)]
    if not len(at):
        return None
    before, after = REACH[interpolation]
    first = np.floor(at + (0.5 if interpolation == "nearest" else 0.0))
    low = np.clip(first.min(axis=0) - before, 0, size - 1).astype(int)
    # An upper neighbour of no weight is not read.
    last = first + after if interpolation != "linear" else np.ceil(at)
    high = np.clip(last.max(axis=0), 0, size - 1).astype(int)
    return Region(tuple(int(v) for v in low), tuple(int(v) + 1 for v in high))


@strategies.QUICK
@given(data=st.data())
def test_a_read_box_is_never_too_small(data):
    fixed = data.draw(strategies.grids())
    moving = data.draw(strategies.moving_grids(fixed, most=40))
    transform = data.draw(strategies.transforms(fixed))
    region = data.draw(strategies.regions(fixed.shape))
    interpolation = data.draw(st.sampled_from(["linear", "nearest", "cubic"]))
    box = read_region(transform, fixed, region, moving, interpolation=interpolation)
    least = needed(transform, fixed, region, moving, interpolation)
    assert moving.region.contains(box)
    assert least is None or box.contains(least)


def smooth_field(grid: Grid, rng: np.random.Generator, amplitude: float, wave: float) -> DisplacementField:
    """A field of a few waves, as registrations give them."""
    vectors = np.zeros((3, *grid.shape), dtype=np.float32)
    for component in range(3):
        for _ in range(3):
            phase = np.tensordot(rng.normal(size=3), np.indices(grid.shape), axes=1) * (2 * np.pi / wave)
            vectors[component] += (amplitude / 3) * np.sin(phase + rng.uniform(0, 6))
    return DisplacementField(grid, vectors)


def test_a_read_box_is_on_average_under_twice_the_least_possible():
    rng = np.random.default_rng(0)
    fixed = Grid.of((96, 96, 96), spacing=(1.0, 1.0, 1.5))
    turn = Affine.rigid(strategies.rotation(rng, 3, most=0.15), (1, 2, 3), centre=fixed.world([48, 48, 48]))
    lattice = Grid.of((9, 9, 9), spacing=(16, 16, 24), origin=(-16, -16, -24))
    spline = BSpline(lattice, smooth_field(lattice, rng, 9.0, 5).vectors)
    field = smooth_field(fixed, rng, 6.0, 60)
    oblique = Grid.of(
        fixed.shape, spacing=fixed.spacing, origin=(10, -5, 3), direction=strategies.rotation(rng, 3, most=0.2)
    )
    ratios = []
    for transform in (spline, field, Composite((turn, spline)), Composite((field, turn))):
        for moving in (fixed, oblique):
            for block in (32, 48, 96):
                for region in list(fixed.region.split((block,) * 3))[:4]:
                    box = read_region(transform, fixed, region, moving, interpolation="linear")
                    least = needed(transform, fixed, region, moving, "linear")
                    if least is not None and least.size > 8000:
                        assert box.contains(least)
                        ratios.append(box.size / least.size)
    assert len(ratios) > 50
    assert np.mean(ratios) < 1.7


def test_boxes_known_by_hand():
    fixed, moving = Grid.of((10, 10)), Grid.of((30, 40))
    shift = Affine.translation((5.25, 3.0))
    region = Region((2, 1), (4, 5))
    assert read_region(shift, fixed, region, moving, interpolation="linear") == Region((4, 6), (8, 11))
    assert read_region(shift, fixed, region, moving, interpolation="nearest") == Region((5, 6), (7, 10))
    assert read_region(shift, fixed, region, moving, interpolation="cubic") == Region((0, 0), (25, 28))
    # Signed: a field that only ever points right reads nothing to the left.
    vectors = np.zeros((2, 10, 10))
    vectors[0] = np.linspace(3, 9, 10)
    box = read_region(DisplacementField(fixed, vectors), fixed, fixed.region, moving, interpolation="linear")
    assert box == Region((0, 2), (11, 20))


def test_a_region_that_falls_outside_the_moving_image_reads_nothing():
    fixed, moving = Grid.of((10, 10)), Grid.of((10, 10))
    for shift in ((30.0, 0.0), (0.0, -10.6)):
        box = read_region(Affine.translation(shift), fixed, fixed.region, moving, interpolation="linear")
        assert box.empty


def test_a_lazy_field_on_the_fixed_grid_is_read_at_the_regions_voxels_alone():
    asked = []

    class Lazy:
        shape, dtype = (2, 20, 20), np.dtype(np.float32)

        def __getitem__(self, index):
            asked.append(index[1:])
            return np.zeros((2, *(s.stop - s.start for s in index[1:])), dtype=np.float32)

    fixed = Grid.of((20, 20), spacing=(0.3, 0.7), direction=strategies.rotation(np.random.default_rng(1), 2).ravel())
    field = DisplacementField(fixed, Lazy())
    stages = localised(Composite((field, Affine.identity(2))), fixed, region=Region((3, 4), (9, 10)))
    assert asked == [(slice(3, 9), slice(4, 10))]
    box = read_region(Composite(stages), fixed, Region((3, 4), (9, 10)), fixed, interpolation="nearest")
    assert Region((2, 3), (10, 11)).contains(box)
    assert box.contains(Region((3, 4), (9, 10)))
    assert len(asked) == 1
    assert fold(field) == (field,)


def test_a_region_is_halved_along_its_longest_axis_unless_it_is_small():
    assert halves(Region((0, 5, 0), (40, 106, 60))) == [
        Region((0, 5, 0), (40, 55, 60)),
        Region((0, 55, 0), (40, 106, 60)),
    ]
    assert halves(Region((5, 5), (21, 21))) == []


def test_shards_in_morton_order_are_done_block_by_block():
    square = [i[1:] for i in in_morton_order((1, 4, 4))]
    assert square[:8] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    box = list(in_morton_order((5, 3, 6)))
    assert set(box[:8]) == {(z, y, x) for z in (0, 1) for y in (0, 1) for x in (0, 1)}
    assert sorted(box) == [(z, y, x) for z in range(5) for y in range(3) for x in range(6)]
    assert list(in_morton_order((0, 3))) == []
    assert list(in_morton_order((1,))) == [(0,)]


def test_morton_order_begins_at_once_however_many_shards_there_are():
    assert next(in_morton_order((1 << 40, 1, 1 << 40))) == (0, 0, 0)


def test_an_unknown_interpolation_is_refused_by_name():
    assert checked_interpolation("cubic") == "cubic"
    with pytest.raises(ValueError, match="'linear', 'nearest' or 'cubic', got 'lanczos'"):
        checked_interpolation("lanczos")


def test_what_the_regions_around_read_is_about_what_they_then_read():
    fixed = Grid.of((128, 128, 128), spacing=(2.0, 1.0, 0.5))
    moving = Grid.of((150, 128, 140), spacing=(1.5, 1.0, 0.6), origin=(3.0, 0.0, -4.0))
    lattice = Grid.of((11, 11, 11), spacing=(32.0, 16.0, 8.0), origin=(-32.0, -16.0, -8.0))
    bent = BSpline(lattice, np.random.default_rng(0).normal(scale=2.0, size=(3, 11, 11, 11)))
    shard = Region((64, 64, 64), (128, 128, 128))
    stages = localised(bent, fixed, region=shard)
    own = read_region(bent, fixed, shard, moving, interpolation="linear")
    told = others_read(stages, fixed, shard, moving, read=own)
    # The regions of a corner: seven beside it.
    assert len(told) == 7
    for step in ((0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)):
        start = tuple(64 - 64 * k for k in step)
        there = read_region(bent, fixed, Region(start, tuple(a + 64 for a in start)), moving, interpolation="linear")
        near = min(told, key=lambda one: sum(abs(a - b) for a, b in zip(one.start, there.start, strict=True)))
        assert all(abs(a - b) < 16 for a, b in zip(near.clip(moving.shape).start, there.start, strict=True))
        assert all(abs(a - b) < 16 for a, b in zip(near.clip(moving.shape).stop, there.stop, strict=True))
