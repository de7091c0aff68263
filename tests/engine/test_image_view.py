"""An image in memory keeps its geometry: through crops, strides, flips, and arithmetic that drops attributes."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from blocks.grid import Grid
from blocks.image import channels_of, grid_of, image_of, kind_of, source_of, unit_of
from blocks.image.units import canonical_unit, ngff_unit
from blocks.region import Region

OBLIQUE = tuple(Rotation.from_euler("xyz", [10, 20, 30], degrees=True).as_matrix().ravel())


def oblique_grid(shape: tuple[int, ...] = (7, 9, 11)) -> Grid:
    return Grid.of(shape, spacing=(0.3, 1.7, 2.9), origin=(-101.3, 17.1, 900.7), direction=OBLIQUE)


def test_coordinates_are_positions_along_the_arrays_axes():
    image = image_of(np.zeros((2, 3)), Grid.of((2, 3), spacing=(0.5, 4), origin=(10, 20)))
    assert image.dims == ("y", "x")
    assert image.coords["x"].values.tolist() == [10, 10.5, 11]
    assert image.coords["y"].values.tolist() == [20, 24]
    assert image.attrs["spacing"] == (0.5, 4.0)
    assert image.attrs["origin"] == (10.0, 20.0)
    assert image.attrs["direction"] == (1.0, 0.0, 0.0, 1.0)


def test_an_array_with_one_axis_more_has_its_channels_first():
    image = image_of(np.zeros((3, 7, 9, 11)), oblique_grid())
    assert image.dims == ("c", "z", "y", "x")
    assert channels_of(image) == 3
    assert channels_of(image.isel(c=0)) is None
    assert grid_of(image) == oblique_grid()


@given(st.data())
def test_a_crop_stays_where_it_is_in_the_world(data: st.DataObject):
    grid = oblique_grid()
    slices = []
    for n in grid.shape:
        start = data.draw(st.integers(0, n - 1))
        slices.append(slice(start, data.draw(st.integers(start + 1, n)), data.draw(st.sampled_from([1, 2, 3]))))
    image = image_of(np.arange(np.prod(grid.shape)).reshape(grid.shape), grid)
    part = image[tuple(slices)]
    index = np.stack(
        np.meshgrid(*(np.arange(n)[s] for n, s in zip(grid.shape, slices, strict=True)), indexing="ij"), -1
    )
    found = grid_of(part).world(np.stack(np.meshgrid(*map(np.arange, part.shape), indexing="ij"), -1))
    np.testing.assert_allclose(found, grid.world(index), atol=1e-9)


def test_a_plain_crop_is_the_grids_own_crop_to_the_last_digit():
    grid = oblique_grid()
    image = image_of(np.zeros(grid.shape), grid).isel(z=slice(2, 5)).isel(x=slice(3, 11), z=slice(1, 3))
    assert grid_of(image) == grid.crop(Region((3, 0, 3), (5, 9, 11)))


def test_a_flip_turns_the_axis_and_keeps_the_world():
    grid = oblique_grid()
    flipped = grid_of(image_of(np.zeros(grid.shape), grid)[:, ::-1])
    np.testing.assert_allclose(flipped.world((0, 0, 0)), grid.world((0, 8, 0)))
    np.testing.assert_allclose(flipped.world((1, 8, 2)), grid.world((1, 0, 2)))


def test_an_image_without_attributes_is_read_from_its_coordinates():
    image = image_of(np.zeros((2, 3)), Grid.of((2, 3), spacing=(0.5, 4), origin=(10, 20))).drop_attrs()
    assert grid_of(image) == Grid.of((2, 3), spacing=(0.5, 4), origin=(10, 20))


def test_an_axis_taken_away_is_refused():
    image = image_of(np.zeros((7, 9, 11)), oblique_grid())
    with pytest.raises(ValueError, match="keep it with a slice"):
        grid_of(image.isel(z=3, drop=True))
    with pytest.raises(ValueError, match=r"\(c,\) \(z,\) y, x"):
        grid_of(image.transpose("x", "y", "z"))


def test_voxels_picked_out_of_line_are_refused():
    image = image_of(np.zeros((7, 9, 11)), oblique_grid())
    with pytest.raises(ValueError, match="along y are not equally spaced"):
        grid_of(image.isel(y=[0, 1, 4]))
    with pytest.raises(ValueError, match="no coordinates along y, x"):
        grid_of(xr.DataArray(np.zeros((2, 2)), dims=("y", "x")))


def test_a_shape_that_is_not_the_grids_is_refused():
    with pytest.raises(ValueError, match=r"shape \(7, 9, 10\) does not lie on a grid of shape \(7, 9, 11\)"):
        image_of(np.zeros((7, 9, 10)), oblique_grid())
    with pytest.raises(ValueError, match="'image' or 'labels', got 'mask'"):
        image_of(np.zeros((7, 9, 11)), oblique_grid(), kind="mask")


@pytest.mark.parametrize(
    ("given_name", "short", "long"),
    [
        ("mm", "mm", "millimeter"),
        ("Millimeter", "mm", "millimeter"),
        ("µm", "um", "micrometer"),
        ("μm", "um", "micrometer"),
        ("micrometre", "um", "micrometer"),
        ("m", "m", "meter"),
        ("px", "px", None),
        ("pixel", "px", None),
        (None, "px", None),
        ("parsec", "parsec", "parsec"),
    ],
)
def test_a_unit_is_known_by_its_names(given_name: str | None, short: str, long: str | None):
    assert canonical_unit(given_name) == short
    assert ngff_unit(given_name) == long


def test_unit_and_kind_travel_with_the_image():
    image = image_of(np.zeros((2, 3), dtype=bool), Grid.of((2, 3)), unit="micrometer", kind="labels")
    part = image.isel(x=slice(1, 3))
    assert (unit_of(part), kind_of(part)) == ("um", "labels")
    assert kind_of(xr.DataArray(np.zeros((1, 1)), dims=("y", "x"))) == "image"


def test_a_task_reads_an_array_in_memory_by_region():
    voxels = np.arange(24).reshape(2, 3, 4)
    source = source_of(image_of(voxels, Grid.of((3, 4))))
    assert (source.shape, source.channels, source.dtype) == ((3, 4), 2, voxels.dtype)
    np.testing.assert_array_equal(source.read(Region((1, 0), (3, 2))), voxels[:, 1:3, 0:2])


def test_a_lazy_result_is_no_source():
    image = image_of(np.zeros((3, 4)), Grid.of((3, 4))).chunk(2)
    with pytest.raises(ValueError, match=r"lazy result .* call \.compute\(\)"):
        source_of(image)
