"""Datasets are found by name, cases by what lies in their folder."""

from __future__ import annotations

import shutil

import pytest

from fidopt import corpus, resources
from fidopt.errors import DescriptorError, MissingError, UsageError


def test_an_unknown_dataset_or_case_is_refused_with_those_there_are(make):
    dataset, roots = make({"one-fixed.nii.gz": b""})
    with pytest.raises(UsageError, match=r"no 'tin' in .* there are: .*lung_ct.*tiny"):
        corpus.dataset("tin", roots)
    with pytest.raises(UsageError, match="tiny has no case 'two'; its cases are: one"):
        corpus.case(dataset, "two", roots)
    with pytest.raises(MissingError, match="fidopt build tiny one"):
        corpus.case(dataset, "one", roots)


def test_a_dataset_must_carry_its_folders_name(make):
    _, roots = make({"one-fixed.nii.gz": b""})
    folder = corpus.dataset_folder("tiny", roots)
    shutil.copytree(folder, folder.with_name("copy"))
    with pytest.raises(DescriptorError, match="name: must be that of its folder, 'copy', got 'tiny'"):
        corpus.dataset("copy", roots)


def test_the_datasets_that_ship_are_listed_in_order():
    names = [dataset.name for dataset in corpus.datasets(resources.roots())]
    assert names == sorted(names)
    assert {"brain", "histology", "lung_ct", "lungct_points", "retina"} <= set(names)


def case_of(dataset, roots, *paths):
    folder = corpus.case_dir(roots, dataset, "one")
    for path in paths:
        target = folder / path
        if path.endswith(".csv"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("x,y,z\n0,0,0\n")
        else:
            target.mkdir(parents=True)
    return corpus.case(dataset, "one", roots)


def test_a_cases_sets_are_named_after_their_files(make):
    dataset, roots = make({"one-fixed.nii.gz": b""}, masks=["fixed_mask"])
    stores = [
        f"{name}.ome.zarr" for name in ("fixed", "moving", "fixed_mask", "moving_mask", "truth/moving_ignore",
                                        "truth/fixed_labels", "truth/moving_labels", "truth/fixed_labels_tumours",
                                        "truth/moving_labels_tumours")
    ]  # fmt: skip
    points = [f"truth/{side}_landmarks{name}.csv" for side in ("fixed", "moving") for name in ("", "_keypoints")]
    case = case_of(dataset, roots, *stores, *points)
    assert case.has_images
    assert case.masks() == {"fixed_mask": case.folder / "fixed_mask.ome.zarr"}
    assert list(case.label_sets()) == ["", "tumours"]
    assert case.label_sets()["tumours"][1] == case.truth / "moving_labels_tumours.ome.zarr"
    assert list(case.landmark_sets()) == ["", "keypoints"]
    assert case.landmark_sets()[""][0] == case.truth / "fixed_landmarks.csv"
    assert case.ignore() == {"moving": case.truth / "moving_ignore.ome.zarr"}
    (case.truth / "fixed_labels_alone.ome.zarr").mkdir()
    with pytest.raises(MissingError, match=r"moving_labels_alone\.ome\.zarr is absent, .*: fidopt build tiny one"):
        case.label_sets()


def test_a_case_without_images_is_refused_for_running_not_for_scoring(make):
    dataset, roots = make({"one-fixed.nii.gz": b""}, masks=["fixed_mask"])
    case = case_of(dataset, roots, "fixed_mask.ome.zarr", "truth/fixed_landmarks.csv", "truth/moving_landmarks.csv")
    assert not case.has_images
    assert list(case.landmark_sets()) == [""]
    with pytest.raises(UsageError, match=r"tiny/one has no images to register: .*fidopt score --fields"):
        case.require_images()


def test_a_case_with_nothing_on_a_side_has_no_grid(make):
    dataset, roots = make({"one-fixed.nii.gz": b""})
    case = case_of(dataset, roots, "truth/moving_labels.ome.zarr")
    with pytest.raises(MissingError, match="holds no image, mask or label map of the fixed side"):
        case.fixed_grid()
