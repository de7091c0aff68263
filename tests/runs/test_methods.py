"""The shipped methods themselves, on pairs whose motion is known."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from fidopt.errors import MissingError, UsageError
from fidopt.resources import Roots, packaged_share
from fidopt.runner import environment, methods

SHIFT = {3: np.array([-4.9, 2.7, -1.6]), 2: np.array([-6.0, 3.2])}


def turned(axis, degrees):
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.radians(degrees)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def scene(dimension):
    """Return a grid's size, spacing, origin and direction, and a textured body as a function of world points."""
    if dimension == 3:
        size, spacing, origin = (40, 36, 34), (2.0, 2.3, 2.8), (10.0, -20.0, 30.0)
        direction = turned((1, 0.4, -0.7), 24) @ np.eye(3)[[2, 0, 1]]
    else:
        size, spacing, origin = (150, 40), (0.7, 2.5), (3.0, 7.0)
        direction = turned((0, 0, 1), 215)[:2, :2]
    rng = np.random.default_rng(3)
    middle = np.array(origin) + direction @ ((np.array(size) - 1) / 2 * np.array(spacing))
    radius = 0.4 * np.array(size) * np.array(spacing)
    inside = rng.uniform(-1, 1, (600, dimension))
    centres = middle + (inside[(inside**2).sum(axis=1) < 1][:220] * radius) @ direction.T
    widths, heights = rng.uniform(3.5, 7, len(centres)), rng.choice([-1, 1], len(centres))

    def body(points):
        return ((((points - middle) @ direction) / radius) ** 2).sum(axis=1)

    def image(points):
        values = np.zeros(len(points))
        for centre, width, height in zip(centres, widths, heights, strict=True):
            values += height * np.exp(-((points - centre) ** 2).sum(axis=1) / (2 * width**2))
        return np.where(body(points) < 1.1, np.clip(25 * values + 128, 20, 235), 0)

    return (size, spacing, origin, direction), image, body, middle


def sampled(grid, image, shift, *, colour):
    size, spacing, origin, direction = grid
    index = np.stack(np.meshgrid(*[np.arange(n) for n in size], indexing="ij"), axis=-1).reshape(-1, len(size))
    points = (index * np.array(spacing)) @ np.asarray(direction).T + np.array(origin)
    values = image(points - shift).reshape(size).T
    made = sitk.GetImageFromArray(values.astype(np.float32))
    if colour:
        made = sitk.Compose([sitk.Cast(made * part, sitk.sitkUInt8) for part in (1.0, 0.8, 0.5)])
    made.SetSpacing(spacing)
    made.SetOrigin(origin)
    made.SetDirection(np.asarray(direction).ravel().tolist())
    return made, points


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    root = tmp_path_factory.mktemp("envs")
    return Roots((packaged_share(),), root, root, root, root / "envs")


def register(name, roots, folder: Path, *, dimension, two_grids=False):
    """Run run.sh as the contract has it; return its field (n, ndim), the points, and which are in the body."""
    chosen = methods.find(name, roots)
    try:
        where = environment.ensure(chosen.method, chosen.folder, roots, say=print)
    except MissingError as error:
        pytest.skip(f"no package index: {error}")
    grid, image, body, middle = scene(dimension)
    fixed, points = sampled(grid, image, 0 * SHIFT[dimension], colour=dimension == 2)
    other = grid
    if two_grids:
        direction = turned((0, 0, 1), 10)
        size, spacing = (44, 40, 38), (2.1, 2.2, 2.3)
        origin = middle - direction @ ((np.array(size) - 1) / 2 * np.array(spacing))
        other = (size, spacing, tuple(origin), direction)
    moving, _ = sampled(other, image, SHIFT[dimension], colour=dimension == 2)
    sitk.WriteImage(fixed, str(folder / "fixed.nii.gz"))
    sitk.WriteImage(moving, str(folder / "moving.nii.gz"))
    told = {"FIDOPT_ENV": str(where), "FIDOPT_DIMENSION": str(dimension), "FIDOPT_SEED": "0", "FIDOPT_THREADS": "1"}
    words = ["bash", str(chosen.folder / "run.sh"), *(str(folder / f"{n}.nii.gz") for n in ("fixed", "moving"))]
    log = folder / "log"
    with log.open("w") as stream:
        code = subprocess.run(
            [*words, str(folder)], cwd=folder, env={**os.environ, **told}, stdout=stream, stderr=stream, check=False
        ).returncode
    assert code == 0, log.read_text()[-2000:]
    return check_header(folder / "DVF.nii.gz", fixed), points, body(points) < 1


def check_header(path: Path, fixed):
    """Hold a field against the contract: grid, type, intent; return its vectors (n, ndim) in the points' order."""
    import nibabel

    header = nibabel.load(path).header
    size = fixed.GetSize()
    assert tuple(header["dim"][:6]) == (5, *size, *[1] * (4 - len(size)), len(size))
    assert (int(header["intent_code"]), int(header["datatype"])) == (1007, 16)
    field = sitk.ReadImage(str(path))
    again = sitk.ReadImage(str(path.with_name("fixed.nii.gz")))
    assert field.GetSpacing() == again.GetSpacing()
    np.testing.assert_allclose(field.GetDirection(), again.GetDirection(), atol=1e-6)
    np.testing.assert_allclose(field.GetOrigin(), again.GetOrigin(), atol=1e-4)
    vectors = sitk.GetArrayFromImage(field)
    axes = range(len(size))
    return np.moveaxis(vectors, axes, axes[::-1]).reshape(-1, len(size))


@pytest.mark.parametrize("dimension", [2, 3])
def test_identity_writes_zeros_on_the_fixed_grid(environments, tmp_path, dimension):
    vectors, _, _ = register("identity", environments, tmp_path, dimension=dimension)
    assert not vectors.any()


@pytest.mark.parametrize(("dimension", "two_grids"), [(2, False), (3, False), (3, True)])
def test_demons_recover_a_known_motion(environments, tmp_path, dimension, two_grids):
    vectors, _, inside = register("demons", environments, tmp_path, dimension=dimension, two_grids=two_grids)
    residual = np.linalg.norm(vectors[inside] - SHIFT[dimension], axis=1).mean()
    assert residual < 1


def test_demons_give_the_same_bytes_twice(environments, tmp_path):
    fields = []
    for name in "ab":
        (tmp_path / name).mkdir()
        register("demons", environments, tmp_path / name, dimension=2)
        fields.append((tmp_path / name / "DVF.nii.gz").read_bytes())
    assert fields[0] == fields[1]


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "two_grids"), [(2, False), (3, False), (3, True)])
def test_elastix_recovers_a_known_motion(environments, tmp_path, dimension, two_grids):
    vectors, _, inside = register("elastix", environments, tmp_path, dimension=dimension, two_grids=two_grids)
    residual = np.linalg.norm(vectors[inside] - SHIFT[dimension], axis=1).mean()
    assert residual < 1


@pytest.mark.slow
def test_elastix_gives_the_same_field_twice(environments, tmp_path):
    fields = []
    for name in "ab":
        (tmp_path / name).mkdir()
        fields.append(register("elastix", environments, tmp_path / name, dimension=2)[0])
    np.testing.assert_array_equal(*fields)


def test_a_method_without_its_script_or_with_half_a_name_is_refused(world):
    folder = world.method("still", "true")
    with pytest.raises(UsageError, match="still has no variant ''"):
        methods.find("still@", world.roots)
    (folder / "run.sh").unlink()
    with pytest.raises(UsageError, match=r"still has no run\.sh"):
        methods.refuse_unfit(methods.find("still", world.roots), world.dataset())
