"""Files made as each tool writes them, read into the contract's field; the real tools' own are in test_tools.py."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.transforms import Affine, BSpline, Composite, DisplacementField
from fidopt.errors import FieldError, InputError, UsageError
from fidopt.images.conventions import CONVENTIONS, Pair, convention, known_as
from fidopt.images.fields import read_field
from fidopt.images.nifti import write_field
from fidopt.images.transforms import named, read_transform

RAS = np.diag([-1.0, -1.0, 1.0, 1.0])


@pytest.fixture
def motion(oblique, random) -> np.ndarray:
    """Return displacements (3, z, y, x) of the oblique grid, along LPS."""
    return random.uniform(-4, 4, (3, *oblique.shape)).astype(np.float32)


def places(grid: Grid) -> np.ndarray:
    """Return the world points (ndim, [z,] y, x) of a grid's voxels."""
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"), axis=-1)
    return np.moveaxis(grid.world(index), -1, 0)


def ras(vectors: np.ndarray) -> np.ndarray:
    return np.concatenate([-vectors[:2], vectors[2:]])


def niftyreg(path, vectors, grid, *, kind):
    """Write components ([z,] y, x) with NiftyReg's header: intent 1007 under its name, the kind as first parameter."""
    write_field(path, vectors, grid)
    image = nibabel.load(path)
    values = image.get_fdata().astype(np.float32)
    image.header.set_intent(1007, name="NREG_TRANS")
    image.header["intent_p1"] = kind
    nibabel.save(nibabel.Nifti1Image(values, None, image.header), path)
    return path


def array(path, steps):
    """Write voxel displacements (components, z, y, x) as an array with its axes x, y, z and the components last."""
    nibabel.save(nibabel.Nifti1Image(np.ascontiguousarray(steps.T), np.eye(4)), path)
    return path


def steps_of(motion, grid):
    """Return world displacements (3, z, y, x) in voxels along x, y, z."""
    return np.tensordot(grid.inverse_matrix, motion.astype(np.float64), axes=1)


@pytest.mark.parametrize(("kind", "name"), [(0, "niftyreg-deformation"), (1, "niftyreg-displacement")])
def test_niftyreg_s_fields_are_read_as_their_headers_say(tmp_path, oblique, motion, kind, name):
    numbers = ras(motion if kind else places(oblique) + motion)
    path = niftyreg(tmp_path / "u.nii.gz", numbers, oblique, kind=kind)
    for asked in ("niftyreg", name):
        field = read_field(path, convention=asked)
        assert field.vectors.dtype == np.float32
        np.testing.assert_allclose(field.vectors, motion, atol=5e-5)
        assert field.grid.matches(oblique)
    other = {"niftyreg-deformation", "niftyreg-displacement"} - {name}
    for asked in ("fidopt", "ants", *other):
        with pytest.raises(FieldError, match=r"its header says that it is a .* field of NiftyReg's.*niftyreg:FILE"):
            read_field(path, convention=asked)


def test_a_plane_of_niftyreg_s_has_x_and_y_negated(tmp_path, oblique_plane, random):
    motion = random.uniform(-4, 4, (2, *oblique_plane.shape)).astype(np.float32)
    path = niftyreg(tmp_path / "u.nii.gz", -motion, oblique_plane, kind=1)
    np.testing.assert_array_equal(read_field(path, convention="niftyreg").vectors, motion)


def test_niftyreg_s_field_that_another_program_wrote_again_is_read_by_name(tmp_path, oblique, motion):
    write_field(tmp_path / "u.nii.gz", ras(motion), oblique)
    with pytest.raises(FieldError, match="does not say that NiftyReg wrote it; name what it holds"):
        read_field(tmp_path / "u.nii.gz", convention="niftyreg")
    found = read_field(tmp_path / "u.nii.gz", convention="niftyreg-displacement")
    np.testing.assert_array_equal(found.vectors, motion)


