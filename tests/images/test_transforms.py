import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.transforms import Affine, BSpline, Composite, DisplacementField
from fidopt.errors import InputError, UsageError
from fidopt.images.elastix import files as elastix_files
from fidopt.images.geometry import apply_grid_to_sitk, grid_from_sitk
from fidopt.images.landmarks import read_landmark_pair
from fidopt.images.nifti import write_field
from fidopt.images.readers import read_image
from fidopt.images.transforms import read_transform, read_transforms

ENDINGS = [".tfm", ".txt", ".h5", ".mat"]


def linear_transforms():
    """Return one of each linear transform of SimpleITK, its parameters and centre drawn."""
    random = np.random.default_rng(3)
    made = [
        sitk.TranslationTransform(2),
        sitk.TranslationTransform(3),
        sitk.Euler2DTransform(),
        sitk.Euler3DTransform(),
        sitk.Similarity2DTransform(),
        sitk.Similarity3DTransform(),
        sitk.VersorTransform(),
        sitk.VersorRigid3DTransform(),
        sitk.ScaleTransform(2),
        sitk.ScaleTransform(3),
        sitk.ScaleVersor3DTransform(),
        sitk.ScaleSkewVersor3DTransform(),
        sitk.AffineTransform(2),
        sitk.AffineTransform(3),
    ]
    for transform in made:
        if hasattr(transform, "SetCenter"):
            transform.SetCenter(random.uniform(-100, 100, transform.GetDimension()).tolist())
        parameters = np.array(transform.GetParameters())
        transform.SetParameters((parameters + random.uniform(-0.2, 0.2, parameters.shape)).tolist())
    zyx = sitk.Euler3DTransform(made[3])
    zyx.SetComputeZYX(True)
    return [*made, zyx]


