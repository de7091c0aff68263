"""The large sets that ship: what their providers' files hold, on the world's axes, with a truth that leaves room."""

from __future__ import annotations

from dataclasses import replace

import h5py
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import tifffile

from blocks import open_image
from blocks.image import grid_of, levels_of
from fidopt import building, corpus, resources
from fidopt.images.landmarks import read_landmarks


@pytest.fixture
def build(tmp_path, shared_data):
    """Return a function that builds a set from the shared data, and gives its one case."""

    def _build(name):
        # No seed is kept with the shared data, nor in the repository: as if this machine had drawn this one.
        seed = tmp_path / "private" / name / "warp.json"
        seed.parent.mkdir(parents=True)
        seed.write_text('{"seed": 123456789012345, "border": "free"}')
        roots = replace(
            resources.roots(corpus=tmp_path / "corpus", archives=shared_data(name).parent), private=tmp_path / "private"
        )
        dataset = corpus.dataset(name, roots)
        assert dataset.large
        (built,) = building.build(dataset, roots=roots)
        assert built.recorded == "match", f"after a change of the store: fidopt build {name} --record"
        assert building.verify(dataset, roots=roots) == [], f"after a change of the store: fidopt build {name} --record"
        (case,) = corpus.cases(dataset, (), roots)
        return case

    return _build


def pairs(case):
    """Return the landmarks, and hold them to the deformation."""
    fixed, moving = (read_landmarks(path, ndim=case.dataset.dimension) for path in case.landmark_sets()[""])
    transform = sitk.ReadTransform(str(case.truth / "deformation.tfm"))
    voxel = min(case.fixed_grid().spacing)
    assert np.abs([transform.TransformPoint(point) for point in moving.tolist()] - fixed).max() < 1e-6 * voxel
    return fixed, moving, np.linalg.norm(fixed - moving, axis=1) / voxel


def test_the_ovule_is_read_from_its_hdf5_with_its_cells(build, shared_data):
    case = build("ovule")
    with h5py.File(shared_data("ovule") / "sample_ovule.h5") as file:
        raw, cells = np.asarray(file["raw"]), np.asarray(file["label"])
    image, labels = open_image(case.fixed), [open_image(path) for path in case.label_sets()["cells"]]
    assert np.array_equal(image.values, raw)
    assert np.array_equal(labels[0].values, cells)
    assert grid_of(image).spacing == (0.00015, 0.00015, 0.000235)
    assert image.attrs["unit"] == "mm"
    _, _, errors = pairs(case)
    assert 1 < np.median(errors) < 10
    moved = labels[1].values
    assert set(np.unique(moved)) <= set(np.unique(cells)) | {0}
    assert 0.5 < np.mean(moved == cells) < 0.95
    assert not np.array_equal(open_image(case.moving).values, raw)


@pytest.mark.slow
def test_the_mouse_brain_is_brought_from_its_planes_onto_the_world_s_axes(build, shared_data):
    case = build("mouse_brain")
    planes = sorted((shared_data("mouse_brain") / "planes").glob("*.tif"))
    stack = np.stack([tifffile.imread(path) for path in planes])
    assert stack.shape == (270, 193, 271)
    image = open_image(case.fixed)
    # Planes begin at the back, rows at the top, columns on the left; x, y and z run to the left, the back and the top.
    assert np.array_equal(image.values, stack.transpose(1, 0, 2)[::-1, ::-1, ::-1])
    grid = grid_of(image)
    assert grid.spacing == (0.04, 0.05, 0.04)
    assert grid.direction == (1, 0, 0, 0, 1, 0, 0, 0, 1)
    fixed, _, errors = pairs(case)
    assert np.median(errors) > 0.5
    # The points lie in the brain, which is bright.
    index = np.rint(grid.index(fixed)).astype(int)
    assert np.mean(image.values[tuple(index.T)] > np.median(image.values)) > 0.95


@pytest.mark.slow
def test_the_slide_is_read_from_its_svs_in_its_micrometres(build, shared_data):
    case = build("slide")
    picture = tifffile.imread(shared_data("slide") / "cmu_small_region.svs", series=0)
    image = open_image(case.fixed)
    assert np.array_equal(image.values, np.moveaxis(picture, -1, 0))
    assert (grid_of(image).spacing, image.attrs["unit"]) == ((0.499, 0.499), "um")
    assert [level.grid.shape for level in levels_of(case.fixed)][1:3] == [(1484, 1110), (742, 555)]
    fixed, _, errors = pairs(case)
    assert np.median(errors) > 5
    # The points lie in the tissue, which is darker than the glass, or in gaps that it encloses.
    y, x = np.rint(grid_of(image).index(fixed)).astype(int).T
    assert np.mean(picture[y, x].mean(axis=-1) < 225) > 0.7
    moving = open_image(case.moving).values
    assert moving.shape == image.shape
    assert abs(float(np.corrcoef(moving[1].ravel()[::97], image.values[1].ravel()[::97])[0, 1])) < 0.99