def test_a_spline_of_niftyreg_s_moves_as_one_of_displacements_also_on_its_edge(tmp_path, oblique, random):
    lattice = Grid.of((7, 8, 9), spacing=(3.5, 6.5, 14.5), origin=oblique.origin, direction=oblique.direction)
    moved = random.uniform(-3, 3, (3, *lattice.shape))
    path = niftyreg(tmp_path / "cpp.nii", ras(places(lattice) + moved), lattice, kind=2)
    spline = read_transform(f"niftyreg:{path}")
    points = lattice.world(random.uniform(1, 4.9, (40, 3)))
    np.testing.assert_allclose(spline.points(points), BSpline(lattice, moved).points(points), atol=1e-4)
    edge = lattice.world(np.array([1 - 1e-7, 1 - 1e-7, 2]))[None]
    inside = lattice.world(np.array([1 + 1e-7, 1 + 1e-7, 2]))[None]
    np.testing.assert_allclose(spline.points(edge), spline.points(inside), atol=1e-4)
    with pytest.raises(FieldError, match="a cubic spline of NiftyReg's is not read as a field"):
        read_field(path, convention="niftyreg")


@pytest.mark.parametrize("kind", [3, 4, 5, 6])
def test_velocities_and_linear_splines_of_niftyreg_s_are_refused_by_name(tmp_path, oblique, motion, kind):
    path = niftyreg(tmp_path / "v.nii.gz", motion, oblique, kind=kind)
    with pytest.raises(FieldError, match=r"(velocities|linear spline) of NiftyReg's is not read as a field"):
        read_transform(f"niftyreg:{path}")


@pytest.mark.parametrize("tool", ["greedy", "niftyreg"])
def test_a_matrix_in_text_goes_along_ras(tmp_path, random, tool):
    matrix = np.eye(4)
    matrix[:3] += random.uniform(-0.2, 0.2, (3, 4)) * [1, 1, 1, 50]
    path = tmp_path / ("affine.mat" if tool == "greedy" else "affine.txt")
    path.write_text("\n".join(" ".join(f"{v:.17g}" for v in row) for row in matrix) + "\n")
    points = random.uniform(-99, 99, (9, 3))
    moved = (np.c_[points, np.ones(9)] @ (RAS @ matrix @ RAS).T)[:, :3]
    found = read_transform(f"{tool}:{path}")
    assert isinstance(found, Affine)
    np.testing.assert_allclose(found.points(points), moved, atol=1e-10)
    np.testing.assert_allclose(read_transform(f"inverse:{tool}:{path}").points(moved), points, atol=1e-9)
    with pytest.raises(InputError, match=r"a matrix in text does not say whose axes .* greedy:FILE or niftyreg:FILE"):
        read_transform(path)


def test_a_matrix_of_a_plane_may_have_three_rows_or_four(tmp_path, oblique_plane):
    flat = np.array([[0.9, 0.1, 5.0], [-0.2, 1.1, -3.0], [0, 0, 1]])
    whole = np.array([[0.9, 0.1, 0, 5.0], [-0.2, 1.1, 0, -3.0], [0, 0, 1, 0], [0, 0, 0, 1]])
    for name, matrix in (("flat.mat", flat), ("whole.txt", whole)):
        np.savetxt(tmp_path / name, matrix)
        found = read_transform(f"niftyreg:{tmp_path / name}", fixed=oblique_plane)
        assert found.ndim == 2
        np.testing.assert_allclose(found.points([[10.0, 20.0]]), [[0.9 * 10 + 0.1 * 20 - 5, -0.2 * 10 + 1.1 * 20 + 3]])


@pytest.mark.parametrize("text", ["1 0 0 0\n0 1 0 0\n0 0 1 0\n", "a b", "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 1 1\n", ""])
def test_what_is_no_affine_matrix_is_refused(tmp_path, text):
    (tmp_path / "m.mat").write_text(text)
    with pytest.raises(InputError, match=r"m\.mat: .*affine matrix"):
        read_transform(f"greedy:{tmp_path / 'm.mat'}")


