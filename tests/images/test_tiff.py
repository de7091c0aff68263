import imagecodecs
import imageio.v3 as iio
import numpy as np
import pytest
import tifffile

from blocks.grid import Grid
from blocks.image import grid_of, image_of, unit_of
from fidopt.errors import InputError
from fidopt.images.readers import read_image
from fidopt.images.tiff import write_tiff

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(13, 15), (5, 13, 15), (3, 13, 15), (4, 5, 13, 15)])
def test_what_is_written_comes_back_with_its_spacing_and_unit(tmp_path, random, dtype, shape):
    channels = len(shape) == 4 or shape[0] == 3
    spatial = shape[1:] if channels else shape
    grid = Grid.of(spatial, spacing=(0.5, 0.75, 2.5)[: len(spatial)])
    array = random.integers(0, 2, shape).astype(dtype)
    write_tiff(tmp_path / "t.tif", image_of(array, grid, unit="um"))
    back = read_image(tmp_path / "t.tif")
    assert back.dims == (("c",) if channels else ()) + ("z", "y", "x")[-len(spatial) :]
    assert back.dtype == dtype
    assert np.array_equal(back.values, array)
    assert grid_of(back).spacing == grid.spacing
    assert unit_of(back) == "um"


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float16"])
def test_types_that_ome_tiff_lacks_are_written_as_plain_tiff(tmp_path, random, dtype):
    array = random.integers(0, 99, (5, 13, 15)).astype(dtype)
    write_tiff(tmp_path / "t.tif", image_of(array, Grid.of(array.shape)))
    back = read_image(tmp_path / "t.tif")
    assert back.dtype == dtype
    assert np.array_equal(back.values, array)


def test_a_lazy_image_is_written_block_by_block(tmp_path, random):
    for shape in ((6, 13, 15), (2, 6, 13, 15), (13, 15)):
        array = random.random(shape)
        image = image_of(array, Grid.of(shape[-3:]))
        write_tiff(tmp_path / "t.tif", image.chunk(dict.fromkeys(image.dims, 4)))
        assert np.array_equal(read_image(tmp_path / "t.tif").values, array)


def test_a_colour_is_one_vector_a_pixel(tmp_path, random):
    array = random.integers(0, 255, (13, 15, 3)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "t.tif", array, photometric="rgb")
    assert np.array_equal(read_image(tmp_path / "t.tif").values, np.moveaxis(array, -1, 0))
    planar = np.moveaxis(array, -1, 0)
    tifffile.imwrite(tmp_path / "p.tif", planar, photometric="rgb", planarconfig="separate")
    assert np.array_equal(read_image(tmp_path / "p.tif").values, planar)


def test_a_plain_tiff_is_measured_in_pixels_unless_told(tmp_path):
    tifffile.imwrite(tmp_path / "t.tif", np.zeros((13, 15), np.uint8), resolution=(72, 72))
    plain = read_image(tmp_path / "t.tif")
    assert (grid_of(plain).spacing, unit_of(plain)) == ((1.0, 1.0), "px")
    told = read_image(tmp_path / "t.tif", unit="um", spacing=(0.5, 0.25))
    assert (grid_of(told).spacing, unit_of(told)) == ((0.5, 0.25), "um")
    with pytest.raises(InputError, match="a spacing of 2 numbers"):
        read_image(tmp_path / "t.tif", spacing=(1, 2, 3))


def test_imagej_s_calibration_counts(tmp_path):
    options = {"imagej": True, "resolution": (1 / 0.5, 1 / 0.25)}
    stack = np.zeros((4, 13, 15), np.uint16)
    tifffile.imwrite(tmp_path / "t.tif", stack, metadata={"axes": "ZYX", "spacing": 2.0, "unit": "um"}, **options)
    image = read_image(tmp_path / "t.tif")
    assert (grid_of(image).spacing, unit_of(image)) == ((0.5, 0.25, 2.0), "um")


