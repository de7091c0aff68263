import gzip

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.image import grid_of, image_of, unit_of
from fidopt.errors import InputError
from fidopt.images.geometry import apply_grid_to_sitk
from fidopt.images.nifti import check_gzip, open_nifti, write_field, write_nifti
from fidopt.images.readers import read_image

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
DIAGONAL = np.diag([-2.0, -3.0, 4.0, 1.0])


def save(path, array, *, affine=DIAGONAL, intent=0, unit=None, codes=(0, 2), slope=None):
    """Write an array (x, y, z, ...) with nibabel, the header under control."""
    image = nibabel.Nifti1Image(array, None, dtype=array.dtype)
    image.set_qform(affine, codes[0])
    image.set_sform(affine, codes[1])
    # nibabel rewrites a spacing it deems unset: give it what the affine says.
    image.header["pixdim"][1:4] = np.linalg.norm(affine[:3, :3], axis=0)
    if intent:
        image.header.set_intent(intent)
    if unit:
        image.header.set_xyzt_units(unit)
    nibabel.save(image, path)
    if slope is not None:
        patch(path, 112, np.array(slope, "<f4").tobytes())


def patch(path, offset, content):
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(content)


def voxels_of(image):
    array = sitk.GetArrayFromImage(image)
    return np.moveaxis(array, -1, 0) if image.GetNumberOfComponentsPerPixel() > 1 else array


def assert_as_sitk_reads_it(path):
    ours, theirs = read_image(path), sitk.ReadImage(str(path))
    grid = grid_of(ours)
    assert ours.dtype == voxels_of(theirs).dtype
    assert np.array_equal(ours.values, voxels_of(theirs))
    assert (grid.spacing, grid.origin, grid.direction) == (
        theirs.GetSpacing(),
        theirs.GetOrigin(),
        theirs.GetDirection(),
    )
    return ours


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
def test_every_type_is_read_as_sitk_reads_it(tmp_path, oblique, random, dtype, ending):
    array = random.integers(0, 120, oblique.shape).astype(dtype)
    image = sitk.GetImageFromArray(array)
    apply_grid_to_sitk(image, oblique)
    sitk.WriteImage(image, str(tmp_path / f"i{ending}"))
    ours = assert_as_sitk_reads_it(tmp_path / f"i{ending}")
    assert np.array_equal(ours.values, array)
    assert unit_of(ours) == "mm"


@pytest.mark.parametrize("dtype", [*TYPES, "bool", "float16"])
def test_every_type_is_written_as_sitk_writes_it(tmp_path, oblique, random, dtype):
    array = random.integers(0, 2, oblique.shape).astype(dtype)
    write_nifti(tmp_path / "ours.nii", image_of(array, oblique))
    written = {"bool": "uint8", "float16": "float32"}.get(dtype, dtype)
    image = sitk.GetImageFromArray(array.astype(written))
    apply_grid_to_sitk(image, oblique)
    sitk.WriteImage(image, str(tmp_path / "theirs.nii"))
    assert assert_as_sitk_reads_it(tmp_path / "ours.nii").dtype == written
    ours, theirs = (nibabel.load(tmp_path / name).header for name in ("ours.nii", "theirs.nii"))
    for key in ("dim", "datatype", "bitpix", "srow_x", "srow_y", "srow_z", "quatern_b", "qoffset_x", "qform_code"):
        assert np.array_equal(ours[key], theirs[key]), key
    assert np.array_equal(ours["pixdim"][:4], theirs["pixdim"][:4])


def test_an_oblique_direction_is_the_one_nifti_writes_again(tmp_path, oblique, random):
    array = random.random(oblique.shape)
    write_nifti(tmp_path / "ours.nii.gz", image_of(array, oblique))
    image = sitk.GetImageFromArray(array)
    apply_grid_to_sitk(image, oblique)
    sitk.WriteImage(image, str(tmp_path / "theirs.nii.gz"))
    ours = grid_of(read_image(tmp_path / "ours.nii.gz"))
    again = sitk.ReadImage(str(tmp_path / "theirs.nii.gz"))
    assert np.allclose(ours.direction, again.GetDirection(), rtol=0, atol=1e-8)
    assert np.allclose(ours.direction, oblique.direction, rtol=0, atol=1e-7)
    assert ours.matches(oblique)


