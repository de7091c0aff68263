"""A prepare.py says what of a provider's files it cannot turn into one label map, and writes nothing wrong."""

from __future__ import annotations

import subprocess
import sys

import nibabel
import numpy as np
import pytest

from fidopt import corpus, resources

SHAPE = (6, 5, 4)


def structures(*places):
    """Return a label file's voxels: one volume a structure, each of one voxel."""
    voxels = np.zeros((*SHAPE, len(places)))
    for number, place in enumerate(places):
        voxels[(*place, number)] = 1
    return voxels


@pytest.fixture
def prepare(tmp_path):
    """Return a function that runs prostate_us_mr's prepare.py on made label files, and gives the run and its folder."""

    def _prepare(labels):
        for folder in ("fixed_images", "moving_images", "fixed_labels", "moving_labels"):
            voxels = labels if folder.endswith("labels") else np.zeros(SHAPE, np.uint8)
            path = tmp_path / "source" / folder / "case000000.nii.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(voxels, np.diag([0.4, 0.4, 0.4, 1])), path)
        script = corpus.dataset_folder("prostate_us_mr", resources.roots()) / "prepare.py"
        command = [sys.executable, str(script), str(tmp_path / "source"), str(tmp_path / "made"), "case000000"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return run, tmp_path / "made" / "case000000" / "truth"

    return _prepare


def test_a_gland_and_its_regions_become_two_label_maps(prepare):
    run, truth = prepare(structures((1, 1, 1), (1, 1, 1), (2, 3, 0)))
    assert (run.returncode, run.stderr) == (0, "")
    gland, regions = (nibabel.load(truth / f"moving_labels{name}.nii.gz") for name in ("", "_regions"))
    assert np.argwhere(gland.dataobj).tolist() == [[1, 1, 1]]
    assert {tuple(at): int(regions.dataobj[tuple(at)]) for at in np.argwhere(regions.dataobj)} == {
        (1, 1, 1): 2,
        (2, 3, 0): 3,
    }
    np.testing.assert_allclose(regions.affine, np.diag([0.4, 0.4, 0.4, 1]), rtol=0, atol=1e-7)


def test_a_gland_without_regions_has_one_label_map(prepare):
    run, truth = prepare(structures((1, 1, 1))[..., 0])
    assert run.returncode == 0
    assert sorted(path.name for path in truth.iterdir()) == ["fixed_labels.nii.gz", "moving_labels.nii.gz"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            structures((1, 1, 1), (2, 2, 2), (2, 2, 2)),
            "two of the regions share voxels, which one label map cannot hold",
        ),
        (structures((1, 1, 1), (2, 2, 2)) * 0.5, "each volume must hold 0 and 1 alone"),
    ],
)
def test_structures_that_one_label_map_cannot_hold_are_refused(prepare, labels, message):
    run, truth = prepare(labels)
    assert run.returncode == 1
    assert run.stderr.strip() == f"fixed_labels/case000000.nii.gz: {message}"
    assert list(truth.iterdir()) == []