@pytest.mark.parametrize("name", ["learn2reg", "convexadam"])
def test_arrays_of_voxels_lie_on_the_fixed_image_s_grid(tmp_path, oblique, motion, name):
    steps = steps_of(motion, oblique).astype(np.float32)
    np.savez_compressed(tmp_path / "u.npz", steps.transpose(0, 3, 2, 1))
    np.save(tmp_path / "u.npy", steps.T)
    for path in (array(tmp_path / "u.nii.gz", steps), tmp_path / "u.npz", tmp_path / "u.npy"):
        field = read_field(path, convention=name, fixed=oblique)
        np.testing.assert_allclose(field.vectors, motion, atol=1e-4)
        assert field.grid == oblique


def test_learn2reg_s_arrays_of_half_the_resolution_are_doubled_as_the_organisers_double_them(tmp_path, random):
    from scipy.ndimage import zoom

    grid = Grid.of((8, 10, 12), spacing=(1.75, 1.25, 1.5), direction=[0, 1, 0, -1, 0, 0, 0, 0, 1])
    half = random.normal(size=(3, 6, 5, 4)).astype(np.float16)
    np.savez(tmp_path / "u.npz", half)
    whole = np.stack([zoom(part.astype(np.float32), 2, order=2) for part in half])
    field = read_field(tmp_path / "u.npz", convention="learn2reg", fixed=grid)
    expected = np.tensordot(grid.matrix, whole.transpose(0, 3, 2, 1), axes=1)
    np.testing.assert_allclose(field.vectors, expected, rtol=1e-5, atol=1e-6)
    odd = Grid.of((9, 10, 12))
    with pytest.raises(FieldError, match="twice which is not"):
        read_field(tmp_path / "u.npz", convention="learn2reg", fixed=odd)


def test_convexadam_s_halves_lie_amid_two_voxels_as_torch_has_them(tmp_path, random):
    torch = pytest.importorskip("torch")
    whole = random.normal(size=(3, 12, 10, 8)).astype(np.float32)
    shrink = {"mode": "trilinear", "align_corners": False}
    half = torch.nn.functional.interpolate(torch.from_numpy(whole)[None], scale_factor=0.5, **shrink)
    np.savez(tmp_path / "u.npz", half[0].numpy())
    grid = Grid.of((8, 10, 12), spacing=(2.0, 3.0, 4.0))
    expected = torch.nn.functional.interpolate(half, size=(12, 10, 8), **shrink)[0].numpy().transpose(0, 3, 2, 1)
    field = read_field(tmp_path / "u.npz", convention="convexadam", fixed=grid)
    np.testing.assert_allclose(field.vectors, expected * np.reshape(grid.spacing, (3, 1, 1, 1)), atol=1e-5)


def test_of_dipy_s_two_fields_the_one_that_pulls_is_read(tmp_path, oblique, motion):
    both = np.stack([-ras(motion).T, ras(motion).T], axis=-1)
    # Its header holds the inverse of an image's matrix, which is no geometry of an image's.
    nibabel.save(nibabel.Nifti1Image(both, np.linalg.inv(np.diag([2.0, 3, 4, 1]))), tmp_path / "mapping.nii.gz")
    np.save(tmp_path / "forward.npy", ras(motion).T)
    for path in (tmp_path / "mapping.nii.gz", tmp_path / "forward.npy"):
        field = read_field(path, convention="dipy", fixed=oblique)
        np.testing.assert_array_equal(field.vectors, motion)
        assert field.grid == oblique
    with pytest.raises(InputError, match="holds no image's geometry"):
        read_field(tmp_path / "mapping.nii.gz", convention="dipy")


def test_konfai_s_transform_is_the_field_it_was_written_from(tmp_path, oblique, motion):
    pytest.importorskip("konfai")
    from konfai.utils.dataset.attribute import Attribute
    from konfai.utils.dataset.itk_transform_file import ItkTransformFile

    said = Attribute()
    said["Origin"], said["Spacing"] = np.array(oblique.origin), np.array(oblique.spacing)
    said["Direction"] = np.array(oblique.direction)
    with ItkTransformFile.open(str(tmp_path / "P000"), read=False, file_format="itktransform") as file:
        file.data_to_file("Transform", motion, said)
    found = read_transform(f"konfai:{tmp_path / 'P000' / 'Transform.h5'}")
    assert isinstance(found, DisplacementField)
    np.testing.assert_allclose(found.vectors, motion, atol=1e-6)
    assert found.grid.matches(oblique)


