"""One changed byte is found wherever it lies, and the file it lies in is named."""

from __future__ import annotations

import shutil

import pytest

from fidopt import building, corpus
from fidopt.errors import MissingError

TRUTH = {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l", "labels": {"3": "bright"}}


@pytest.fixture
def built(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    building.build(dataset, roots=roots)
    return dataset, roots, corpus.case_dir(roots, dataset, "one")


def found(dataset, roots, cases=()):
    return [(d.case, d.path, d.problem) for d in building.verify(dataset, cases, roots=roots)]


@pytest.mark.parametrize("recorded", [False, True], ids=["own record", "recorded"])
def test_one_flipped_byte_anywhere_is_found_and_its_file_named(built, recorded):
    dataset, roots, folder = built
    if recorded:
        results = building.build(dataset, roots=roots)
        building.record(dataset, {one.case: one.checksums for one in results}, roots=roots)
    assert found(dataset, roots) == []
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(paths) >= 10
    for path in paths:
        whole = path.read_bytes()
        for position in {0, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
            assert found(dataset, roots, ["one"]) == [("one", path.relative_to(folder).as_posix(), "differs")]
        path.write_bytes(whole)
    assert found(dataset, roots) == []


def test_missing_extra_and_truncated_files_are_found(built):
    dataset, roots, folder = built
    chunk = next(
        path for path in (folder / "fixed.ome.zarr").rglob("*") if path.is_file() and "zarr.json" not in path.name
    )
    chunk.unlink()
    (folder / "moving.ome.zarr" / "stray").write_text("")
    (folder / "notes.txt").write_text("")
    points = folder / "truth" / "fixed_landmarks.csv"
    points.write_text("\n".join(points.read_text().splitlines()[:-1]) + "\n")
    shutil.rmtree(folder / "truth" / "moving_labels.ome.zarr")
    assert found(dataset, roots) == [
        ("one", chunk.relative_to(folder).as_posix(), "missing"),
        ("one", "moving.ome.zarr/stray", "extra"),
        ("one", "notes.txt", "extra"),
        ("one", "truth/fixed_landmarks.csv", "differs"),
        ("one", "truth/moving_labels.ome.zarr", "missing"),
    ]


def test_a_case_that_vanished_is_missing_as_a_whole(built):
    dataset, roots, folder = built
    shutil.rmtree(folder)
    assert found(dataset, roots) == [("one", "", "missing")]


def test_an_intact_build_with_other_bytes_than_recorded_is_told_from_damage(built):
    dataset, roots, folder = built
    results = {one.case: dict(one.checksums) for one in building.build(dataset, roots=roots)}
    results["one"]["fixed.ome.zarr"] = "sha256:" + "0" * 64
    building.record(dataset, results, roots=roots)
    (difference,) = building.verify(dataset, roots=roots)
    assert (difference.path, difference.problem) == ("fixed.ome.zarr", "rebuilt")
    assert "not the recorded bytes" in str(difference)
    (folder / "fixed.ome.zarr" / "zarr.json").write_text("{}")
    assert found(dataset, roots) == [("one", "fixed.ome.zarr/zarr.json", "differs")]


def test_a_case_with_nothing_to_compare_with_is_not_called_sound(built):
    dataset, roots, _ = built
    (roots.corpus / "tiny" / ".built" / "one.json").unlink()
    assert found(dataset, roots) == [("one", "", "unknown")]


def test_what_is_not_built_cannot_be_verified(make, pair):
    dataset, roots = make(pair, truth=TRUTH)
    with pytest.raises(MissingError, match=r"no case is built in .* fidopt build tiny"):
        building.verify(dataset, roots=roots)
    building.build(dataset, ["two"], roots=roots)
    assert found(dataset, roots) == []
    with pytest.raises(MissingError, match="one is not built"):
        building.verify(dataset, ["one"], roots=roots)
