"""No image is in two places where it may not be: found by what images hold, in whatever datasets and tasks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blocks import image_of
from blocks.execute import write_image
from blocks.grid import Grid
from fidopt import resources
from fidopt.building.doubles import Place, search
from fidopt.building.records import voxel_digests
from fidopt.cli import main

TRUTH = {"grade": "expert", "by": "b", "checked": "c", "limits": "l", "labels": {"1": "lung"}}
ROLES = {"registration": ("fixed", "moving"), "segmentation": ("image",), "synthesis": ("source", "truth/target")}


def picture(seed, *, shape=(20, 30), dtype=np.uint8):
    return np.random.default_rng(seed).integers(0, 200, shape).astype(dtype)


@pytest.fixture
def corpus(tmp_path, described, monkeypatch):
    """Return a function that describes a dataset and lays its cases out, and the folders that hold no others."""
    share = tmp_path / "share"
    (share / "datasets").mkdir(parents=True)
    monkeypatch.setattr(resources, "packaged_share", lambda: share)

    def make(name, cases, *, task="registration", development=(), subjects=None, built=True, **changes):
        folder = share / "datasets" / name
        folder.mkdir(parents=True)
        stems = {"registration": ("fixed", "moving"), "segmentation": ("image",), "synthesis": ("source", "target")}
        entry = {"source": "tests", "learn2reg": None}
        entries = {c: entry | {"subjects": (subjects or {}).get(c, ["a", "b"])} for c in cases if c not in development}
        truth = TRUTH | {"dynamic_range": 200.0 if task == "synthesis" else None}
        document = described(
            name=name,
            task=task,
            dimension=2,
            unit="px",
            modalities=dict.fromkeys(stems[task], "photo"),
            source={"url": "u", "files": {"f": "sha256:" + "0" * 64}},
            cases=entries,
            development=list(development),
            truth=truth,
        )
        (folder / "dataset.json").write_text(json.dumps(document | changes))
        for case, images in cases.items() if built else ():
            place = tmp_path / "corpus" / name / case
            (place / "truth").mkdir(parents=True)
            for role, voxels in zip(ROLES[task], images, strict=True):
                write_image(place / f"{role}.ome.zarr", image_of(voxels, Grid.of(voxels.shape)))
        return folder

    return make, resources.roots(share=share, corpus=tmp_path / "corpus")


def kinds(roots):
    return [(double.kind, *map(str, double.places)) for double in search(roots).doubles]


def test_datasets_whose_images_differ_hold_none_twice(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)], "two": [picture(3), picture(4)]})
    make("b", {"one": [picture(5), picture(6)]})
    found = search(roots)
    assert found.doubles == []
    assert found.images == 6
    assert found.datasets == ["a", "b"]


def test_an_image_of_two_datasets_is_named_with_both_places_whatever_its_geometry(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)]})
    make("b", {"one": [picture(5), picture(6)]})
    path = roots.corpus / "b" / "one" / "moving.ome.zarr"
    elsewhere = image_of(picture(1), Grid.of((20, 30), spacing=(0.5, 4.0), origin=(7.0, -3.0)))
    write_image(path, elsewhere, overwrite=True)
    assert kinds(roots) == [("twice", "a/one/fixed.ome.zarr", "b/one/moving.ome.zarr")]
    (double,) = search(roots).doubles
    assert str(double) == (
        "a/one/fixed.ome.zarr and b/one/moving.ome.zarr hold the same image: no image is in two registration "
        "datasets; leave it to one of the two"
    )


def test_another_type_is_another_image(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)]})
    make("b", {"one": [picture(1, dtype=np.int16), picture(6)]})
    assert kinds(roots) == []


def test_a_registration_image_may_serve_another_task_on_the_same_side_of_the_partition(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)], "dev": [picture(3), picture(4)]}, development=["dev"])
    make("b", {"x": [picture(1)], "y": [picture(3)]}, task="segmentation", development=["y"])
    make("c", {"x": [picture(1), picture(2)]}, task="synthesis")
    assert kinds(roots) == []


@pytest.mark.parametrize("task", ["registration", "segmentation", "synthesis"])
def test_an_image_that_is_a_test_case_here_and_a_development_case_there_is_named(corpus, task):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)]})
    images = [picture(2), picture(9)][: len(ROLES[task])]
    make("b", {"x": images, "other": [picture(20), picture(21)][: len(images)]}, task=task, development=["x"])
    (double,) = search(roots).doubles
    assert double.kind == "partition"
    assert str(double).startswith(f"a/one/moving.ome.zarr (test) and b/x/{ROLES[task][0]}.ome.zarr (development)")
    assert "take x out of b's development" in str(double)


def test_a_target_of_a_synthesis_is_an_image_too(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)], "dev": [picture(3), picture(4)]}, development=["dev"])
    make("c", {"x": [picture(7), picture(4)]}, task="synthesis")
    assert kinds(roots) == [("partition", "a/dev/moving.ome.zarr", "c/x/truth/target.ome.zarr")]


def test_one_dataset_may_pair_an_image_twice_and_not_set_it_aside_too(corpus):
    make, roots = corpus
    subjects = {"one": ["s1", "s2"], "two": ["s2", "s3"]}
    make("a", {"one": [picture(1), picture(2)], "two": [picture(2), picture(3)]}, subjects=subjects)
    assert kinds(roots) == []
    make("b", {"one": [picture(11), picture(12)], "two": [picture(12), picture(13)]}, development=["two"])
    assert kinds(roots) == [("partition", "b/one/moving.ome.zarr", "b/two/fixed.ome.zarr")]


def test_one_image_under_two_subjects_or_on_both_sides_of_a_pair_is_named(corpus):
    make, roots = corpus
    subjects = {"one": ["s1", "s2"], "two": ["s3", "s4"]}
    make("a", {"one": [picture(1), picture(2)], "two": [picture(2), picture(3)]}, subjects=subjects)
    make("b", {"one": [picture(7), picture(7)]})
    assert kinds(roots) == [
        ("two-subjects", "a/one/moving.ome.zarr", "a/two/fixed.ome.zarr"),
        ("both-sides", "b/one/fixed.ome.zarr", "b/one/moving.ome.zarr"),
    ]
    assert "under the subjects 's2' and 's3'" in str(search(roots).doubles[0])


def test_a_subject_of_a_test_case_is_in_no_development_case_of_another_dataset(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)]}, subjects={"one": ["s1", "s2"]})
    draw = {"seed": 1, "count": 1}
    cases = {"x": [picture(5), picture(6)], "y": [picture(7), picture(8)], "z": [picture(9), picture(10)]}
    folder = make("b", cases, subjects={"x": ["s7", "s8"]}, development=["y", "z"], draw=draw)
    pool = {
        "x": {"source": "tests", "subjects": ["s7", "s8"]},
        "y": {"source": "tests", "subjects": ["s2", "s9"]},
        "z": {"source": "elsewhere", "subjects": ["s1", "s2"]},
    }
    assert kinds(roots) == []
    (folder / "pool.json").write_text(json.dumps({"cases": pool}))
    # z's are the subjects of another source, who only have the same names.
    assert kinds(roots) == [("subject", "a/one", "b/y")]
    assert str(search(roots).doubles[0]) == (
        "a/one (test) and b/y (development) hold images of one subject, 's2': a subject of a test case is one in every "
        "task; take y out of b's development"
    )


def test_constant_and_tiny_images_are_nobody_s_double(corpus):
    make, roots = corpus
    flat, small = np.full((20, 30), 7, np.uint8), picture(1, shape=(10, 10))
    make("a", {"one": [flat, small]})
    make("b", {"one": [flat, small]})
    found = search(roots)
    assert found.doubles == []
    assert found.images == 0


def test_masks_and_label_maps_may_be_alike(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)]})
    make("b", {"one": [picture(5), picture(6)]})
    for name in ("a", "b"):
        path = roots.corpus / name / "one" / "truth" / "fixed_labels.ome.zarr"
        write_image(path, image_of(picture(1), Grid.of((20, 30))), kind="labels")
    assert kinds(roots) == []


def test_what_is_not_built_is_looked_for_by_what_is_recorded(corpus):
    make, roots = corpus
    make("a", {"one": [picture(1), picture(2)]})
    folder = make("b", {"one": [picture(1), picture(6)], "two": [picture(7), picture(8)]}, built=False)
    assert search(roots).unknown == ["b/one", "b/two"]
    known = voxel_digests(roots.corpus / "a" / "one")
    contents = {"one": {"fixed.ome.zarr": known["fixed.ome.zarr"]}}
    cases = {"one": {"fixed.ome.zarr": "sha256:" + "1" * 64}}
    (folder / "checksums.json").write_text(json.dumps({"fidopt": "0.1.0", "cases": cases, "contents": contents}))
    found = search(roots)
    assert found.unknown == ["b/two"]
    assert [double.kind for double in found.doubles] == ["twice"]
    assert found.doubles[0].places[1] == Place("b", "registration", "one", "fixed.ome.zarr", "test", "a")


def test_the_command_names_both_places_and_answers_no(corpus, capsys, tmp_path):
    make, _ = corpus
    options = [f"--share={tmp_path / 'share'}", f"--corpus={tmp_path / 'corpus'}"]
    make("a", {"one": [picture(1), picture(2)]})
    assert main(["verify", "--across", *options]) == 0
    assert "2 images of 1 dataset: no image twice" in capsys.readouterr().out
    make("b", {"one": [picture(2), picture(6)]})
    assert main(["verify", "--across", *options]) == 1
    out, err = capsys.readouterr()
    assert out == "4 images of 2 datasets: 1 image twice\n"
    assert "a/one/moving.ome.zarr and b/one/fixed.ome.zarr hold the same image" in err
    assert main(["verify", "--across", "--json", *options]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["images"] == 4
    (double,) = document["doubles"]
    assert double["kind"] == "twice"
    assert double["places"] == [
        {"dataset": "a", "case": "one", "path": "moving.ome.zarr", "side": "test"},
        {"dataset": "b", "case": "one", "path": "fixed.ome.zarr", "side": "test"},
    ]
    assert main(["verify", "a", "--across", *options]) == 2
    assert "leave out a" in capsys.readouterr().err