def assert_moves_as(transform, theirs, points, *, tolerance=1e-9):
    expected = np.array([theirs.TransformPoint([float(v) for v in point]) for point in points])
    assert np.allclose(transform.points(points), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("theirs", linear_transforms(), ids=lambda t: f"{t.GetName()}{t.GetDimension()}")
def test_every_linear_transform_of_itk_becomes_an_affine_that_moves_points_alike(tmp_path, random, theirs, ending):
    sitk.WriteTransform(theirs, str(tmp_path / f"t{ending}"))
    ours = read_transform(tmp_path / f"t{ending}")
    assert isinstance(ours, Affine)
    points = random.uniform(-300, 300, (20, theirs.GetDimension()))
    assert_moves_as(ours, sitk.ReadTransform(str(tmp_path / f"t{ending}")), points)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ndim", [2, 3])
def test_a_cubic_b_spline_keeps_lattice_and_coefficients(tmp_path, oblique, oblique_plane, random, ending, ndim):
    grid = oblique_plane if ndim == 2 else oblique
    domain = sitk.Image(grid.shape[::-1], sitk.sitkUInt8)
    apply_grid_to_sitk(domain, grid)
    theirs = sitk.BSplineTransformInitializer(domain, [3, 4, 5][:ndim], 3)
    theirs.SetParameters(random.normal(size=theirs.GetNumberOfParameters()).tolist())
    sitk.WriteTransform(theirs, str(tmp_path / f"b{ending}"))
    ours = read_transform(tmp_path / f"b{ending}")
    assert isinstance(ours, BSpline)
    assert ours.coefficients.ravel().tolist() == list(theirs.GetParameters())
    points = grid.world(random.uniform(-3, 18, (60, ndim)))
    assert_moves_as(ours, theirs, points)


@pytest.mark.parametrize("alone", [True, False])
def test_the_base_of_itk_s_matrices_is_an_affine_as_c3d_and_older_ants_write_it(tmp_path, random, alone):
    values = [*random.uniform(-1, 1, 9), *random.uniform(-9, 9, 3)]
    centre = random.uniform(-50, 50, 3)
    base = "Transform: MatrixOffsetTransformBase_double_3_3\nParameters: {}\nFixedParameters: {}\n"
    base = base.format(*(" ".join(map(repr, map(float, numbers))) for numbers in (values, centre)))
    before = "Transform: CompositeTransform_double_3_3\nTransform: TranslationTransform_double_3_3\n"
    before = "" if alone else f"{before}Parameters: 1 2 3\nFixedParameters:\n"
    (tmp_path / "base.txt").write_text(f"#Insight Transform File V1.0\n{before}{base}")
    theirs = sitk.AffineTransform(values[:9], values[9:], centre.tolist())
    if not alone:
        theirs = sitk.CompositeTransform([sitk.TranslationTransform(3, (1, 2, 3)), theirs])
    assert_moves_as(read_transform(tmp_path / "base.txt"), theirs, random.uniform(-99, 99, (9, 3)))


def test_a_b_spline_of_another_order_is_refused(tmp_path):
    sitk.WriteTransform(sitk.BSplineTransform(3, 2), str(tmp_path / "b.tfm"))
    with pytest.raises(InputError, match=r"b\.tfm: a B-spline of order 3 is expected, got order 2"):
        read_transform(tmp_path / "b.tfm")


@pytest.mark.parametrize("ending", [".tfm", ".h5"])
def test_of_a_composite_the_one_added_last_comes_first(tmp_path, random, ending):
    shift, turn = sitk.TranslationTransform(2, (10, 0)), sitk.Euler2DTransform((0, 0), np.pi / 2, (0, 0))
    theirs = sitk.CompositeTransform([shift, turn])
    sitk.WriteTransform(theirs, str(tmp_path / f"c{ending}"))
    ours = read_transform(tmp_path / f"c{ending}")
    assert isinstance(ours, Composite)
    # Turned first, then shifted: (1, 0) -> (0, 1) -> (10, 1).
    assert np.allclose(ours.points([[1.0, 0.0]]), [[10, 1]])
    assert_moves_as(ours, theirs, random.normal(size=(9, 2)))


def test_a_composite_in_a_composite_keeps_its_order(random):
    from fidopt.images.itk import transform_of

    inner = sitk.CompositeTransform([sitk.TranslationTransform(2, (10, 0)), sitk.Euler2DTransform((0, 0), 1, (0, 0))])
    outer = sitk.CompositeTransform([inner, sitk.ScaleTransform(2, (2, 3))])
    assert_moves_as(transform_of(outer, name="c"), outer, random.normal(size=(9, 2)))


@pytest.mark.parametrize("ending", [".tfm", ".h5"])
def test_a_displacement_field_in_a_transform_file_is_a_field(tmp_path, oblique, random, ending):
    image = sitk.GetImageFromArray(random.normal(size=(*oblique.shape, 3)), isVector=True)
    apply_grid_to_sitk(image, oblique)
    theirs = sitk.DisplacementFieldTransform(sitk.Image(image))
    sitk.WriteTransform(theirs, str(tmp_path / f"d{ending}"))
    ours = read_transform(tmp_path / f"d{ending}")
    assert isinstance(ours, DisplacementField)
    assert_moves_as(ours, theirs, oblique.world(random.uniform(0, 8, (30, 3))))


def test_a_field_s_own_file_is_a_transform_too(tmp_path, oblique, random):
    write_field(tmp_path / "u.nii.gz", random.normal(size=(3, *oblique.shape)), oblique)
    assert isinstance(read_transform(tmp_path / "u.nii.gz"), DisplacementField)


@pytest.mark.parametrize("theirs", linear_transforms()[2:8], ids=lambda t: t.GetName())
def test_a_linear_transform_is_inverted_when_asked(tmp_path, random, theirs):
    sitk.WriteTransform(theirs, str(tmp_path / "t.tfm"))
    points = random.uniform(-300, 300, (9, theirs.GetDimension()))
    there = read_transform(tmp_path / "t.tfm").points(points)
    assert np.allclose(read_transform(f"inverse:{tmp_path / 't.tfm'}").points(there), points, atol=1e-9)


def test_a_chain_of_linear_transforms_is_inverted_from_its_end(tmp_path, random):
    theirs = sitk.CompositeTransform([sitk.TranslationTransform(2, (10, 0)), sitk.Euler2DTransform((3, 4), 1, (5, 6))])
    sitk.WriteTransform(theirs, str(tmp_path / "c.tfm"))
    points = random.normal(size=(9, 2))
    there = read_transform(tmp_path / "c.tfm").points(points)
    assert np.allclose(read_transform(f"inverse:{tmp_path / 'c.tfm'}").points(there), points, atol=1e-12)


def test_what_has_no_inverse_is_not_inverted(tmp_path, oblique):
    write_field(tmp_path / "u.nii.gz", np.zeros((3, *oblique.shape)), oblique)
    with pytest.raises(UsageError, match="only a rigid or affine transform is inverted, got a DisplacementField"):
        read_transform(f"inverse:{tmp_path / 'u.nii.gz'}")
    sitk.WriteTransform(sitk.AffineTransform([1, 0, 0, 0], [0, 0]), str(tmp_path / "flat.tfm"))
    with pytest.raises(InputError, match=r"inverse:.*flat\.tfm: .*singular"):
        read_transform(f"inverse:{tmp_path / 'flat.tfm'}")


def test_the_first_of_several_is_applied_first(tmp_path):
    sitk.WriteTransform(sitk.TranslationTransform(2, (10, 0)), str(tmp_path / "shift.tfm"))
    sitk.WriteTransform(sitk.ScaleTransform(2, (2, 2)), str(tmp_path / "scale.tfm"))
    shift_first = read_transforms([tmp_path / "shift.tfm", tmp_path / "scale.tfm"])
    assert shift_first.points([[1.0, 1.0]]).tolist() == [[22, 2]]
    scale_first = read_transforms([tmp_path / "scale.tfm", tmp_path / "shift.tfm"])
    assert scale_first.points([[1.0, 1.0]]).tolist() == [[12, 2]]


def test_transforms_of_two_and_three_dimensions_do_not_mix(tmp_path):
    for ndim in (2, 3):
        sitk.WriteTransform(sitk.TranslationTransform(ndim), str(tmp_path / f"{ndim}.tfm"))
    with pytest.raises(InputError, match=r"2\.tfm: 2D, .*3\.tfm: 3D"):
        read_transforms([tmp_path / "2.tfm", tmp_path / "3.tfm"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.txt", b"hello\n"),
        ("t.tfm", b""),
        ("t.tfm", b"#Insight Transform File V1.0\n#Transform 0\nTransform: NoTransform_double_3_3\nParameters: 1\n"),
        ("t.h5", b"no hdf5"),
        ("t.mat", b"no matlab"),
        ("t.xyz", b""),
        ("t.nii.gz", b"no nifti"),
        ("t.txt", b"\xff\xfe\x00"),
    ],
)
def test_a_file_that_is_no_transform_is_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"t\.\w+.*: "):
        read_transform(tmp_path / name)


