import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of
from fidopt.errors import FieldError, InputError
from fidopt.images import fields
from fidopt.images.fields import read_field
from fidopt.images.geometry import apply_grid_to_sitk
from fidopt.images.nifti import write_field

AFFINE = np.diag([2.0, 2.0, 2.0, 1.0])


def save(path, array, *, intent=0):
    image = nibabel.Nifti1Image(array, None)
    image.set_sform(AFFINE, 2)
    image.header["pixdim"][1:4] = 2
    if intent:
        image.header.set_intent(intent)
    nibabel.save(image, path)
    return path


def constant(shape, vector=(1, 2, 3)):
    """Return an array of this shape whose last axis is the vector."""
    return np.broadcast_to(np.array(vector, np.float32), shape).copy()


def test_a_vector_is_read_as_it_is(tmp_path, shared_case):
    path = save(tmp_path / "v.nii.gz", constant((4, 5, 6, 1, 3)), intent=1007)
    for field in (read_field(path), read_field(shared_case("d2_vector.nii.gz"))):
        assert field.vectors.shape == (3, 6, 5, 4)
        assert field.vectors.dtype == np.float32
        assert [np.unique(component).tolist() for component in field.vectors] == [[1], [2], [3]]
        assert field.grid.spacing == (2, 2, 2)
        # The header's axes run against LPS; the vectors are along LPS whatever the axes.
        assert field.grid.direction == (-1, 0, 0, 0, -1, 0, 0, 0, 1)


def test_a_displacement_intent_is_refused_and_named(tmp_path, shared_case):
    path = save(tmp_path / "d.nii.gz", constant((4, 5, 6, 1, 3)), intent=1006)
    for wrong in (path, shared_case("d2_dispvect.nii.gz")):
        for voxels in (False, True):
            with pytest.raises(FieldError, match="intent 1006, but intent 1007"):
                read_field(wrong, convention="learn2reg" if voxels else "fidopt")


@pytest.mark.parametrize(
    ("name", "shape"),
    [("d2_noint.nii.gz", (4, 5, 6, 1, 3)), ("d2_l2r_4d.nii.gz", (4, 5, 6, 3))],
)
def test_learn2reg_s_field_is_read_when_it_is_said_to_be_one(tmp_path, shared_case, name, shape):
    made = save(tmp_path / name, constant(shape))
    for path in (made, shared_case(name)):
        with pytest.raises(FieldError, match=r"its shape is \(4, 5, 6,.* with intent 0;.*--voxels"):
            read_field(path)
        field = read_field(path, convention="learn2reg")
        # 1, 2, 3 voxels of 2 mm along axes that run against x and y.
        assert [np.unique(component).tolist() for component in field.vectors] == [[-2], [-4], [6]]


def test_voxels_are_turned_by_the_fixed_image_s_grid_axis_by_axis(tmp_path, oblique, random):
    voxels = random.normal(size=(*oblique.shape[::-1], 3)).astype(np.float32)
    field = read_field(save(tmp_path / "v.nii.gz", voxels), convention="learn2reg", fixed=oblique)
    assert field.grid == oblique
    x, y, z = 3, 5, 2
    expected = oblique.direction_matrix @ (np.array(oblique.spacing) * voxels[x, y, z])
    assert np.allclose(field.vectors[:, z, y, x], expected, rtol=1e-6)
    # The same said in points: a voxel's centre goes to the continuous index the displacement names.
    moved = field.points([oblique.world((z, y, x))])
    assert np.allclose(oblique.index(moved)[0], np.array([z, y, x]) + voxels[x, y, z][::-1], atol=1e-5)


def test_voxels_on_another_grid_than_the_fixed_image_s_are_refused(tmp_path, oblique):
    path = save(tmp_path / "v.nii.gz", constant((4, 5, 6, 3)))
    with pytest.raises(FieldError, match=r"the field has \(4, 5, 6\) voxels, the fixed image \(11, 9, 7\)"):
        read_field(path, convention="learn2reg", fixed=oblique)