@pytest.mark.parametrize("components", [2, 3, 5])
def test_channels_of_two_and_three_dimensions_go_the_way_of_vector_images(
    tmp_path, oblique, oblique_plane, random, components
):
    for grid in (oblique, oblique_plane):
        array = random.random((components, *grid.shape)).astype(np.float32)
        write_nifti(tmp_path / "c.nii.gz", image_of(array, grid))
        ours = assert_as_sitk_reads_it(tmp_path / "c.nii.gz")
        assert np.array_equal(ours.values, array)


def test_one_image_gives_the_same_bytes_twice(tmp_path, oblique, random):
    image = image_of(random.random(oblique.shape), oblique)
    write_nifti(tmp_path / "a.nii.gz", image)
    write_nifti(tmp_path / "b.nii.gz", image.chunk({"z": 3, "y": 4}))
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()


def test_a_plane_stays_a_plane(tmp_path, oblique_plane, random):
    array = random.integers(0, 99, oblique_plane.shape).astype(np.int16)
    write_nifti(tmp_path / "p.nii", image_of(array, oblique_plane))
    assert assert_as_sitk_reads_it(tmp_path / "p.nii").dims == ("y", "x")


def test_one_slice_of_a_volume_stays_a_volume(tmp_path, random):
    save(tmp_path / "s.nii", random.random((5, 4, 1)).astype(np.float32))
    assert assert_as_sitk_reads_it(tmp_path / "s.nii").shape == (1, 4, 5)


@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_either_byte_order_is_read_into_the_machine_s(tmp_path, byteorder):
    array = np.arange(60).reshape(3, 4, 5).astype(np.int16)
    header = nibabel.Nifti1Header(endianness=byteorder)
    header.set_data_dtype(np.int16)
    nibabel.save(nibabel.Nifti1Image(array, DIAGONAL, header), tmp_path / "b.nii")
    assert assert_as_sitk_reads_it(tmp_path / "b.nii").dtype.isnative


@pytest.mark.parametrize("codes", [(q, s) for q in (0, 1, 2) for s in (0, 1, 2, 4)])
def test_qform_and_sform_are_chosen_between_as_itk_does(tmp_path, oblique, codes):
    path = tmp_path / "f.nii"
    save(path, np.zeros((3, 4, 5), np.int16), codes=codes)
    image = nibabel.load(path)
    turned = np.eye(4)
    turned[:3, :3] = oblique.direction_matrix * [2, 3, 4]
    turned[:3, 3] = (7, 8, 9)
    image.set_sform(turned, codes[1])
    nibabel.save(image, tmp_path / "g.nii")
    assert_as_sitk_reads_it(tmp_path / "g.nii")


@pytest.mark.parametrize(("unit", "factor"), [("unknown", 1), ("mm", 1), ("micron", 1e-3), ("meter", 1e3)])
def test_the_unit_in_the_header_is_turned_into_millimetres(tmp_path, unit, factor):
    save(tmp_path / "u.nii", np.zeros((3, 4, 5), np.int16), unit=unit)
    image = assert_as_sitk_reads_it(tmp_path / "u.nii")
    assert np.allclose(grid_of(image).spacing, np.array([2, 3, 4]) * factor)
    assert unit_of(image) == "mm"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32", "float64"])
def test_slope_and_intercept_count_as_in_itk(tmp_path, dtype):
    array = np.arange(60).reshape(3, 4, 5).astype(dtype)
    save(tmp_path / "s.nii", array, slope=(2.5, -7))
    image = assert_as_sitk_reads_it(tmp_path / "s.nii")
    assert np.array_equal(image.values, array.T * 2.5 - 7)


def test_a_scaled_wide_integer_keeps_its_digits(tmp_path):
    save(tmp_path / "s.nii", np.full((2, 2, 2), 614454277, np.int32), slope=(1, 0.5))
    assert read_image(tmp_path / "s.nii").values.max() == 614454277.5


@pytest.mark.parametrize("slope", [(0, 5), (1, 0), (np.nan, 0)])
def test_a_slope_that_says_nothing_leaves_the_type(tmp_path, slope):
    save(tmp_path / "s.nii", np.arange(60).reshape(3, 4, 5).astype(np.int16), slope=slope)
    assert read_image(tmp_path / "s.nii").dtype == np.int16


def test_a_file_of_one_volume_has_three_axes(tmp_path, shared_case):
    save(tmp_path / "v.nii.gz", np.arange(120, dtype=np.int16).reshape(4, 5, 6, 1))
    assert assert_as_sitk_reads_it(tmp_path / "v.nii.gz").dims == ("z", "y", "x")
    assert read_image(shared_case("d11_4d.nii.gz")).shape == (6, 5, 4)


