"""A lazy warp: one task a shard, nothing computed early, the same voxels whatever the shards."""

from __future__ import annotations

import numpy as np
import pytest

from blocks import Affine, Grid, image_of, warp
from tests.itk import itk_warp


@pytest.fixture
def oblique() -> tuple[Grid, Grid, Affine]:
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    fixed = Grid.of((13, 19, 27), spacing=(0.8, 1.1, 2.3), origin=(5, -7, 30), direction=turn)
    moving = Grid.of((15, 17, 25), spacing=(1.0, 1.2, 2.0), origin=(6, -6, 31), direction=turn)
    centre = fixed.world([6, 9, 13])
    matrix = np.array([[1.02, 0.1, 0.0], [-0.1, 0.97, 0.05], [0.02, 0.0, 1.0]])
    return fixed, moving, Affine.of(matrix, centre - matrix @ centre + [0.3, -0.4, 0.9])


def test_an_affine_warp_of_an_image_in_memory_equals_simpleitk(oblique):
    fixed, moving, transform = oblique
    array = np.random.default_rng(0).integers(0, 256, moving.shape, dtype=np.uint8)
    warped = warp(image_of(array, moving), transform, fixed)
    assert warped.dtype == np.uint8
    expected = np.rint(itk_warp(array, moving, transform, fixed))
    assert (expected > 0).mean() > 0.3
    np.testing.assert_array_equal(warped.compute().values, expected)
