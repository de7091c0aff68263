"""Voxels that stay in their files: stacks of planes, HDF5, and what is decoded how often."""

import locale
import os
import socket
import tempfile

import h5py
import numpy as np
import pytest
import tifffile

from blocks import open_image
from blocks.grid import Grid
from blocks.image import grid_of, unit_of
from fidopt.errors import InputError
from fidopt.images import lazy, segments
from fidopt.images.conversion import convert
from fidopt.images.readers import read_image
from fidopt.images.tiff import open_tiff


@pytest.fixture
def decoded(monkeypatch):
    """Return the list that every segment read from a file is noted in."""
    found = []
    real = segments._bytes

    def noted(path, offset, count):
        found.append((path, offset))
        return real(path, offset, count)

    monkeypatch.setattr(segments, "_bytes", noted)
    monkeypatch.setattr(segments, "_KEPT", segments._Kept())
    return found


def write_planes(folder, volume, **options):
    folder.mkdir()
    for number, plane in enumerate(volume):
        tifffile.imwrite(folder / f"plane_{number}.tif", plane, **options)


@pytest.mark.parametrize("name", ["planes", "planes/plane_*.tif"])
def test_a_stack_comes_in_the_natural_order_of_its_names(tmp_path, random, name):
    volume = random.integers(0, 999, (12, 13, 15)).astype(np.uint16)
    write_planes(tmp_path / "planes", volume)
    image = read_image(tmp_path / name, spacing=(0.04, 0.04, 0.05), unit="mm")
    assert image.chunks is not None
    assert np.array_equal(image.values, volume)
    assert (grid_of(image).spacing, unit_of(image)) == ((0.04, 0.04, 0.05), "mm")


def test_a_stack_of_colours_has_its_channels_first(tmp_path, random):
    volume = random.integers(0, 255, (3, 13, 15, 3)).astype(np.uint8)
    write_planes(tmp_path / "planes", volume, photometric="rgb")
    image = read_image(tmp_path / "planes")
    assert image.dims == ("c", "z", "y", "x")
    assert np.array_equal(image.values, np.moveaxis(volume, -1, 0))


def test_the_first_plane_that_differs_is_named(tmp_path):
    write_planes(tmp_path / "planes", np.zeros((11, 13, 15), np.uint8))
    tifffile.imwrite(tmp_path / "planes" / "plane_9.tif", np.zeros((13, 16), np.uint8))
    tifffile.imwrite(tmp_path / "planes" / "plane_10.tif", np.zeros((12, 15), np.uint8))
    with pytest.raises(InputError, match=r"plane_0\.tif is 13 x 15 of uint8, plane_9\.tif is 13 x 16 of uint8"):
        read_image(tmp_path / "planes")


def test_a_pattern_without_a_plane_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no plane that ends in .*is there"):
        read_image(tmp_path / "*.tif")


@pytest.mark.parametrize("chunks", [None, (4, 5, 6)])
def test_a_dataset_of_hdf5_states_its_size(tmp_path, random, chunks):
    volume = random.integers(0, 99, (9, 13, 15)).astype(">u2")
    with h5py.File(tmp_path / "s.h5", "w") as file:
        item = file.create_dataset("a/raw", data=volume, chunks=chunks)
        item.attrs["element_size_um"] = (0.235, 0.15, 0.1)
        file["label"] = volume[:, :, :9]
    image = read_image(f"{tmp_path}/s.h5:a/raw")
    assert image.chunks is not None
    assert image.dtype == np.dtype(np.uint16)
    assert np.array_equal(image.values, volume)
    assert np.array_equal(image[2:5, 3:, :7].values, volume[2:5, 3:, :7])
    assert (grid_of(image).spacing, unit_of(image)) == ((0.1, 0.15, 0.235), "um")
    assert read_image(f"{tmp_path}/s.h5:label", labels=True).attrs["kind"] == "labels"
    with pytest.raises(InputError, match=r"name one of its datasets .* it holds a/raw, label"):
        read_image(tmp_path / "s.h5")
    with pytest.raises(InputError, match=r"no\.h5: there is no such file"):
        read_image(f"{tmp_path}/no.h5:raw")


@pytest.mark.parametrize(("shape", "dims"), [((3, 5, 6, 7), "czyx"), ((5, 6, 7, 2), "zyxc"), ((1, 6, 7), "1yx")])
def test_the_channels_of_hdf5_come_first(tmp_path, random, shape, dims):
    volume = random.random(shape)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["raw"] = volume
    image = read_image(tmp_path / "s.h5")
    expected = np.moveaxis(volume, -1, 0) if dims == "zyxc" else volume.squeeze() if dims == "1yx" else volume
    assert np.array_equal(image.values, expected)