def test_a_transform_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_transform(tmp_path / "t.tfm")


# elastix


def parameters(**changes):
    """Return the text of an elastix parameter file of an affine transform in 2D, with changes."""
    keys = {
        "Transform": '"AffineTransform"',
        "TransformParameters": "1.25 0 0 1 3 4",
        "CenterOfRotationPoint": "8 0",
        "FixedImageDimension": "2",
        "MovingImageDimension": "2",
        "InitialTransformParameterFileName": '"NoInitialTransform"',
        "HowToCombineTransforms": '"Compose"',
    }
    keys |= {key: str(value) for key, value in changes.items()}
    return "// a comment\n" + "".join(f"({key} {value})\n" for key, value in keys.items() if value)


def save(path, **changes):
    path.write_text(parameters(**changes))
    return path


def test_an_elastix_affine_turns_about_its_centre(tmp_path):
    # 1.25 (10 - 8) + 8 + 3 = 13.5
    assert read_transform(save(tmp_path / "t.txt")).points([[10.0, 1.0]]).tolist() == [[13.5, 5]]


@pytest.mark.parametrize(
    ("kind", "ndim", "values", "theirs"),
    [
        ("Translation", 3, "1 2 3", sitk.TranslationTransform(3)),
        ("Euler", 2, "0.3 1 2", sitk.Euler2DTransform()),
        ("Euler", 3, "0.3 -0.2 0.1 1 2 3", sitk.Euler3DTransform()),
        ("Similarity", 2, "1.1 0.3 1 2", sitk.Similarity2DTransform()),
        ("Similarity", 3, "0.1 -0.2 0.3 1 2 3 1.2", sitk.Similarity3DTransform()),
    ],
)
def test_elastix_orders_parameters_as_itk(tmp_path, random, kind, ndim, values, theirs):
    centre = "5 6 7" if ndim == 3 else "5 6"
    path = save(
        tmp_path / "t.txt",
        Transform=f'"{kind}Transform"',
        TransformParameters=values,
        CenterOfRotationPoint="" if kind == "Translation" else centre,
        FixedImageDimension=ndim,
        MovingImageDimension=ndim,
    )
    if kind != "Translation":
        theirs.SetCenter([float(v) for v in centre.split()])
    theirs.SetParameters([float(v) for v in values.split()])
    points = random.uniform(-50, 50, (9, ndim))
    assert_moves_as(read_transform(path), theirs, points)
    if kind == "Euler" and ndim == 3:
        path.write_text(path.read_text() + '(ComputeZYX "true")\n')
        theirs.SetComputeZYX(True)
        assert_moves_as(read_transform(path), theirs, points)