def test_a_field_that_says_it_is_in_the_world_is_not_read_as_voxels(tmp_path):
    path = save(tmp_path / "v.nii.gz", constant((4, 5, 6, 1, 3)), intent=1007)
    with pytest.raises(FieldError, match="leave --voxels out"):
        read_field(path, convention="learn2reg")


@pytest.mark.parametrize(
    ("shape", "intent"),
    [((4, 5, 6), 0), ((4, 5, 6, 1, 2), 1007), ((4, 5, 6, 2, 3), 1007), ((4, 5, 6, 1, 4), 1007), ((4, 5, 3), 1007)],
)
def test_what_has_not_a_field_s_shape_is_refused_with_its_shape(tmp_path, shape, intent):
    path = save(tmp_path / "v.nii.gz", np.zeros(shape, np.float32), intent=intent)
    with pytest.raises(FieldError, match=r"its shape is \(4, 5"):
        read_field(path)


def test_a_field_of_one_slice_keeps_three_axes_and_a_plane_s_has_two(tmp_path):
    slice_of_volume = save(tmp_path / "s.nii.gz", constant((4, 5, 1, 1, 3)), intent=1007)
    assert read_field(slice_of_volume).vectors.shape == (3, 1, 5, 4)
    plane = save(tmp_path / "p.nii.gz", constant((4, 5, 1, 1, 2), (1, 2)), intent=1007)
    assert read_field(plane).vectors.shape == (2, 5, 4)
    learn2reg = save(tmp_path / "l.nii.gz", constant((4, 5, 2), (1, 2)))
    assert read_field(learn2reg, convention="learn2reg").vectors.shape == (2, 5, 4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("ending", [".nii.gz", ".mha", ".nrrd", ".ome.zarr"])
def test_values_that_are_not_finite_are_counted_and_the_first_is_placed(tmp_path, oblique, value, ending):
    vectors = np.zeros((3, *oblique.shape), np.float32)
    vectors[1, 4, 5, 6] = vectors[2, 4, 5, 6] = vectors[0, 5, 0, 0] = value
    path = save_as(tmp_path / f"u{ending}", vectors, oblique)
    with pytest.raises(
        FieldError, match=r"u\..*: 2 voxels are not finite in the field, the first at index \(6, 5, 4\)"
    ):
        read_field(path)


def test_displacements_that_no_float32_holds_are_refused_like_those_that_are_not_finite(tmp_path, oblique):
    vectors = np.zeros((3, *oblique.shape))
    vectors[1, 4, 5, 6] = 1e300  # finite, and the error it makes is not: it would be left out of a mean
    path = save_as(tmp_path / "u.mha", vectors, oblique)
    with pytest.raises(FieldError, match=r"1 voxel is beyond what a float32 holds in the field, .* \(6, 5, 4\)"):
        read_field(path)
    # 3e38 voxels are a float32, and twice as many millimetres are none.
    voxels = save(tmp_path / "v.nii.gz", constant((4, 5, 6, 3), (0, 0, 3e38)))
    with pytest.raises(FieldError, match=r"120 voxels are not finite in the field"):
        read_field(voxels, convention="learn2reg")


def test_the_shared_fields_that_are_not_finite_are_refused(shared_case):
    for name in ("d9_nan.nii.gz", "d9_inf.nii.gz"):
        with pytest.raises(
            FieldError, match=rf"{name}: 1 voxel is not finite in the field, the first at index \(3, 3, 3\)"
        ):
            read_field(shared_case(name))


def save_as(path, vectors, grid):
    if path.name.endswith(".nii.gz"):
        write_field(path, vectors, grid)
    elif path.name.endswith(".ome.zarr"):
        write_image(path, image_of(vectors, grid), levels=False)
    else:
        image = sitk.GetImageFromArray(np.moveaxis(vectors, 0, -1), isVector=True)
        apply_grid_to_sitk(image, grid)
        sitk.WriteImage(image, str(path))
    return path


@pytest.mark.parametrize("ending", [".nii.gz", ".mha", ".nrrd", ".ome.zarr"])
def test_every_format_gives_the_same_field(tmp_path, oblique, oblique_plane, random, ending):
    for grid in (oblique, oblique_plane):
        vectors = random.normal(size=(grid.ndim, *grid.shape)).astype(np.float32)
        field = read_field(save_as(tmp_path / f"{grid.ndim}{ending}", vectors, grid))
        assert np.array_equal(np.asarray(field.vectors), vectors)
        assert field.grid.matches(grid)


def test_a_stored_field_too_large_for_memory_is_read_by_region(tmp_path, oblique, random, monkeypatch):
    vectors = random.normal(size=(3, *oblique.shape)).astype(np.float32)
    path = save_as(tmp_path / "u.ome.zarr", vectors, oblique)
    monkeypatch.setattr(fields, "LAZY_BYTES", 10)
    field = read_field(path)
    assert not isinstance(field.vectors, np.ndarray)
    points = oblique.world(random.uniform(0, 6, (20, 3)))
    monkeypatch.setattr(fields, "LAZY_BYTES", 1 << 30)
    assert np.array_equal(field.points(points), read_field(path).points(points))


def test_a_field_displaces_points_as_sitk_does(tmp_path, oblique, random):
    vectors = random.normal(size=(3, *oblique.shape))
    path = save_as(tmp_path / "u.mha", vectors, oblique)
    theirs = sitk.DisplacementFieldTransform(sitk.ReadImage(str(path), sitk.sitkVectorFloat64))
    points = oblique.world(random.uniform(-1, 9, (50, 3)))
    assert np.allclose(read_field(path).points(points), [theirs.TransformPoint(p) for p in points.tolist()], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "why"), [("u.bin", "a displacement field is"), ("u.nii.gz", "there is no such file"), ("u.mha", "no such")]
)
def test_what_is_not_there_or_no_field_is_refused(tmp_path, name, why):
    with pytest.raises(InputError, match=why):
        read_field(tmp_path / name)


