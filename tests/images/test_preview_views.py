"""Which planes a picture shows, and where the world's points lie on them."""

import numpy as np
import pytest

from blocks.grid import Grid
from blocks.region import Region
from fidopt.images.preview import around, busiest, fullest, views

TURNED = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, -1.0]])
GRIDS = [
    Grid.of((9, 14, 11), spacing=(1.5, 1.0, 2.5), origin=(3.0, -8.0, 20.0)),
    Grid.of((9, 14, 11), spacing=(1.5, 1.0, 2.5), origin=(3.0, -8.0, 20.0), direction=TURNED.ravel()),
    Grid.of((13, 17), spacing=(0.7, 2.0), origin=(-4.0, 9.0)),
]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("cropped", [False, True])
def test_a_voxel_is_drawn_where_its_world_point_is(grid, cropped):
    at = tuple(n // 2 + 1 for n in grid.shape)
    image = np.zeros(grid.shape)
    image[at] = 1
    region = Region(tuple(n - 3 for n in at), tuple(n + 2 for n in at)) if cropped else None
    for view in views(grid, at=at, side=200, region=region):
        plane = view.cut(image, smooth=False)[..., 0]
        rows, columns = np.nonzero(plane)
        ((x, y),) = view.pixels(grid.world([at]))
        assert columns.min() <= x <= columns.max() + 1
        assert rows.min() <= y <= rows.max() + 1
        # The middle of the voxel's pixels, to half a pixel.
        assert abs((columns.min() + columns.max() + 1) / 2 - x) <= 0.5
        assert abs((rows.min() + rows.max() + 1) / 2 - y) <= 0.5
        assert view.distances(grid.world([at])) == pytest.approx(0, abs=1e-9)


def test_the_distance_from_a_plane_is_the_world_s():
    grid = GRIDS[0]
    across_z = views(grid, at=(4, 7, 5))[0]
    assert across_z.name == "z = 4 of 9"
    assert across_z.distances(grid.world([(6, 1, 1), (4, 0, 0)])) == pytest.approx([5.0, 0.0])


@pytest.mark.parametrize("side", [7, 31, 200])
def test_no_voxel_of_a_mask_is_lost_in_a_smaller_picture(side, random):
    grid = Grid.of((101, 64, 83))
    for _ in range(20):
        mask = np.zeros(grid.shape, bool)
        at = tuple(int(random.integers(n)) for n in grid.shape)
        mask[at] = True
        for view in views(grid, at=at, side=side):
            marked = np.argwhere(view.marks(mask))
            (x, y) = view.pixels(grid.world([at]))[0]
            assert len(marked) >= 1
            assert np.abs(marked + 0.5 - (y, x)).max() <= max(1.0, 1.0 * side / 64)
    assert not any(view.marks(np.zeros(grid.shape, bool)).any() for view in views(grid, side=side))


def test_marks_at_a_pixel_a_voxel_are_the_mask(random):
    grid = Grid.of((30, 40))
    mask = random.random(grid.shape) > 0.7
    (view,) = views(grid, side=40)
    assert np.array_equal(view.marks(mask), mask)


def test_the_planes_with_most_to_see():
    weights = np.zeros((6, 7, 8))
    weights[1, 2, 3] = 5
    assert fullest(weights) == (1, 2, 3)
    assert fullest(np.ones((6, 7, 8))) == (3, 3, 4)
    labels = np.zeros((20, 20, 20), np.int32)
    # A rod along z: its ends are no reason to look at their planes, every plane across it has the same edges.
    labels[4:15, 6:9, 11:14] = 614454277
    z, y, x = busiest(labels, labels=True)
    assert 4 <= z < 15
    assert y in (5, 6, 7, 8)
    assert x in (10, 11, 12, 13)
    assert busiest(np.full((5, 5, 5), np.nan)) == (2, 2, 2)


def test_the_region_around_a_mask_leaves_room_and_is_all_where_that_is_most():
    mask = np.zeros((100, 100), bool)
    mask[40:60, 50:60] = True
    assert around(mask) == Region((34, 44), (66, 66))
    mask[2, 7] = True
    assert around(mask) == Region.of((100, 100))
    assert around(np.zeros((5, 5), bool)) == Region.of((5, 5))