def test_an_elastix_b_spline_s_lattice_is_placed_by_index_and_direction(tmp_path, random):
    # A quarter turn: elastix writes the direction column by column, so (0, 1) is where the first axis points.
    path = save(
        tmp_path / "t.txt",
        Transform='"BSplineTransform"',
        GridSize="5 6",
        GridIndex="1 0",
        GridSpacing="2 3",
        GridOrigin="10 20",
        GridDirection="0 1 -1 0",
        TransformParameters=" ".join(["1"] * 30 + ["-2"] * 30),
        CenterOfRotationPoint="",
    )
    transform = read_transform(path)
    assert isinstance(transform, BSpline)
    assert transform.grid.direction == (0, -1, 1, 0)
    assert transform.grid.origin == (10, 22)
    assert transform.coefficients.shape == (2, 6, 5)
    middle = transform.grid.world((2.5, 2.0))
    assert np.allclose(transform.points([middle]) - middle, [[1, -2]])


@pytest.mark.parametrize(
    "initial", ["first.txt", "/some/where/else/first.txt", r"C:\results\first.txt", "sub/first.txt"]
)
@pytest.mark.parametrize("key", ["InitialTransformParameterFileName", "InitialTransformParametersFileName"])
def test_an_initial_transform_is_found_beside_the_file_and_applied_first(tmp_path, initial, key):
    (tmp_path / "sub").mkdir()
    save(tmp_path / "first.txt")
    save(tmp_path / "sub" / "first.txt")
    changes = {"InitialTransformParameterFileName": "", key: f'"{initial}"'}
    path = save(tmp_path / "t.txt", TransformParameters="2 0 0 2 0 0", CenterOfRotationPoint="0 0", **changes)
    # 13.5 and 5 from the first, doubled.
    assert read_transform(path).points([[10.0, 1.0]]).tolist() == [[27, 10]]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Transform": '"SplineKernelTransform"'}, "SplineKernelTransform is not read"),
        ({"TransformParameters": "1 2 3"}, "TransformParameters must be 6 numbers, got 3"),
        ({"TransformParameters": "1 0 0 one 3 4"}, "TransformParameters must be numbers"),
        ({"TransformParameters": ""}, "TransformParameters is missing"),
        ({"CenterOfRotationPoint": ""}, "CenterOfRotationPoint is missing"),
        ({"CenterOfRotationPoint": "1"}, "CenterOfRotationPoint must be 2 finite numbers, got 1"),
        ({"FixedImageDimension": "4"}, "must both be 2 or 3"),
        ({"MovingImageDimension": "3"}, "must both be 2 or 3, got 2 and 3"),
        ({"InitialTransformParameterFileName": '"gone.txt"'}, "gone.txt is neither there nor beside it"),
        ({"InitialTransformParameterFileName": '"t.txt"'}, "round in a circle"),
        ({"InitialTransformParameterFileName": '"t.txt"', "HowToCombineTransforms": '"Add"'}, "must be Compose"),
        ({"Transform": '"BSplineTransform"', "BSplineTransformSplineOrder": "2"}, "SplineOrder must be 3, got 2"),
        ({"Transform": '"BSplineTransform"', "UseCyclicTransform": '"true"'}, "UseCyclicTransform must be false"),
        ({"Transform": '"BSplineTransform"'}, "GridSize is missing"),
    ],
)
def test_an_elastix_file_that_is_not_understood_is_refused(tmp_path, changes, why):
    with pytest.raises(InputError, match=why):
        read_transform(save(tmp_path / "t.txt", **changes))


def test_adding_to_no_initial_transform_is_adding_nothing(tmp_path):
    path = save(tmp_path / "t.txt", HowToCombineTransforms='"Add"')
    assert isinstance(read_transform(path), Affine)


def error_over_the_points_inside(folder, transform):
    fixed, moving = read_landmark_pair(folder / "baseline_landmarks.txt", folder / "followup_landmarks.txt", ndim=3)
    images = (folder / "3DCT_lung_baseline.mha", folder / "3DCT_lung_followup.mha")
    grids: list[Grid] = [grid_from_sitk(sitk.ReadImage(str(image))) for image in images]
    inside = grids[0].inside(fixed) & grids[1].inside(moving)
    assert inside.sum() == 51
    moved = fixed if transform is None else transform.points(fixed)
    return np.linalg.norm(moved - moving, axis=1)[inside]