def test_a_size_missing_along_one_axis_is_asked_for(tmp_path):
    metadata = {"axes": "ZYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
    tifffile.imwrite(tmp_path / "t.ome.tif", np.zeros((4, 13, 15), np.uint8), metadata=metadata)
    with pytest.raises(InputError, match="give --spacing"):
        read_image(tmp_path / "t.ome.tif")
    assert grid_of(read_image(tmp_path / "t.ome.tif", spacing=(0.5, 0.5, 2))).spacing == (0.5, 0.5, 2)


def test_pages_without_a_name_are_planes(tmp_path, random):
    array = random.integers(0, 99, (4, 13, 15)).astype(np.uint16)
    tifffile.imwrite(tmp_path / "t.tif", array, photometric="minisblack", metadata=None)
    assert np.array_equal(read_image(tmp_path / "t.tif").values, array)


def test_a_series_in_time_is_refused(tmp_path):
    tifffile.imwrite(tmp_path / "t.ome.tif", np.zeros((2, 3, 13, 15), np.uint8), metadata={"axes": "TZYX"})
    with pytest.raises(InputError, match=r"t\.ome\.tif: axes x, y, z and channels are expected, got TZYX"):
        read_image(tmp_path / "t.ome.tif")


@pytest.mark.parametrize("content", [b"", b"no tiff", b"II*\x00\x08\x00\x00\x00\xff\xff"])
def test_what_is_no_tiff_is_refused(tmp_path, content):
    (tmp_path / "t.tif").write_bytes(content)
    with pytest.raises(InputError, match=r"t\.tif: the TIFF cannot be read"):
        read_image(tmp_path / "t.tif")


@pytest.mark.parametrize("tile", [None, (16, 16)])
def test_a_large_file_is_read_by_region_and_gives_the_same(tmp_path, random, tile):
    for shape, options in (((40, 50, 3), {"photometric": "rgb"}), ((5, 40, 50), {}), ((1, 40, 50), {})):
        array = random.integers(0, 255, shape).astype(np.uint8)
        tifffile.imwrite(tmp_path / "t.tif", array, tile=tile, **options)
        image = read_image(tmp_path / "t.tif", lazy_bytes=100)
        assert image.chunks is not None
        expected = np.moveaxis(array, -1, 0) if options else array.squeeze()
        assert np.array_equal(image.values, expected)
        assert np.array_equal(image[..., 7:21, 11:].values, expected[..., 7:21, 11:])


def test_a_slide_states_its_micrometres(shared_data):
    image = read_image(shared_data("slide") / "cmu_small_region.svs")
    assert image.shape == (3, 2967, 2220)
    assert (grid_of(image).spacing, unit_of(image)) == ((0.499, 0.499), "um")


@pytest.mark.parametrize("ending", [".png", ".jpg"])
@pytest.mark.parametrize("channels", [None, 3])
def test_a_photograph_is_read_as_imageio_reads_it(tmp_path, random, ending, channels):
    array = random.integers(0, 255, (13, 15, *((channels,) if channels else ()))).astype(np.uint8)
    iio.imwrite(tmp_path / f"p{ending}", array)
    image = read_image(tmp_path / f"p{ending}")
    theirs = iio.imread(tmp_path / f"p{ending}")
    assert np.array_equal(image.values, np.moveaxis(theirs, -1, 0) if channels else theirs)
    assert image.dims == (("c", "y", "x") if channels else ("y", "x"))
    assert (grid_of(image).spacing, unit_of(image)) == ((1.0, 1.0), "px")


def test_sixteen_bits_and_transparency_of_a_png_are_kept(tmp_path, random):
    grey = random.integers(0, 65535, (13, 15)).astype(np.uint16)
    iio.imwrite(tmp_path / "g.png", grey)
    assert np.array_equal(read_image(tmp_path / "g.png").values, grey)
    clear = random.integers(0, 255, (13, 15, 4)).astype(np.uint8)
    iio.imwrite(tmp_path / "a.png", clear)
    assert np.array_equal(read_image(tmp_path / "a.png").values, np.moveaxis(clear, -1, 0))


def test_sixteen_bits_of_a_colour_are_kept(tmp_path, random):
    colour = random.integers(0, 65535, (13, 15, 3)).astype(np.uint16)
    (tmp_path / "c.png").write_bytes(imagecodecs.png_encode(colour))
    assert np.array_equal(read_image(tmp_path / "c.png").values, np.moveaxis(colour, -1, 0))


def test_a_section_of_the_histology_set_is_a_colour_image_in_pixels(shared_data):
    image = read_image(shared_data("histology") / "rat-kidney_" / "scale-5pc" / "Rat-Kidney_HE.jpg")
    assert image.dims == ("c", "y", "x")
    assert image.sizes["c"] == 3
    assert unit_of(image) == "px"


def test_what_is_not_read_is_said(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"")
    for name, why in (("x.bin", "this format is not read; read are"), ("y.png", "there is no such file")):
        with pytest.raises(InputError, match=why):
            read_image(tmp_path / name)
    with pytest.raises(InputError, match="it is a folder, not an image"):
        read_image(tmp_path)
    (tmp_path / "x.png").write_bytes(b"no png")
    with pytest.raises(InputError, match=r"x\.png"):
        read_image(tmp_path / "x.png")


def test_a_colour_is_no_label_map(tmp_path):
    iio.imwrite(tmp_path / "p.png", np.zeros((13, 15, 3), np.uint8))
    with pytest.raises(InputError, match="a label map holds one value a voxel, got 3 channels"):
        read_image(tmp_path / "p.png", labels=True)


@pytest.mark.parametrize("options", [{"metadata": None}, {"imagej": True}, {"ome": True}, {}, {"compression": "zlib"}])
def test_a_tiff_cut_anywhere_is_refused_or_whole(tmp_path, random, capfd, options):
    array = random.integers(0, 255, (9, 13, 15)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "t.tif", array, photometric="minisblack", **options)
    content = (tmp_path / "t.tif").read_bytes()
    refused = []
    for cut in range(8, len(content), len(content) // 20):
        (tmp_path / "t.tif").write_bytes(content[:cut])
        try:
            assert np.array_equal(read_image(tmp_path / "t.tif").values, array)
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert all("t.tif: the TIFF cannot be read" in message for message in refused)
    assert capfd.readouterr().err == ""
