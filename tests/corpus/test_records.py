"""What is recorded of a build, in which file, and how a build to other bytes is explained."""

from __future__ import annotations

import json
import time

import pytest

from blocks import open_image
from fidopt import building, corpus
from fidopt.building import records
from fidopt.building.records import libraries, read_record, voxel_digests
from fidopt.errors import InputError, UsageError
from fidopt.images.voxels import voxel_digest
from fidopt.results import corpus_digest

TRUTH = {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l", "labels": {"3": "bright"}}
ONE = {"one": {"source": "tests", "learn2reg": None, "subjects": ["a", "a"]}}


def recorded(dataset, roots, cases=()):
    built = building.build(dataset, cases, roots=roots)
    return building.record(dataset, {one.case: one.checksums for one in built}, roots=roots)


def differences(dataset, roots):
    return [(d.path, d.problem, d.why) for d in building.verify(dataset, roots=roots)]


@pytest.fixture
def built(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    return dataset, roots, recorded(dataset, roots)


@pytest.fixture
def split(make, pair):
    """A dataset whose case one is a test case and whose case two is set aside for tuning."""
    return make(pair, truth=TRUTH, cases=ONE, development=["two"])


def rewrite(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_build_notes_the_libraries_and_what_its_stores_hold(built):
    dataset, roots, path = built
    local = read_record(dataset, "one", roots)
    folder = corpus.case_dir(roots, dataset, "one")
    assert local.libraries == libraries(dataset)
    assert {"zarr", "numcodecs", "numpy", "python"} <= set(local.libraries)
    assert set(local.contents) == {entry for entry in local.contents if (folder / entry).is_dir()}
    assert len(local.contents) == 4
    assert local.contents["fixed.ome.zarr"] == voxel_digest(open_image(folder / "fixed.ome.zarr"))
    document = json.loads(path.read_text())
    assert document["contents"]["one"] == local.contents
    assert document["built_with"] == [{"libraries": local.libraries, "cases": ["one", "two"]}]


def test_a_build_forty_days_later_gives_equal_voxels_and_checksums(built, monkeypatch):
    dataset, roots, _ = built
    before = {case: dict(read_record(dataset, case, roots).contents) for case in dataset.cases}
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 40 * 86400.0)
    building.build(dataset, roots=roots, overwrite=True)
    assert {case: dict(read_record(dataset, case, roots).contents) for case in dataset.cases} == before
    assert differences(dataset, roots) == []


def test_other_bytes_of_the_same_voxels_are_explained_by_the_library_that_wrote_them(built, monkeypatch):
    dataset, roots, path = built
    # As if it had been recorded where an older library wrote the same voxels to other bytes.
    old = libraries(dataset) | {"numcodecs": "0.1.0", "gone": "1.0"}
    rewrite(path, lambda document: document["built_with"][0].update(libraries=old))
    rewrite(path, lambda document: document["cases"]["one"].update({"fixed.ome.zarr": "sha256:" + "0" * 64}))
    ((where, problem, why),) = differences(dataset, roots)
    assert (where, problem) == ("fixed.ome.zarr", "rebuilt")
    now = libraries(dataset)["numcodecs"]
    assert why == (
        "its voxels are those recorded, to the last bit; it was built with gone none (recorded with 1.0), "
        f"numcodecs {now} (recorded with 0.1.0)"
    )


def test_other_voxels_are_not_explained_away(built):
    dataset, roots, path = built
    zeros = "sha256:" + "0" * 64
    rewrite(path, lambda document: document["cases"]["one"].update({"fixed.ome.zarr": zeros}))
    rewrite(path, lambda document: document["contents"]["one"].update({"fixed.ome.zarr": zeros}))
    ((_, problem, why),) = differences(dataset, roots)
    assert problem == "rebuilt"
    assert why.startswith("its voxels are not those recorded; every library is of the recorded version")


def test_a_build_from_what_is_no_longer_there_says_so(built, tmp_path):
    dataset, roots, path = built
    rewrite(path, lambda document: document["cases"]["one"].update({"fixed.ome.zarr": "sha256:" + "0" * 64}))
    script = corpus.dataset_folder("tiny", roots) / "prepare.py"
    script.write_text(script.read_text() + "# changed\n")
    ((_, _, why),) = differences(dataset, roots)
    assert "built from other inputs than the dataset's folder now has" in why


def test_a_build_of_another_alignment_says_so(built):
    dataset, roots, path = built
    rewrite(path, lambda document: document["cases"]["one"].update({"moving.ome.zarr": "sha256:" + "0" * 64}))
    local = roots.corpus / "tiny" / ".built" / "one.json"
    rewrite(local, lambda document: document.update(alignment="sha256:" + "1" * 64))
    ((_, _, why),) = differences(dataset, roots)
    assert "aligned by another transform than the dataset's folder now has" in why


def test_checksums_of_before_libraries_were_noted_are_still_read(built):
    dataset, roots, path = built
    rewrite(path, lambda document: [document.pop(key) for key in ("contents", "built_with")])
    assert differences(dataset, roots) == []
    rewrite(path, lambda document: document["cases"]["one"].update({"fixed.ome.zarr": "sha256:" + "0" * 64}))
    ((_, problem, why),) = differences(dataset, roots)
    assert problem == "rebuilt"
    assert "the libraries that wrote them were not noted" in why


def test_cases_recorded_by_other_versions_keep_theirs(built):
    dataset, roots, path = built
    rewrite(path, lambda document: document["built_with"][0]["libraries"].update(zarr="2.0"))
    recorded(dataset, roots, ["two"])
    groups = json.loads(path.read_text())["built_with"]
    assert [(group["libraries"]["zarr"], group["cases"]) for group in groups] == [
        ("2.0", ["one"]),
        (libraries(dataset)["zarr"], ["two"]),
    ]


def test_development_cases_are_built_recorded_and_verified_beside_the_test_cases(split):
    dataset, roots = split
    assert [one.case for one in building.build(dataset, roots=roots)] == ["one"]
    path = recorded(dataset, roots, ["two"])
    assert path.name == "checksums_development.json"
    assert list(json.loads(path.read_text())["cases"]) == ["two"]
    assert corpus.checksums("tiny", roots) is None
    both = recorded(dataset, roots, ["one", "two"])
    assert both.name == "checksums.json"
    assert list(json.loads(both.read_text())["cases"]) == ["one"]
    assert building.built_cases(dataset, roots) == ("one", "two")
    assert differences(dataset, roots) == []
    rewrite(path, lambda document: document["cases"]["two"].update({"moving.ome.zarr": "sha256:" + "0" * 64}))
    assert [(d.case, d.path, d.problem) for d in building.verify(dataset, roots=roots)] == [
        ("two", "moving.ome.zarr", "rebuilt")
    ]


def test_a_development_case_has_no_place_among_results(split):
    dataset, roots = split
    building.build(dataset, ["two"], roots=roots)
    with pytest.raises(UsageError, match="tiny/two is a development case; its test cases are: one"):
        corpus.cases(dataset, ["two"], roots)
    with pytest.raises(UsageError, match="no case 'three'; its cases are: one; its development cases: two"):
        building.build(dataset, ["three"], roots=roots)
    before = corpus_digest(dataset, roots)
    recorded(dataset, roots, ["two"])
    assert corpus_digest(dataset, roots) == before


def test_what_a_case_holds_is_known_without_a_record(built):
    dataset, roots, _ = built
    noted = read_record(dataset, "two", roots).contents
    assert voxel_digests(corpus.case_dir(roots, dataset, "two")) == noted


def test_the_installed_package_s_folder_is_not_written(built, monkeypatch):
    dataset, roots, _ = built
    share = roots.share[0].rename(roots.share[0].with_name("_share"))
    monkeypatch.setattr(records, "packaged_share", lambda: share)
    moved = type(roots)(**(vars(roots) | {"share": (share,)}))
    with pytest.raises(UsageError, match="is part of the installed package and is not written"):
        building.record(dataset, {"one": {}}, roots=moved)


def test_a_changed_provider_file_is_named_with_what_was_expected_and_where_it_comes_from(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    path = roots.archives / "tiny" / "one-fixed.nii.gz"
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(InputError) as caught:
        building.build(dataset, roots=roots)
    said = str(caught.value)
    assert str(path) in said
    assert f"expected {dataset.source.files['one-fixed.nii.gz']}, got sha256:" in said
    assert "get them again from https://example.org/tiny" in said
    assert "one-moving" not in said
    assert not corpus.case_dir(roots, dataset, "one").exists()