def test_several_volumes_are_channels(tmp_path):
    array = np.arange(240, dtype=np.int16).reshape(4, 5, 6, 2)
    save(tmp_path / "v.nii.gz", array)
    image = read_image(tmp_path / "v.nii.gz")
    assert image.dims == ("c", "z", "y", "x")
    assert np.array_equal(image.values, array.T)


def test_colour_voxels_become_channels(tmp_path):
    colours = np.zeros((3, 4, 2), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    colours["R"], colours["B"][1, 2, 0] = 7, 9
    nibabel.save(nibabel.Nifti1Image(colours, DIAGONAL), tmp_path / "rgb.nii")
    image = read_image(tmp_path / "rgb.nii")
    assert image.shape == (3, 2, 4, 3)
    assert (image.values[0] == 7).all()
    assert image.values[2, 0, 2, 1] == 9


def test_nan_is_kept_where_sitk_makes_it_zero(tmp_path):
    array = np.ones((3, 4, 5), np.float32)
    array[1, 2, 3] = np.nan
    save(tmp_path / "n.nii.gz", array)
    assert np.isnan(read_image(tmp_path / "n.nii.gz").values[3, 2, 1])


def test_a_plain_file_is_not_read_into_memory(tmp_path):
    save(tmp_path / "m.nii", np.zeros((3, 4, 5), np.int16))
    assert isinstance(open_nifti(tmp_path / "m.nii").voxels, np.memmap)


@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
@pytest.mark.parametrize("share", [0.01, 0.3, 2 / 3, 0.999])
def test_a_file_cut_short_is_refused_with_where_it_ends(tmp_path, random, ending, share):
    whole = tmp_path / f"whole{ending}"
    save(whole, random.integers(0, 999, (16, 16, 16)).astype(np.int16))
    content = whole.read_bytes()
    (tmp_path / f"cut{ending}").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=r"cut\.nii.*(ends too soon|ends after|ends inside its header)"):
        read_image(tmp_path / f"cut{ending}")


def test_the_shared_truncated_file_is_refused_and_its_whole_read(shared_case):
    with pytest.raises(InputError, match=r"d1_truncated\.nii\.gz: .* ends too soon, after 44046 of 65888 bytes"):
        read_image(shared_case("d1_truncated.nii.gz"))
    assert read_image(shared_case("whole.nii.gz")).shape == (32, 32, 32)
    assert check_gzip(shared_case("whole.nii.gz")) == 352 + 2 * 32**3
    with pytest.raises(InputError, match="ends too soon"):
        check_gzip(shared_case("d1_truncated.nii.gz"))


