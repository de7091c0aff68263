"""An image is known by its voxels and their type, whatever it lies in."""

from __future__ import annotations

import hashlib

import dask.array as da
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import image_of, open_image
from blocks.execute import write_image
from blocks.grid import Grid
from fidopt.images import voxels as module
from fidopt.images.readers import read_image
from fidopt.images.voxels import voxel_digest


def some(shape=(7, 9, 11), *, dtype=np.int16, seed=1):
    values = np.random.default_rng(seed).integers(0, 100, size=shape).astype(dtype)
    return image_of(
        values, Grid.of(shape[-2:] if len(shape) == 2 else shape[-3:], spacing=(0.5, 2.0, 1.5)[: len(shape)])
    )


def test_the_digest_is_the_one_that_its_definition_gives_by_hand():
    image = some()
    box = hashlib.sha256(image.values.astype("<i2").tobytes()).digest()
    assert voxel_digest(image) == "sha256:" + hashlib.sha256(b"int16 zyx 7x9x11\n" + box).hexdigest()


def test_an_image_of_several_boxes_is_the_digest_of_theirs_in_order():
    values = np.random.default_rng(0).integers(0, 9, size=(3, 300, 260)).astype(np.uint8)
    parts = [
        values[:, y, x].tobytes() for y in (slice(0, 256), slice(256, 300)) for x in (slice(0, 256), slice(256, 260))
    ]
    joined = b"".join(hashlib.sha256(part).digest() for part in parts)
    image = image_of(values, Grid.of(values.shape))
    assert voxel_digest(image) == "sha256:" + hashlib.sha256(b"uint8 zyx 3x300x260\n" + joined).hexdigest()


@pytest.mark.parametrize("ending", ["nii.gz", "mha", "nrrd", "ome.zarr"])
def test_file_format_geometry_and_compression_leave_the_digest_as_it_is(tmp_path, ending):
    image = some()
    path = tmp_path / f"image.{ending}"
    if ending == "ome.zarr":
        write_image(path, image)
        assert voxel_digest(path) == voxel_digest(image)
        assert voxel_digest(open_image(path)) == voxel_digest(image)
        return
    made = sitk.GetImageFromArray(image.values)
    made.SetOrigin((5.0, 6.0, 7.0))
    sitk.WriteImage(made, str(path))
    assert voxel_digest(read_image(path)) == voxel_digest(image)


@settings(max_examples=20, deadline=None)
@given(chunks=st.tuples(*[st.integers(1, 12)] * 3))
def test_no_chunking_changes_it(chunks):
    image = some()
    lazy = xr.DataArray(da.from_array(image.values, chunks=chunks), dims=image.dims, attrs=image.attrs)
    assert voxel_digest(lazy) == voxel_digest(image)


def test_boxes_of_a_lazy_image_are_computed_some_at_a_time(monkeypatch):
    values = np.random.default_rng(0).integers(0, 9, size=(40, 40)).astype(np.uint8)
    image = image_of(values, Grid.of(values.shape))
    monkeypatch.setattr(module, "BOX", {2: 7})
    whole = voxel_digest(image)
    monkeypatch.setattr(module, "_AT_ONCE", 5)
    lazy = xr.DataArray(da.from_array(values, chunks=(9, 13)), dims=image.dims, attrs=image.attrs)
    assert voxel_digest(lazy) == whole


def test_a_voxel_the_type_the_order_and_the_shape_all_count():
    image = some()
    digests = {voxel_digest(image)}
    changed = image.copy(deep=True)
    changed[3, 4, 5] += 1
    digests.add(voxel_digest(changed))
    digests.add(voxel_digest(some(dtype=np.uint16)))
    digests.add(voxel_digest(image_of(image.values[::-1], Grid.of(image.shape))))
    digests.add(voxel_digest(image_of(image.values.reshape(11, 9, 7), Grid.of((11, 9, 7)))))
    assert len(digests) == 5


def test_channels_are_told_from_planes():
    values = np.random.default_rng(0).integers(0, 9, size=(3, 20, 20)).astype(np.uint8)
    assert voxel_digest(image_of(values, Grid.of((20, 20)))) != voxel_digest(image_of(values, Grid.of((3, 20, 20))))


def test_an_image_that_tells_nothing_has_none():
    assert voxel_digest(image_of(np.full((40, 40), 7, np.int16), Grid.of((40, 40)))) is None
    assert voxel_digest(image_of(np.full((40, 40), np.nan, np.float32), Grid.of((40, 40)))) is None
    assert voxel_digest(some((15, 17))) is None
    assert voxel_digest(some((16, 16))) is not None
    bright = np.zeros((300, 300), np.uint8)
    bright[299, 299] = 1
    assert voxel_digest(image_of(bright, Grid.of(bright.shape))) is not None


def test_two_boxes_each_of_one_value_are_not_an_image_of_one_value(monkeypatch):
    monkeypatch.setattr(module, "BOX", {2: 20})
    halves = np.repeat(np.array([[3, 4]], np.uint8), 20, axis=1).repeat(20, axis=0)
    assert voxel_digest(image_of(halves, Grid.of(halves.shape))) is not None
    assert voxel_digest(image_of(np.full((20, 40), 3, np.uint8), Grid.of((20, 40)))) is None


def test_the_other_byte_order_in_memory_is_the_same_image():
    image = some()
    swapped = xr.DataArray(image.values.astype(">i2"), dims=image.dims, attrs=image.attrs)
    assert voxel_digest(swapped) == voxel_digest(image)
