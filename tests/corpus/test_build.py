"""A dataset is built case by case, each whole or not at all, and what is not as described is refused."""

from __future__ import annotations

import gzip
import json

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks import open_image
from blocks.image import grid_of
from fidopt import building, corpus
from fidopt.building import assembly
from fidopt.errors import InputError, MissingError, OutputExistsError, UsageError
from fidopt.images.landmarks import read_landmarks

TRUTH = {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l", "labels": {"3": "bright"}}


def remade(data, change):
    """Return a .nii.gz with its voxels changed."""
    image = nibabel.Nifti1Image.from_bytes(gzip.decompress(data))
    return gzip.compress(nibabel.Nifti1Image(change(np.asanyarray(image.dataobj)), image.affine).to_bytes(), mtime=0)


def test_a_built_case_holds_the_providers_voxels_geometry_and_points(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    built = building.build(dataset, roots=roots)
    assert [(one.case, one.done, one.recorded) for one in built] == [("one", "built", "none"), ("two", "built", "none")]
    case = corpus.case(dataset, "two", roots)
    assert sorted(p.name for p in case.folder.iterdir()) == ["fixed.ome.zarr", "moving.ome.zarr", "truth"]
    source = nibabel.Nifti1Image.from_bytes(gzip.decompress(pair["two-moving.nii.gz"]))
    moving = open_image(case.moving)
    assert moving.dtype == np.int16
    np.testing.assert_array_equal(moving.values, np.asanyarray(source.dataobj).T)
    grid = grid_of(moving)
    np.testing.assert_allclose(grid.spacing, (0.9, 1.1, 2.5), rtol=1e-6)
    corner = source.affine @ [20, 16, 12, 1]
    np.testing.assert_allclose(grid.world([12, 16, 20]), corner[:3] * [-1, -1, 1], rtol=0, atol=1e-4)
    assert open_image(case.label_sets()[""][0]).attrs["kind"] == "labels"
    np.testing.assert_array_equal(
        read_landmarks(case.landmark_sets()[""][0], ndim=3), [[12.0, -8.5, 305.25], [13.1, -9.75, 301.5]]
    )
    assert case.fixed_grid().shape == (11, 23, 19)


def test_two_builds_give_the_same_checksums_and_a_record_says_so(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    first = building.build(dataset, roots=roots)
    path = building.record(dataset, {one.case: one.checksums for one in first}, roots=roots)
    assert json.loads(path.read_text())["cases"]["one"].keys() == {
        "fixed.ome.zarr",
        "moving.ome.zarr",
        "truth/fixed_labels.ome.zarr",
        "truth/fixed_landmarks.csv",
        "truth/moving_labels.ome.zarr",
        "truth/moving_landmarks.csv",
    }
    again = building.build(dataset, ["one"], roots=roots, overwrite=True)
    assert [(one.done, one.recorded) for one in again] == [("built", "match")]
    assert again[0].checksums == first[0].checksums


def test_a_build_takes_up_where_it_stopped(make, pair, monkeypatch):
    dataset, roots = make(pair, truth=TRUTH)
    whole = assembly.write_contents

    def stop_in_the_second(contents, folder):
        whole(contents, folder)
        if folder.name == "two":
            raise KeyboardInterrupt

    monkeypatch.setattr(assembly, "write_contents", stop_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        building.build(dataset, roots=roots)
    assert sorted(p.name for p in (roots.corpus / "tiny").iterdir()) == [".built", "one"]
    monkeypatch.undo()
    steps = []
    built = building.build(dataset, roots=roots, progress=lambda done, total: steps.append((done, total)))
    assert [one.done for one in built] == ["kept", "built"]
    assert steps == [(1, 2), (2, 2)]
    assert building.verify(dataset, roots=roots) == []


def test_what_a_killed_build_left_is_cleared(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    left = roots.corpus / "tiny" / ".building-999999999-xyz"
    left.mkdir(parents=True)
    building.build(dataset, ["one"], roots=roots)
    assert not left.exists()


def test_a_case_built_from_other_inputs_is_kept_until_told_otherwise(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    building.build(dataset, roots=roots)
    changed = pair | {"one-truth-fixed_landmarks.csv": b"x,y,z\n12.0,-8.5,305.25\n13.1,-9.75,302.5\n"}
    dataset, roots = make(changed, truth=TRUTH)
    with pytest.raises(OutputExistsError, match=r"one was built from other inputs.*--overwrite"):
        building.build(dataset, roots=roots)
    building.build(dataset, roots=roots, overwrite=True)
    assert "302.5" in (corpus.case_dir(roots, dataset, "one") / "truth" / "fixed_landmarks.csv").read_text()


def test_a_recorded_case_that_was_copied_here_is_kept(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    built = building.build(dataset, ["one"], roots=roots)
    building.record(dataset, {"one": built[0].checksums}, roots=roots)
    (roots.corpus / "tiny" / ".built" / "one.json").unlink()
    assert [(b.done, b.recorded) for b in building.build(dataset, ["one"], roots=roots)] == [("kept", "match")]
    (corpus.case_dir(roots, dataset, "one") / "truth" / "fixed_landmarks.csv").write_text("x,y,z\n0,0,0\n1,1,1\n")
    with pytest.raises(OutputExistsError, match="built elsewhere, or by hand"):
        building.build(dataset, ["one"], roots=roots)


@pytest.mark.parametrize(
    ("changes", "files", "message"),
    [
        ({"dimension": 2, "unit": "px"}, {}, r"must have 2 dimensions|coordinates"),
        ({"truth": TRUTH | {"labels": {"1": "dark"}}}, {}, r"truth/fixed_labels: holds the labels \[3\]"),
        ({}, {"one-fixed_mask.nii.gz": "one-truth-fixed_labels.nii.gz"}, r"fixed_mask: must hold 0 and 1 alone"),
        ({}, {"one-fixed_mask.nii.gz": "one-truth-fixed_labels.nii.gz"}, r"fixed_mask: is not one of dataset.json's"),
        ({}, {"one-truth-fixed_labels.nii.gz": "one-truth-moving_labels.nii.gz"}, r"must lie on the grid of fixed"),
        ({}, {"one-truth-fixed_labels_lungs.nii.gz": "one-truth-fixed_labels.nii.gz"}, r"has no truth/moving_labels_l"),
        ({}, {"one-truth-fixed_labels_lungs.nii.gz": "one-truth-fixed_labels.nii.gz"}, r"not one of .*other_labels"),
        ({}, {"one-fixed.mha": "one-fixed.nii.gz"}, r"is there already for fixed; keep one"),
        ({}, {"one-warped.nii.gz": "one-fixed.nii.gz"}, r"a registration case has no file of that name"),
    ],
)
def test_a_case_that_is_not_as_described_is_refused(make, pair, changes, files, message):
    dataset, roots = make(pair | {new: pair[old] for new, old in files.items()}, **({"truth": TRUTH} | changes))
    with pytest.raises(InputError, match=message):
        building.build(dataset, ["one"], roots=roots)
    assert not corpus.case_dir(roots, dataset, "one").exists()


def test_a_mask_that_shows_what_is_scored_is_refused(make, pair):
    mask = remade(pair["one-truth-fixed_labels.nii.gz"], lambda v: (v > 0).astype(np.uint8))
    dataset, roots = make(pair | {"one-fixed_mask.nii.gz": mask}, truth=TRUTH, masks=["fixed_mask"])
    with pytest.raises(InputError, match="fixed_mask: shows exactly what truth/fixed_labels does; a label map that is"):
        building.build(dataset, ["one"], roots=roots)
    wider = remade(pair["one-truth-fixed_labels.nii.gz"], lambda v: np.ones(v.shape, np.uint8))
    dataset, roots = make(pair | {"one-fixed_mask.nii.gz": wider}, truth=TRUTH, masks=["fixed_mask"])
    building.build(dataset, ["one"], roots=roots)
    assert corpus.case(dataset, "one", roots).masks().keys() == {"fixed_mask"}


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (b"x,y,z\n12.0,-8.5,305.25\n", r"has 1 points and truth/moving_landmarks has 2"),
        (b"x,y,z\n-12.0,8.5,305.25\n-13.1,9.75,301.5\n", r"RAS"),
        (b"x,y,z\n12.0,-8.5,305.25\n13.1,,301.5\n", r"line 3"),
    ],
)
def test_landmarks_that_cannot_be_pairs_are_refused(make, pair, points, message):
    dataset, roots = make(pair | {"one-truth-fixed_landmarks.csv": points}, truth=TRUTH)
    with pytest.raises(InputError, match=message):
        building.build(dataset, ["one"], roots=roots)


def test_labels_that_lie_between_whole_numbers_are_refused(make, pair):
    half = remade(pair["one-truth-fixed_labels.nii.gz"], lambda v: np.where(v > 0, np.float32(2.5), np.float32(0)))
    dataset, roots = make(pair | {"one-truth-fixed_labels.nii.gz": half}, truth=TRUTH)
    with pytest.raises(InputError, match=r"2\.5"):
        building.build(dataset, ["one"], roots=roots)


def test_labels_that_are_too_large_to_be_counted_are_refused(make, pair):
    names = {"truth": TRUTH | {"labels": {"18446744073709551615": "last"}}}
    image = nibabel.Nifti1Image.from_bytes(gzip.decompress(pair["one-truth-fixed_labels.nii.gz"]))
    far = np.where(np.asanyarray(image.dataobj) > 0, np.uint64(2**64 - 1), np.uint64(0))
    file = gzip.compress(nibabel.Nifti1Image(far, image.affine, dtype=np.uint64).to_bytes())
    dataset, roots = make(pair | {"one-truth-fixed_labels.nii.gz": file}, **names)
    with pytest.raises(
        InputError, match=r"truth/fixed_labels: holds the label 18446744073709551615; labels are counted"
    ):
        building.build(dataset, ["one"], roots=roots)


def test_an_image_whose_axes_are_sheared_is_refused_at_build(make, tmp_path):
    image = sitk.GetImageFromArray(np.arange(60, dtype=np.int16).reshape(3, 4, 5))
    sitk.WriteImage(image, str(tmp_path / "a.mha"))
    straight = (tmp_path / "a.mha").read_bytes()
    sheared = straight.replace(b"TransformMatrix = 1 0 0 0 1 0", b"TransformMatrix = 1 0 0 0.4 1 0")
    assert sheared != straight
    dataset, roots = make({"one-fixed.mha": sheared, "one-moving.mha": straight})
    with pytest.raises(InputError, match=r"fixed: its axes are sheared, .*; resample it"):
        building.build(dataset, ["one"], roots=roots)


def test_a_four_dimensional_file_of_one_volume_is_built_as_three(make, shared_case):
    path = shared_case("d11_4d.nii.gz")
    dataset, roots = make({"one-fixed.nii.gz": path, "one-moving.nii.gz": path})
    building.build(dataset, roots=roots)
    shape = nibabel.load(path).shape
    assert len(shape) == 4
    assert open_image(corpus.case(dataset, "one", roots).fixed).shape == shape[2::-1]


def test_a_zero_spacing_is_refused_at_build(make, shared_case):
    path = shared_case("d12_zero_pixdim.nii")
    dataset, roots = make({"one-fixed.nii": path, "one-moving.nii": path})
    with pytest.raises(
        InputError, match=r"^tiny/one/fixed.nii: the spacing \(pixdim\) along . must be positive, got 0"
    ):
        building.build(dataset, roots=roots)


def test_a_truncated_image_is_refused_at_build(make, pair, shared_case):
    dataset, roots = make(pair | {"one-fixed.nii.gz": shared_case("d1_truncated.nii.gz")}, truth=TRUTH)
    with pytest.raises(InputError, match=r"^tiny/one/fixed.nii.gz.*(ends|truncated)"):
        building.build(dataset, ["one"], roots=roots)


def test_a_prepare_that_fails_is_quoted_with_its_last_lines(make, pair):
    dataset, roots = make(pair, truth=TRUTH, prepare="import sys\nprint('reading')\nsys.exit('no such slice')")
    with pytest.raises(InputError, match=r"prepare.py failed with exit code 1: reading / no such slice"):
        building.build(dataset, roots=roots)
    dataset, roots = make(pair, truth=TRUTH, prepare="pass")
    with pytest.raises(InputError, match=r"made no folder for one, two"):
        building.build(dataset, roots=roots)
    (corpus.dataset_folder("tiny", roots) / "prepare.py").unlink()
    with pytest.raises(MissingError, match=r"there is no .*prepare\.py"):
        building.build(dataset, roots=roots)


def test_the_installed_package_is_never_written(make, pair, monkeypatch):
    dataset, roots = make(pair, truth=TRUTH)
    share = roots.share[0].rename(roots.share[0].with_name("_share"))
    roots = type(roots)((share,), roots.corpus, roots.archives, roots.results, roots.environments)
    monkeypatch.setattr("fidopt.building.records.packaged_share", lambda: share)
    with pytest.raises(UsageError, match="is not written; name your own folder with --share"):
        building.record(dataset, {}, roots=roots)