def test_an_image_and_a_level_of_a_tiff_are_chosen_by_number(tmp_path, random):
    first, second = (random.integers(0, 255, (64, 96)).astype(np.uint8) for _ in range(2))
    half = first[::2, ::2]
    with tifffile.TiffWriter(tmp_path / "t.ome.tif", ome=True) as file:
        sizes = {"PhysicalSizeX": 0.5, "PhysicalSizeY": 0.25}
        file.write(first, subifds=1, tile=(32, 32), metadata={"axes": "YX", **sizes})
        file.write(half, subfiletype=1, tile=(32, 32))
        file.write(second, metadata={"axes": "YX", "PhysicalSizeX": 2.0, "PhysicalSizeY": 3.0})
    assert np.array_equal(read_image(tmp_path / "t.ome.tif").values, first)
    coarse = read_image(f"{tmp_path}/t.ome.tif:0/1")
    assert np.array_equal(coarse.values, half)
    assert grid_of(coarse).spacing == (1.0, 0.5)
    other = read_image(f"{tmp_path}/t.ome.tif:1")
    assert np.array_equal(other.values, second)
    assert grid_of(other).spacing == (2.0, 3.0)
    with pytest.raises(InputError, match="there is no level 2"):
        read_image(f"{tmp_path}/t.ome.tif:0/2")
    with pytest.raises(InputError, match="holds the images 0 to 1, there is no image 5"):
        read_image(f"{tmp_path}/t.ome.tif:5")


def test_planes_of_one_strip_are_decoded_once_however_many_shards_cut_them(tmp_path, random, decoded, monkeypatch):
    monkeypatch.setattr(lazy, "SLAB_BYTES", 1000)
    monkeypatch.setattr(lazy, "BAND_BYTES", 3 * 600 * 600)
    monkeypatch.setattr(segments, "KEPT_BYTES", 0)
    volume = random.integers(0, 255, (7, 600, 600)).astype(np.uint8)
    write_planes(tmp_path / "planes", volume, compression="zlib", rowsperstrip=600)
    convert(tmp_path / "planes", tmp_path / "out.ome.zarr")
    assert np.array_equal(open_image(tmp_path / "out.ome.zarr").values, volume)
    assert len(decoded) == len(set(decoded)) == 7


def test_tiles_that_shards_cut_are_decoded_once(tmp_path, random, decoded, monkeypatch):
    volume = random.integers(0, 255, (300, 300, 300)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "t.tif", volume, tile=(96, 96), compression="zlib")
    image = read_image(tmp_path / "t.tif", lazy_bytes=1000)
    assert len(image.chunks[0]) == 2
    assert np.array_equal(image.values, volume)
    assert len(set(decoded)) == 300 * 16
    assert len(decoded) <= 1.05 * len(set(decoded))


def test_only_tiles_that_a_shard_cuts_are_kept(tmp_path, random, decoded):
    picture = random.integers(0, 255, (300, 300, 3)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "t.tif", picture, tile=(64, 64), compression="zlib", photometric="rgb")
    image, _ = open_tiff(tmp_path / "t.tif")
    box = (slice(0, 3), slice(64, 192), slice(128, 300))
    assert np.array_equal(image[box], np.moveaxis(picture, -1, 0)[box])
    assert segments._KEPT._bytes == 0
    first = len(decoded)
    for columns in (slice(0, 100), slice(100, 192)):
        box = (slice(0, 3), slice(0, 64), columns)
        assert np.array_equal(image[box], np.moveaxis(picture, -1, 0)[box])
    assert segments._KEPT._bytes == 64 * 64 * 3
    assert len(decoded) - first == 3


def test_a_dicom_series_is_read_from_its_folder(tmp_path):
    import SimpleITK as sitk  # noqa: N813 - the package's customary name

    own = locale.setlocale(locale.LC_ALL)
    volume = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
    image = sitk.GetImageFromArray(volume)
    for k in range(4):
        plane = sitk.GetImageFromArray(volume[k])
        plane = sitk.JoinSeries([plane], 0, 2.5)
        plane.SetSpacing((0.5, 0.75, 2.5))
        tags = {"0008|0060": "CT", "0020|000e": "1.2.3.4", "0020|000d": "1.2.3", "0020|0013": str(k)}
        tags |= {"0020|0032": f"0\\0\\{2.5 * k}", "0020|0037": "1\\0\\0\\0\\1\\0", "0008|0018": f"1.2.3.4.{k + 1}"}
        for key, value in tags.items():
            plane.SetMetaData(key, value)
        writer = sitk.ImageFileWriter()
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(tmp_path / f"{k}.dcm"))
        writer.Execute(plane)
    assert image.GetSize() == (6, 5, 4)
    # SimpleITK's DICOM sets the locale of the whole process to C; reading one gives it back.
    locale.setlocale(locale.LC_ALL, own)
    found = read_image(tmp_path)
    assert locale.setlocale(locale.LC_ALL) == own
    assert np.array_equal(found.values, volume)
    assert grid_of(found) == Grid.of((4, 5, 6), spacing=(0.5, 0.75, 2.5))


def test_bands_of_a_process_that_was_killed_go_and_those_of_a_living_one_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    host = socket.gethostname()
    gone, living, foreign = (
        tmp_path / f"fidopt-bands-{name}-abcd"
        for name in (f"{host}-{2**22 + 1}", f"{host}-{os.getppid()}", f"elsewhere-{2**22 + 1}")
    )
    for folder in (gone, living, foreign):
        folder.mkdir()
        (folder / "0-0.npy").touch()
    lazy.clear_stale_bands()
    assert sorted(tmp_path.iterdir()) == sorted([living, foreign])
