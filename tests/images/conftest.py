"""Grids and voxels that the tests of images share."""

from __future__ import annotations

import numpy as np
import pytest

from blocks.grid import Grid


def _rotation(axis: tuple[float, float, float], degrees: float) -> np.ndarray:
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.deg2rad(degrees)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


@pytest.fixture
def oblique() -> Grid:
    """Return an odd-sized, anisotropic 3D grid that lies obliquely, its axes permuted."""
    direction = _rotation((1, 0.4, -0.7), 24) @ np.array([[0, 0, 1], [1, 0, 0], [0, -1, 0]])
    return Grid.of((7, 9, 11), spacing=(0.7, 1.3, 2.9), origin=(-12.5, 40.25, 133.0), direction=direction)


@pytest.fixture
def oblique_plane() -> Grid:
    """Return an odd-sized, anisotropic 2D grid turned by 215 degrees."""
    angle = np.deg2rad(215)
    direction = [np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)]
    return Grid.of((13, 15), spacing=(0.7, 2.5), origin=(5.5, -6.25), direction=direction)


@pytest.fixture
def random() -> np.random.Generator:
    """Return numbers that are the same in every run."""
    return np.random.default_rng(20261130)
