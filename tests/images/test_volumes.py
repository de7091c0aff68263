import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.image import grid_of, image_of, unit_of
from fidopt.errors import InputError
from fidopt.images.geometry import apply_grid_to_sitk
from fidopt.images.readers import read_image
from fidopt.images.volumes import write_volume

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]


@pytest.mark.parametrize("ending", [".mha", ".mhd", ".nrrd", ".nhdr"])
@pytest.mark.parametrize("components", [None, 3])
def test_what_sitk_wrote_is_read_as_it_is(tmp_path, oblique, oblique_plane, random, ending, components):
    for grid in (oblique, oblique_plane):
        array = random.normal(size=(*grid.shape, *((components,) if components else ()))).astype(np.float32)
        array.flat[5] = np.nan
        image = sitk.GetImageFromArray(array, isVector=components is not None)
        apply_grid_to_sitk(image, grid)
        sitk.WriteImage(image, str(tmp_path / f"v{ending}"))
        ours = read_image(tmp_path / f"v{ending}")
        expected = np.moveaxis(array, -1, 0) if components else array
        assert np.array_equal(ours.values, expected, equal_nan=True)
        assert unit_of(ours) == "mm"
        theirs = sitk.ReadImage(str(tmp_path / f"v{ending}"))
        assert grid_of(ours).direction == theirs.GetDirection()
        assert grid_of(ours).matches(grid, tolerance=1e-6)


@pytest.mark.parametrize("dtype", [*TYPES, "bool", "float16"])
@pytest.mark.parametrize("ending", [".mha", ".nrrd"])
def test_every_type_comes_back_from_a_volume(tmp_path, oblique, random, dtype, ending):
    array = random.integers(0, 2, oblique.shape).astype(dtype)
    write_volume(tmp_path / f"v{ending}", image_of(array, oblique))
    back = read_image(tmp_path / f"v{ending}")
    assert back.dtype == {"bool": "uint8", "float16": "float32"}.get(dtype, dtype)
    assert np.array_equal(back.values, array)
    assert grid_of(back).matches(oblique)
    assert [path.name for path in tmp_path.iterdir()] == [f"v{ending}"]


def test_channels_come_back_from_a_volume(tmp_path, oblique_plane, random):
    array = random.random((4, *oblique_plane.shape))
    write_volume(tmp_path / "v.mha", image_of(array, oblique_plane))
    assert np.array_equal(read_image(tmp_path / "v.mha").values, array)


@pytest.mark.parametrize("ending", [".mha", ".nrrd"])
def test_a_volume_cut_short_is_refused(tmp_path, random, ending):
    grid = Grid.of((32, 32, 32))
    write_volume(tmp_path / f"v{ending}", image_of(random.integers(0, 99, grid.shape), grid))
    content = (tmp_path / f"v{ending}").read_bytes()
    (tmp_path / f"v{ending}").write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(InputError, match=r"v\.\w+: (the file cannot be read|its compressed voxels end too soon)"):
        read_image(tmp_path / f"v{ending}")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("ending", [".mha", ".mhd"])
def test_a_metaimage_cut_anywhere_is_refused_in_our_own_words(tmp_path, random, capfd, compressed, ending):
    image = sitk.GetImageFromArray(random.integers(0, 99, (8, 9, 10)).astype(np.int16))
    sitk.WriteImage(image, str(tmp_path / f"v{ending}"), compressed)
    voxels = max(tmp_path.iterdir(), key=lambda path: path.stat().st_size)
    content = voxels.read_bytes()
    for cut in range(1, len(content), len(content) // 15):
        voxels.write_bytes(content[:cut])
        with pytest.raises(InputError, match=r"v\.\w+: its (header|voxels|compressed voxels) "):
            read_image(tmp_path / f"v{ending}")
    assert capfd.readouterr().err == ""


def test_a_changed_byte_in_compressed_voxels_is_refused(tmp_path, random):
    image = sitk.GetImageFromArray(random.integers(0, 99, (8, 9, 10)).astype(np.int16))
    sitk.WriteImage(image, str(tmp_path / "v.mha"), True)
    content = bytearray((tmp_path / "v.mha").read_bytes())
    content[-200] ^= 0x10
    (tmp_path / "v.mha").write_bytes(content)
    with pytest.raises(InputError, match=r"v\.mha: its compressed voxels are damaged"):
        read_image(tmp_path / "v.mha")


@pytest.mark.parametrize("size", ["0 9 10", "-8 9 10", "8 9", "x 9 10"])
def test_a_metaimage_of_no_size_is_refused(tmp_path, size):
    sitk.WriteImage(sitk.Image([10, 9, 8], sitk.sitkInt16), str(tmp_path / "v.mha"))
    content = (tmp_path / "v.mha").read_bytes()
    (tmp_path / "v.mha").write_bytes(content.replace(b"DimSize = 10 9 8", f"DimSize = {size}".encode()))
    with pytest.raises(InputError, match=f"its header says DimSize = {size}"):
        read_image(tmp_path / "v.mha")


def test_a_plain_metaimage_cut_short_is_refused(tmp_path):
    sitk.WriteImage(sitk.GetImageFromArray(np.ones((8, 8, 8), np.int16)), str(tmp_path / "v.mha"))
    content = (tmp_path / "v.mha").read_bytes()
    (tmp_path / "v.mha").write_bytes(content[:-200])
    with pytest.raises(InputError, match=r"v\.mha: "):
        read_image(tmp_path / "v.mha")


def test_a_spacing_of_zero_is_refused(tmp_path):
    sitk.WriteImage(sitk.GetImageFromArray(np.ones((8, 8, 8), np.int16)), str(tmp_path / "v.mha"))
    content = (tmp_path / "v.mha").read_bytes()
    (tmp_path / "v.mha").write_bytes(content.replace(b"ElementSpacing = 1 1 1", b"ElementSpacing = 1 0 1"))
    with pytest.raises(InputError, match=r"v\.mha: .*"):
        read_image(tmp_path / "v.mha")


def test_the_fourth_axis_of_a_volume_holds_channels_or_nothing(tmp_path):
    for count, expected in ((1, (4, 5, 6)), (2, (2, 4, 5, 6))):
        image = sitk.GetImageFromArray(np.zeros((count, 4, 5, 6), np.uint8), isVector=False)
        sitk.WriteImage(image, str(tmp_path / "v.mha"))
        assert read_image(tmp_path / "v.mha").shape == expected


def test_the_lung_ct_is_read_as_sitk_reads_it(shared_data):
    path = shared_data("lung_ct") / "3DCT_lung_baseline.mha"
    image = read_image(path)
    theirs = sitk.ReadImage(str(path))
    assert image.shape == (129, 157, 115)
    assert np.array_equal(image.values, sitk.GetArrayFromImage(theirs))
    assert grid_of(image).origin == theirs.GetOrigin()