def test_elastix_s_stored_results_on_the_lung_give_their_known_errors(shared_data):
    folder = shared_data("lung_ct")
    unregistered = error_over_the_points_inside(folder, None)
    assert unregistered.mean() == pytest.approx(35.26895, abs=5e-6)
    affine = error_over_the_points_inside(folder, read_transform(folder / "stored_affine.txt"))
    assert affine.mean() == pytest.approx(5.18472, abs=5e-6)
    spline = error_over_the_points_inside(folder, read_transform(folder / "stored_bspline.txt"))
    assert spline.mean() == pytest.approx(1.58758, abs=5e-4)
    assert np.median(spline) == pytest.approx(1.10047, abs=5e-4)
    assert read_image(folder / "3DCT_lung_baseline.mha").shape == (129, 157, 115)


def test_an_hdf5_file_cut_short_is_refused_in_one_line(tmp_path, capfd):
    sitk.WriteTransform(sitk.TranslationTransform(3, (1, 2, 3)), str(tmp_path / "t.h5"))
    content = (tmp_path / "t.h5").read_bytes()
    (tmp_path / "t.h5").write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(InputError, match=r"t\.h5: an ITK transform is expected in the HDF5 file, which cannot be read"):
        read_transform(tmp_path / "t.h5")
    assert capfd.readouterr().err == ""


def test_a_far_translation_keeps_its_matrix(tmp_path):
    sitk.WriteTransform(sitk.TranslationTransform(3, (1e17, 0.1, 0.3)), str(tmp_path / "t.tfm"))
    read = read_transform(tmp_path / "t.tfm")
    assert read.matrix == (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    assert read.offset == (1e17, 0.1, 0.3)


def test_a_transform_of_no_known_kind_is_named(tmp_path):
    (tmp_path / "t.tfm").write_text(
        "#Insight Transform File V1.0\nTransform: FooTransform_double_3_3\nParameters: 1\nFixedParameters: 0\n"
    )
    with pytest.raises(InputError, match="FooTransform_double_3_3"):
        read_transform(tmp_path / "t.tfm")


@pytest.mark.parametrize(
    ("kind", "parameters", "fixed", "why"),
    [
        ("AffineTransform_double_2_2", "1e308 0 0 1 0 0", "1e308 0", "finite numbers"),
        ("BSplineTransform_double_2_3", "0 " * 60, "5.5 6 0 0 1 1 1 0 0 1", "sizes, whole numbers, got 5.5 6"),
        ("DisplacementFieldTransform_double_2_2", "0 " * 24, "3 4.25 0 0 1 1 1 0 0 1", "whole numbers, got 3 4.25"),
    ],
)
def test_numbers_that_make_no_transform_are_refused(tmp_path, kind, parameters, fixed, why):
    lines = ("#Insight Transform File V1.0", f"Transform: {kind}", f"Parameters: {parameters}")
    (tmp_path / "t.tfm").write_text("\n".join((*lines, f"FixedParameters: {fixed}\n")))
    with pytest.raises(InputError, match=why):
        read_transform(tmp_path / "t.tfm")


@pytest.mark.parametrize("name", ["inverse:", "elastix:", "inverse:ants: "])
def test_a_convention_without_a_file_is_refused(name):
    with pytest.raises(UsageError, match=rf"a file is expected after '{name}'"):
        read_transform(name)


def test_a_parameter_file_of_elastix_may_name_a_file_of_itk_s(tmp_path, random):
    theirs = sitk.AffineTransform([1.1, 0.1, -0.1, 0.9], [4.0, -3], [10.0, 20])
    sitk.WriteTransform(theirs, str(tmp_path / "TransformParameters.0.h5"))
    text = '(Transform "File")\n(TransformFileName "out/TransformParameters.0.h5")\n(FixedImageDimension 2)\n'
    (tmp_path / "TransformParameters.0.txt").write_text(text)
    ours = read_transform(tmp_path / "TransformParameters.0.txt")
    assert_moves_as(ours, theirs, random.uniform(-50, 50, (9, 2)))
    names = [file.name for file in elastix_files(tmp_path / "TransformParameters.0.txt")]
    assert names == ["TransformParameters.0.txt", "TransformParameters.0.h5"]
    (tmp_path / "TransformParameters.0.h5").unlink()
    with pytest.raises(
        InputError, match=r"its transform out/TransformParameters\.0\.h5 is neither there nor beside it"
    ):
        read_transform(tmp_path / "TransformParameters.0.txt")
