"""Translations and rotations as ITK keeps them."""

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from fidopt.alignment.motions import Motion
from fidopt.images.transforms import read_transform

MOTIONS = [
    Motion((1.5, -2.25)),
    Motion((0.1, 1 / 3, -1e3)),
    Motion((5.0, 7.0), (0.3,), (100.0, -20.0)),
    Motion((0.1, 1 / 3, -1e3), (0.2, -0.35, 0.11), (10.5, 300.0, -1434.5)),
]


def test_a_quarter_turn_about_a_point_by_hand():
    turn = Motion((10.0, 0.0), (np.pi / 2,), (1.0, 1.0)).affine()
    np.testing.assert_allclose(turn.points([[2.0, 1.0], [1.0, 1.0]]), [[11.0, 2.0], [11.0, 1.0]], atol=1e-12)


@pytest.mark.parametrize("motion", MOTIONS)
def test_the_file_holds_the_transform_to_the_last_digit_and_itk_reads_it_alike(motion, tmp_path):
    path = tmp_path / "case.tfm"
    path.write_text(motion.text())
    assert read_transform(path) == motion.affine()
    theirs = sitk.ReadTransform(str(path))
    points = np.random.default_rng(1).uniform(-500, 500, (20, len(motion.translation)))
    expected = [theirs.TransformPoint(point) for point in points.tolist()]
    np.testing.assert_allclose(motion.affine().points(points), expected, rtol=0, atol=1e-10)
    assert motion.affine().is_rigid(1e-14)


def test_elastix_s_parameters_are_angles_and_then_the_vector():
    assert Motion.from_elastix([0.1, 1.0, 2.0], [5.0, 6.0]) == Motion((1.0, 2.0), (0.1,), (5.0, 6.0))
    assert Motion.from_elastix([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]) == Motion((1.0, 2.0, 3.0))


def test_a_translation_after_a_motion_moves_where_it_ends():
    motion = MOTIONS[3]
    points = np.random.default_rng(2).uniform(-500, 500, (5, 3))
    moved = motion.then((1.0, -2.0, 3.0)).affine().points(points)
    np.testing.assert_allclose(moved, motion.affine().points(points) + np.array([1.0, -2.0, 3.0]), rtol=0, atol=1e-9)
