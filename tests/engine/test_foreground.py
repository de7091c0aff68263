"""The foreground of an image, lazily: Otsu's threshold of the whole for any blocks, on any grid."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.utils import key_split
from hypothesis import given
from hypothesis import strategies as st

from blocks.execute import compute, write_image
from blocks.graphs.foreground import foreground, onto, otsu
from blocks.grid import Grid
from blocks.image import image_of, kind_of, open_image
from blocks.kernels import histogram
from tests.strategies import QUICK, SEEDS, grids


def _threshold(values: np.ndarray) -> float:
    low, high = histogram.partial_range(values)
    return histogram.otsu(histogram.partial(values, low=low, high=high), low=low, high=high)


@QUICK
@given(st.data())
def test_any_blocks_have_the_threshold_of_the_whole(data):
    grid = data.draw(grids(least=2, most=20))
    rng = np.random.default_rng(data.draw(SEEDS))
    kind = data.draw(st.sampled_from([np.uint8, np.int16, np.float32]))
    channels = data.draw(st.sampled_from([None, 1, 3]))
    shape = grid.shape if channels is None else (channels, *grid.shape)
    voxels = np.where(rng.random(shape) < 0.4, rng.normal(90, 9, shape), rng.normal(30, 9, shape)).astype(kind)
    if kind is np.float32:
        voxels.flat[0] = np.nan
    values = histogram.grey(voxels, coloured=channels is not None)
    chunks = data.draw(st.sampled_from([3, 7, -1]))
    lazy = image_of(da.from_array(voxels, chunks=chunks), grid)
    threshold = compute(otsu(lazy))
    assert threshold.value == _threshold(values)
    assert threshold.least == np.nanmin(voxels)
    for image in (lazy, image_of(voxels, grid)):
        above = compute(foreground(image, threshold, grid))
        assert above.dtype == bool
        np.testing.assert_array_equal(above, values > threshold.value)


def test_the_blocks_of_a_store_are_added_up(tmp_path):
    grid = Grid.of((300, 40, 280))
    voxels = np.random.default_rng(0).normal(size=grid.shape).astype(np.float32)
    write_image(tmp_path / "image.ome.zarr", image_of(voxels, grid), levels=False)
    lazy = otsu(open_image(tmp_path / "image.ome.zarr"))
    assert sum(key_split(key) == "otsu-histogram" for key in lazy.dask) == 4
    assert compute(lazy).value == _threshold(voxels)


def test_nothing_outside_an_image_is_its_foreground(tmp_path):
    grid = Grid.of((6, 7), spacing=(2.0, 2.0), origin=(10.0, 20.0))
    # Zero, the usual background, is far above this threshold.
    voxels = np.full((3, 6, 7), -900, dtype=np.int16)
    voxels[:, 2:4, 3:5] = -100
    image = image_of(voxels, grid)
    finer = Grid.of((24, 32), spacing=(1.0, 1.0), origin=(7.5, 16.5))
    above = compute(foreground(image, compute(otsu(image)), finer))
    index = np.floor(
        grid.index(finer.world(np.stack(np.meshgrid(*map(np.arange, finer.shape), indexing="ij"), -1))) + 0.5
    )
    expected = ((index >= [2, 3]) & (index < [4, 5])).all(axis=-1)
    assert expected.sum() == 16
    np.testing.assert_array_equal(above, expected)


def test_a_mask_on_the_grid_already_is_itself_and_another_keeps_its_kind():
    labels = image_of(np.ones((4, 5), dtype=np.uint8), Grid.of((4, 5)), kind="labels")
    assert onto(labels, Grid.of((4, 5))) is labels
    coarse = onto(labels, Grid.of((2, 3), spacing=(2.0, 2.0)))
    assert kind_of(coarse) == "labels"
    np.testing.assert_array_equal(compute(coarse), [[1, 1, 1], [1, 1, 1]])


def test_an_image_of_one_value_has_no_foreground():
    image = image_of(np.full((4, 5), 7, dtype=np.uint8), Grid.of((4, 5)))
    assert not compute(foreground(image, compute(otsu(image)), Grid.of((4, 5)))).any()


def _refuse(dsk, keys, **_):
    msg = "a graph was computed while it was built"
    raise AssertionError(msg)


def test_nothing_is_computed_before_it_is_asked_for():
    grid = Grid.of((100, 100))
    image = image_of(da.zeros((100, 100), chunks=50), grid)
    threshold = compute(otsu(image))
    with dask.config.set(scheduler=_refuse):
        otsu(image)
        foreground(image, threshold, grid)


@pytest.mark.parametrize("coloured", [False, True])
def test_grey_is_the_mean_of_the_channels(coloured):
    voxels = np.array([[[1, 2]], [[4, 4]]], dtype=np.uint8)
    grey = histogram.grey(voxels, coloured=coloured)
    assert grey.tolist() == ([[2.5, 3.0]] if coloured else voxels.tolist())