def test_ants_affine_in_single_precision_and_its_composite_are_read_as_itk_reads_them(tmp_path, oblique, motion):
    affine = sitk.AffineTransform([1.1, 0.1, 0, -0.1, 0.9, 0, 0.05, 0, 1.0], [4.0, -3, 2], [10.0, 20, 30])
    image = sitk.GetImageFromArray(np.moveaxis(motion.astype(np.float64), 0, -1), isVector=True)
    from fidopt.images.geometry import apply_grid_to_sitk

    apply_grid_to_sitk(image, oblique)
    write_field(tmp_path / "a_1Warp.nii.gz", motion, oblique)
    sitk.WriteTransform(affine, str(tmp_path / "a_0GenericAffine.mat"))
    theirs = sitk.CompositeTransform([affine, sitk.DisplacementFieldTransform(image)])
    sitk.WriteTransform(theirs, str(tmp_path / "a_Composite.h5"))
    points = oblique.world(np.random.default_rng(1).uniform(0, 6, (20, 3)))
    expected = [theirs.TransformPoint(p) for p in points.tolist()]
    parts = [read_transform(f"ants:{tmp_path / name}") for name in ("a_1Warp.nii.gz", "a_0GenericAffine.mat")]
    for found in (Composite(tuple(parts)), read_transform(f"ants:{tmp_path / 'a_Composite.h5'}")):
        np.testing.assert_allclose(found.points(points), expected, atol=1e-4)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"\x93NUMPY\x01\x00"])
@pytest.mark.parametrize("ending", [".npz", ".npy"])
def test_an_array_that_was_cut_short_is_refused(tmp_path, oblique, content, ending):
    (tmp_path / f"u{ending}").write_bytes(content)
    with pytest.raises(InputError, match=r"u\.np.: an array of NumPy's is expected, which cannot be read"):
        read_field(tmp_path / f"u{ending}", convention="learn2reg", fixed=oblique)


def test_objects_several_arrays_and_other_shapes_are_refused(tmp_path, oblique):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=np.zeros(3), b=np.zeros(3))
    np.save(tmp_path / "shape.npy", np.zeros((3, 4, 5, 6)))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    for name, said in (
        ("objects.npy", "holds objects"),
        ("two.npz", "there is a, b"),
        ("shape.npy", "neither fits"),
        ("text.npy", "<U1"),
        ("none.npy", "there is no such file"),
    ):
        with pytest.raises(InputError, match=said):
            read_field(tmp_path / name, convention="learn2reg", fixed=oblique)
    np.save(tmp_path / "u.npy", np.zeros((3, *oblique.shape[::-1])))
    with pytest.raises(InputError, match="beside a fixed image alone"):
        read_field(tmp_path / "u.npy", convention="learn2reg")


def test_a_convention_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match=r"no convention 'ant' \(did you mean 'ants'\?\); there are: fidopt, ants"):
        convention("ant")


def test_a_tool_before_a_colon_names_its_convention_and_anything_else_is_a_file():
    assert named("inverse:greedy:a.mat").convention is CONVENTIONS["greedy"]
    assert named("inverse:greedy:a.mat").inverse
    assert named("greedy:a.mat").file == "a.mat"
    for name in ("s3://bucket/u.ome.zarr", "file:///u.nii.gz", "C:u.nii", "u.nii.gz"):
        assert (named(name).file, named(name).convention.name) == (name, "fidopt")


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_table_turns_numbers_into_displacements_and_back(ndim, oblique, oblique_plane, random):
    grid = oblique if ndim == 3 else oblique_plane
    points = grid.world(random.uniform(0, 6, (20, ndim)))
    motion = random.uniform(-4, 4, (20, ndim))
    for one in CONVENTIONS.values():
        reading = one.reading(ndim)
        pair = Pair(grid, grid, points)
        np.testing.assert_allclose(reading.displacements(reading.numbers(motion, pair), pair), motion, atol=1e-9)
        assert (one.name in known_as(reading)) == (reading != CONVENTIONS["fidopt"].reading(ndim) and not one.by_header)
