"""A stored alignment applied in the headers alone, and what is refused."""

import json

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
from hypothesis import given
from hypothesis import strategies as st

from blocks import Grid, image_of
from blocks.image import grid_of
from fidopt.alignment.headers import aligned, read_alignment, stored_alignment
from fidopt.alignment.motions import Motion
from fidopt.building.contents import Contents, aligned_contents
from fidopt.errors import InputError, MissingError
from tests.alignment.phantom import turned
from tests.corpus.conftest import make, pair  # noqa: F401 - fixtures
from tests.strategies import QUICK

ANGLE = st.floats(-0.6, 0.6)
PLACE = st.floats(-1500, 1500)


def triple(of):
    return st.tuples(of, of, of)


@QUICK
@given(triple(ANGLE), triple(PLACE), triple(PLACE), st.floats(-180, 180), triple(st.floats(0.2, 8.0)))
def test_t_of_x_the_moved_header_and_the_landmarks_agree_to_a_billionth_on_oblique_images(
    angles, vector, centre, degrees, spacing
):
    transform = Motion(vector, angles, centre).affine()
    grid = Grid.of(
        (30, 41, 27), spacing=spacing, origin=(-153.8, -150.3, -1434.5), direction=turned(3, degrees).ravel()
    )
    random = np.random.default_rng(4)
    index = random.uniform(-0.5, 27, (50, 3))
    image = image_of(random.integers(0, 9, grid.shape).astype(np.int16), grid)
    contents = Contents(
        {
            "fixed": image,
            "moving": image,
            "moving_mask": image,
            "truth/moving_labels_x": image,
            "truth/moving_ignore": image,
        },
        {"truth/fixed_landmarks": grid.world(index), "truth/moving_landmarks": grid.world(index)},
    )
    moved = aligned_contents(contents, transform)
    new = grid_of(moved.images["moving"])
    # The voxel that lay at y = T(x) lies at x now, and so does the landmark that was on it.
    assert np.abs(transform.points(new.world(index)) - grid.world(index)).max() < 1e-9
    assert np.abs(moved.points["truth/moving_landmarks"] - new.world(index)).max() < 1e-9
    for entry in ("moving", "moving_mask", "truth/moving_labels_x", "truth/moving_ignore"):
        assert grid_of(moved.images[entry]) == new
        assert np.shares_memory(moved.images[entry].values, image.values)
        assert (new.shape, new.spacing) == (grid.shape, grid.spacing)
    assert moved.images["fixed"] is image
    np.testing.assert_array_equal(moved.points["truth/fixed_landmarks"], grid.world(index))


def test_a_moved_header_shows_what_itk_resamples_through_the_transform():
    random = np.random.default_rng(6)
    motion = Motion((4.0, -3.0, 2.5), (0.2, -0.1, 0.3), (5.0, 6.0, 7.0))
    transform = sitk.Euler3DTransform()
    transform.SetCenter(motion.centre)
    transform.SetParameters((*motion.angles, *motion.translation))
    image = sitk.GetImageFromArray(random.normal(size=(12, 14, 16)))
    image.SetSpacing((1.5, 2.0, 2.5))
    image.SetDirection(turned(3, 20).ravel().tolist())
    grid = Grid.of((12, 14, 16), spacing=image.GetSpacing(), direction=image.GetDirection())
    moved = aligned(grid, motion.affine())
    header = sitk.Image(image)
    header.SetOrigin(moved.origin)
    header.SetDirection(moved.direction)
    fixed = sitk.Image([20, 20, 20], sitk.sitkFloat64)
    fixed.SetOrigin((-4.0, -4.0, -4.0))
    through = sitk.Resample(image, fixed, transform, sitk.sitkLinear, -9.0)
    plain = sitk.Resample(header, fixed, sitk.Transform(), sitk.sitkLinear, -9.0)
    assert np.abs(sitk.GetArrayFromImage(through) - sitk.GetArrayFromImage(plain)).max() < 1e-9


@pytest.fixture
def dataset(make, pair):  # noqa: F811 - a fixture
    """Return a function that gives a dataset of two cases with an alignment, and where its transforms lie."""

    def _dataset(**alignment):
        described, roots = make(pair, alignment=alignment, truth={"grade": "expert", "by": "t", "checked": "t",
                                                                  "limits": "t", "labels": {"3": "x"}})  # fmt: skip
        return described, roots, roots.share[0] / "datasets" / "tiny" / "alignment" / "one.tfm"

    return _dataset


def store(path, text, **record):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if record:
        path.with_suffix(".json").write_text(json.dumps(record))


def test_a_pair_taken_as_delivered_needs_no_transform_and_ignores_one(dataset):
    described, roots, path = dataset(mode="as-delivered")
    store(path, "nonsense")
    assert stored_alignment(described, "one", roots) is None


def test_a_transform_that_is_missing_is_told_with_the_command_that_makes_it(dataset):
    described, roots, path = dataset(mode="elastix-rigid")
    with pytest.raises(MissingError, match=r"one\.tfm is missing: .* \(elastix-rigid\) .*: fidopt align tiny one$"):
        stored_alignment(described, "one", roots)
    store(path, Motion((1.0, 2.0, 3.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.0)).text())
    found = stored_alignment(described, "one", roots)
    assert found.how == "elastix-rigid"
    assert found.digest.startswith("sha256:")


@pytest.mark.parametrize(
    "transform",
    [sitk.ScaleTransform(3, (1.01, 1.0, 1.0)), sitk.AffineTransform(np.diag([1.0, 1.0, -1.0]).ravel(), (0, 0, 0))],
)
def test_what_scales_or_mirrors_is_refused(transform, tmp_path):
    path = tmp_path / "case.tfm"
    sitk.WriteTransform(transform, str(path))
    with pytest.raises(InputError, match="a rotation and a translation and no more"):
        read_alignment(path)


def test_a_mode_of_translations_refuses_a_rotation_and_a_transform_of_another_mode(dataset):
    described, roots, path = dataset(mode="elastix-translation")
    store(path, Motion((1.0, 2.0, 3.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.0)).text())
    with pytest.raises(InputError, match="elastix-translation is a translation, and this turns the image"):
        stored_alignment(described, "one", roots)
    made = {"mode": "image-centres", "made_from": "sha256:" + "0" * 64, "elastix": None, "runs": [], "winner": "x"}
    store(path, Motion((1.0, 2.0, 3.0)).text(), **made, matrix=[1.0], offset=[1.0])
    with pytest.raises(InputError, match=r"made as image-centres, and dataset.json says elastix-translation; compute"):
        stored_alignment(described, "one", roots)


def test_a_legacy_alignment_is_named_so_and_an_affine_one_is_refused(dataset):
    legacy = {"transform": "rigid", "from": "the centres of the organs", "left": {}, "note": None}
    described, roots, path = dataset(mode="as-delivered", legacy=legacy)
    with pytest.raises(MissingError, match=r"a legacy one \(rigid, the centres of the organs\), and .* is missing"):
        stored_alignment(described, "one", roots)
    store(path, Motion((1.0, 2.0, 3.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.0)).text())
    assert stored_alignment(described, "one", roots).how == "legacy"
    described, roots, path = dataset(mode="as-delivered", legacy=legacy | {"transform": "affine"})
    with pytest.raises(InputError, match=r"a legacy one \(affine, .*\), and a header holds no affine one; .*--suggest"):
        stored_alignment(described, "one", roots)