def test_a_flipped_byte_in_a_gzip_stream_is_refused(tmp_path, random):
    save(tmp_path / "w.nii.gz", random.integers(0, 999, (16, 16, 16)).astype(np.int16))
    content = bytearray((tmp_path / "w.nii.gz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "w.nii.gz").write_bytes(content)
    with pytest.raises(InputError, match="gzip stream"):
        read_image(tmp_path / "w.nii.gz")


def test_fewer_voxels_than_the_header_says_are_refused_though_the_stream_is_whole(tmp_path):
    save(tmp_path / "w.nii", np.zeros((8, 8, 8), np.int16))
    short = (tmp_path / "w.nii").read_bytes()[:-100]
    (tmp_path / "w.nii.gz").write_bytes(gzip.compress(short))
    with pytest.raises(InputError, match=r"the file ends after 1276 of 1376 bytes"):
        read_image(tmp_path / "w.nii.gz")


def test_a_spacing_that_is_not_positive_is_refused(tmp_path, shared_case):
    for value in (0.0, -1.0, np.nan):
        save(tmp_path / "z.nii", np.zeros((3, 4, 5), np.int16))
        patch(tmp_path / "z.nii", 76 + 4 * 3, np.array(value, "<f4").tobytes())
        with pytest.raises(InputError, match=r"z\.nii: the spacing \(pixdim\) along z must be positive"):
            read_image(tmp_path / "z.nii")
    with pytest.raises(InputError, match=r"the spacing .* must be positive, got 0"):
        read_image(shared_case("d12_zero_pixdim.nii"))


def test_a_sheared_sform_is_refused(tmp_path):
    sheared = DIAGONAL.copy()
    sheared[0, 1] = 1
    save(tmp_path / "s.nii", np.zeros((3, 4, 5), np.int16), affine=sheared)
    with pytest.raises(InputError, match=r"s\.nii: .*sheared"):
        read_image(tmp_path / "s.nii")


def test_a_spacing_that_the_sform_contradicts_is_refused(tmp_path):
    save(tmp_path / "c.nii", np.zeros((3, 4, 5), np.int16))
    patch(tmp_path / "c.nii", 76 + 4, np.array([1, 1, 1], "<f4").tobytes())
    with pytest.raises(InputError, match=r"is \(1, 1, 1\) in pixdim and \(2, 3, 4\) in the sform"):
        read_image(tmp_path / "c.nii")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8bno gzip at all", bytes(400)])
def test_what_is_no_nifti_file_is_refused(tmp_path, content):
    (tmp_path / "x.nii.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.nii\.gz"):
        read_image(tmp_path / "x.nii.gz")


def test_complex_voxels_are_refused(tmp_path):
    save(tmp_path / "c.nii", np.zeros((3, 4, 5), np.complex64))
    with pytest.raises(InputError, match="got complex64"):
        read_image(tmp_path / "c.nii")


def test_a_field_is_written_with_its_components_as_they_are(tmp_path, oblique, oblique_plane, random):
    for grid in (oblique, oblique_plane):
        vectors = random.normal(size=(grid.ndim, *grid.shape))
        write_field(tmp_path / "u.nii.gz", vectors, grid)
        header = nibabel.load(tmp_path / "u.nii.gz").header
        assert int(header["intent_code"]) == 1007
        assert header["dim"][0] == 5
        assert header.get_data_dtype() == np.float32
        theirs = sitk.ReadImage(str(tmp_path / "u.nii.gz"))
        assert theirs.GetDimension() == grid.ndim
        assert np.array_equal(voxels_of(theirs), vectors.astype(np.float32))
        assert np.allclose(theirs.GetDirection(), grid.direction, atol=2e-7)


def test_a_field_of_another_shape_is_not_written(tmp_path, oblique):
    with pytest.raises(InputError, match="a field on a grid of shape"):
        write_field(tmp_path / "u.nii.gz", np.zeros((2, *oblique.shape)), oblique)
    assert list(tmp_path.iterdir()) == []


def test_a_unit_that_itk_would_turn_is_stated_only_when_asked(tmp_path):
    image = image_of(np.zeros((4, 5), np.uint8), Grid.of((4, 5), spacing=(0.5, 0.5)), unit="um")
    write_nifti(tmp_path / "bare.nii", image)
    assert grid_of(read_image(tmp_path / "bare.nii")).spacing == (0.5, 0.5)
    write_nifti(tmp_path / "stated.nii", image, state_unit=True)
    assert np.allclose(grid_of(read_image(tmp_path / "stated.nii")).spacing, 0.0005)


def test_an_image_wider_than_nifti_holds_is_refused(tmp_path):
    with pytest.raises(InputError, match="at most 32767 voxels"):
        write_nifti(tmp_path / "w.nii", image_of(np.zeros((1, 40000), np.uint8), Grid.of((1, 40000))))


def test_scanners_files_are_read_as_sitk_reads_them(shared_data):
    files = sorted(shared_data("spine_mr").glob("*.nii.gz"))
    assert len(files) == 9
    for path in files:
        assert_as_sitk_reads_it(path)


@pytest.mark.parametrize(
    ("byte", "kind", "value", "why"),
    [
        (70, "<i2", 9999, "data type .code 9999. is not known"),
        (108, "<f4", -5.0, "vox_offset says byte -5"),
        (108, "<f4", np.nan, "vox_offset says byte nan"),
        (108, "<f4", 0.0, "vox_offset says byte 0"),
    ],
)
def test_a_damaged_header_is_refused_with_what_is_wrong(tmp_path, byte, kind, value, why):
    write_nifti(tmp_path / "v.nii", image_of(np.zeros((3, 4, 5), np.int16), Grid.of((3, 4, 5))))
    content = bytearray((tmp_path / "v.nii").read_bytes())
    stored = np.array(value, dtype=kind).tobytes()
    content[byte : byte + len(stored)] = stored
    (tmp_path / "v.nii").write_bytes(content)
    with pytest.raises(InputError, match=why):
        read_image(tmp_path / "v.nii")