def test_a_scalar_volume_is_no_field(tmp_path):
    sitk.WriteImage(sitk.Image(4, 5, 6, sitk.sitkFloat32), str(tmp_path / "u.mha"))
    with pytest.raises(FieldError, match=r"a field on .* voxels has 3 components"):
        read_field(tmp_path / "u.mha")


def test_the_organisers_zero_field_lies_on_the_fixed_mask_s_grid(shared_data):
    from blocks.image import grid_of
    from fidopt.images.readers import read_image

    folder = shared_data("lungct_points")
    grid = grid_of(read_image(folder / "masksTr" / "LungCT_0001_0000.nii.gz", labels=True))
    field = read_field(folder / "zero_field" / "disp_0001_0001.nii.gz", convention="learn2reg", fixed=grid)
    assert field.grid == grid
    assert grid.spacing == (1.75, 1.25, 1.75)
    assert not np.any(field.vectors)


def test_learn2reg_s_points_and_zero_field_give_the_organisers_error(shared_data):
    from blocks.image import grid_of
    from fidopt.images.landmarks import read_landmarks
    from fidopt.images.readers import read_image

    folder = shared_data("lungct_points")
    expected = {1: 20.180078, 2: 15.600577, 3: 8.141407}
    for case, mean in expected.items():
        grid: Grid = grid_of(read_image(folder / "masksTr" / f"LungCT_000{case}_0000.nii.gz", labels=True))
        name = folder / "zero_field" / f"disp_000{case}_000{case}.nii.gz"
        field = read_field(name, convention="learn2reg", fixed=grid)
        fixed, moving = (
            grid.world(read_landmarks(folder / "landmarksTr" / f"LungCT_000{case}_000{side}.csv", ndim=3)[:, ::-1])
            for side in (0, 1)
        )
        assert np.linalg.norm(field.points(fixed) - moving, axis=1).mean() == pytest.approx(mean, abs=1e-5)
