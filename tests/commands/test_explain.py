"""``fidopt explain`` as a person or a program calls it, on rows that were written before."""

from __future__ import annotations

import json

import imageio.v3 as iio
import numpy as np
import pytest

import blocks
from blocks.grid import Grid
from fidopt import resources, results
from fidopt.cli import main
from fidopt.images.landmarks import write_landmarks
from fidopt.images.preview import MADE, TRUE
from fidopt.results import Line

CHECKSUMS = "sha256:" + "ab" * 32
GRID = Grid.of((12, 20, 16), spacing=(2.0, 1.0, 1.5), origin=(-7.0, 3.0, 11.0))
FIXED = GRID.world(np.array([[2, 3, 4], [6, 10, 8], [9, 15, 12]], dtype=float))
MOVING = FIXED + np.array([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
DOCUMENT = {
    "name": "made",
    "title": "Made",
    "task": "registration",
    "dimension": 3,
    "unit": "mm",
    "modalities": {"fixed": "ct", "moving": "ct"},
    "spdx": "CC0-1.0",
    "citation": "-",
    "source": {"url": "-", "files": {"x": "sha256:" + "0" * 64}},
    "cases": {name: {"source": "-", "learn2reg": None, "subjects": ["a", "a"]} for name in ("one", "two")},
    "truth": {
        "grade": "expert",
        "by": "us",
        "checked": "by us",
        "limits": "none",
        "labels": {"1": "lung", "7": "heart"},
    },
}
NOW = {
    "metrics": {"dice": 0.7, "hd95": 3.0, "tre": 1.5, "tre_p95": 2.0, "sdlogj": 0.1, "folds": 0.02, "folds_body": 0.01},
    "labels": {"dice": {"1": 0.9, "7": 0.5}, "hd95": {"1": 2.0, "7": 4.0}},
    "landmarks": {"tre": (1.0, 3.0, 0.5)},
}
BEFORE = {
    "metrics": {"dice": 0.5, "hd95": 6.0, "tre": 2.0, "tre_p95": 4.5, "sdlogj": 0.0, "folds": 0.0},
    "labels": {"dice": {"1": 0.4, "7": 0.6}, "hd95": {"1": 8.0, "7": 4.0}},
    "landmarks": {"tre": (5.0, 1.0, 0.0)},
}


class World:
    def __init__(self, folder):
        self.folder = folder
        self.describe()
        results.machine_here(resources.roots(), name="host")

    def describe(self, **changes):
        path = self.folder / "share" / "datasets" / "made" / "dataset.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(DOCUMENT | changes))

    def row(self, method="demons", case="one", *, machine="host", error=None, checksums=CHECKSUMS, **values):
        metrics = values.pop("metrics")
        row = results.new_row(metrics, **values, method_version="1", error=error)
        results.add_row(Line(self.folder / "results", machine, method, "made"), case, row, checksums=checksums)

    def build(self):
        folder = self.folder / "corpus" / "made" / "one"
        labels = np.zeros(GRID.shape, np.uint8)
        labels[2:8, 4:12, 3:10], labels[8:11, 12:18, 8:14] = 1, 7
        images = {"fixed": labels * 30.0, "moving": labels * 30.0}
        images |= {"truth/fixed_labels": labels, "truth/moving_labels": labels}
        for name, voxels in images.items():
            kind = "labels" if "labels" in name else "image"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            blocks.write_image(folder / f"{name}.ome.zarr", blocks.image_of(voxels, GRID, unit="mm", kind=kind))
        write_landmarks(folder / "truth" / "fixed_landmarks.csv", FIXED)
        write_landmarks(folder / "truth" / "moving_landmarks.csv", MOVING)
        return folder


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in ("share", "results", "corpus"):
        monkeypatch.setenv(f"FIDOPT_{name.upper()}", str(tmp_path / name))
    return World(tmp_path)


def explained(capsys, *words):
    assert main(["explain", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_labels_and_landmarks_come_with_what_they_cost_the_worst_first(world, capsys):
    world.row(**NOW)
    world.row("identity", **BEFORE)
    world.build()
    document = explained(capsys, "demons", "made", "one")
    heart, lung = document["labels"]
    assert (heart["label"], heart["name"], heart["dice"], heart["dice_before"]) == ("7", "heart", 0.5, 0.6)
    assert heart["cost"] == pytest.approx(0.25)
    assert heart["share"] == pytest.approx(0.5 / 0.6)
    assert lung["share"] == pytest.approx(0.1 / 0.6)
    assert (lung["hd95"], lung["hd95_before"], lung["state"]) == (2.0, 8.0, "")
    # What the labels cost is what the mean lacks to 1.
    assert heart["cost"] + lung["cost"] == pytest.approx(1 - 0.7)
    worst = document["landmarks"][0]
    assert (worst["number"], worst["error"], worst["before"]) == (2, 3.0, 1.0)
    assert worst["position"] == pytest.approx(FIXED[1].tolist())
    assert worst["share"] == pytest.approx(3 / 4.5)
    assert [one["number"] for one in document["landmarks"]] == [2, 1, 3]
    metrics = {one["metric"]: one for one in document["metrics"]}
    assert metrics["dice"]["better"] == pytest.approx(0.2)
    assert metrics["tre"]["better"] == pytest.approx(0.5)
    assert document["regularity"] == [
        {"place": "whole field", "sdlogj": 0.1, "folds": 0.02},
        {"place": "body", "sdlogj": None, "folds": 0.01},
    ]
    assert document["notes"] == []


def test_tables_say_the_same_in_words(world, capsys):
    world.row(**NOW)
    world.row("identity", **BEFORE)
    world.build()
    assert main(["explain", "demons", "made", "one", "--most", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("demons on made/one (host)\n")
    assert "7 heart" in out
    # Each of the two says of what it is: a narrow terminal has them in different tables.
    assert "unregistered Dice" in out
    assert "unregistered HD95 mm" in out
    assert "the 2 worst of 3" in out
    assert "2 of 3 landmarks are farther from their place than before" in out
    assert ", ".join(f"{v:.2f}" for v in FIXED[1]) in out
    assert "SDlogJ" in out


def test_landmarks_without_an_error_are_not_told_to_be_no_farther_than_before(world, capsys):
    nan = float("nan")
    nothing = {"landmarks": {"tre": (nan,) * len(FIXED)}, "metrics": {"tre": None}, "reasons": {"tre": "none is left"}}
    world.row(**{**NOW, **nothing})
    world.row("identity", **BEFORE)
    world.build()
    assert main(["explain", "demons", "made", "one"]) == 0
    out = capsys.readouterr().out
    assert "TRE: none is left" in out
    assert "farther from their place" not in out


def test_without_a_case_or_a_reference_the_numbers_stand_and_a_line_says_what_is_not_known(world, capsys):
    world.row(**NOW)
    document = explained(capsys, "demons", "made", "one")
    assert document["landmarks"][0]["position"] is None
    assert document["landmarks"][0]["before"] is None
    assert document["labels"][0]["dice_before"] is None
    reference, built = document["notes"]
    assert "fidopt run identity made one" in reference
    assert "fidopt build made one" in built
    world.build()
    # Before, a landmark is as far off as the two points are apart.
    assert [one["before"] for one in explained(capsys, "demons", "made", "one")["landmarks"]] == [1.0, 5.0, 0.0]


def test_the_reference_is_of_the_same_files_and_rather_of_the_same_machine(world, capsys):
    world.row(**NOW)
    world.row("identity", **BEFORE, checksums="sha256:" + "cd" * 32)
    assert explained(capsys, "demons", "made", "one")["labels"][0]["dice_before"] is None
    results.machine_here(resources.roots(), name="other")
    world.row("identity", **BEFORE, machine="other")
    assert explained(capsys, "demons", "made", "one")["labels"][0]["dice_before"] == 0.6


def test_a_row_of_before_the_values_were_kept_says_so_in_one_line(world, capsys):
    world.row(metrics=NOW["metrics"])
    world.row("identity", **BEFORE)
    world.build()
    assert main(["explain", "demons", "made", "one"]) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if "the row holds no values by label" in line]) == 1
    assert len([line for line in out.splitlines() if "the row holds no values by landmark" in line]) == 1
    assert "fidopt run demons made one --again all" in out


def test_a_failed_row_says_what_stands_for_it(world, capsys):
    from fidopt.descriptors.rows import Failure

    world.row(**BEFORE, error=Failure(stage="timeout", reason="run.sh was ended after 20 s"))
    assert main(["explain", "demons", "made", "one"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("demons on made/one (host) failed (timeout: run.sh was ended after 20 s)")
    assert "unregistered pair" in first


def test_an_erased_label_is_lost(world, capsys):
    labels = {"dice": {"1": 0.9, "7": 0.0}, "hd95": {"1": 2.0, "7": None}}
    world.row(metrics={"dice": 0.45, "hd95": 2.0}, labels=labels)
    assert [one["state"] for one in explained(capsys, "demons", "made", "one")["labels"]] == ["lost", ""]


SEGMENTATION = {"task": "segmentation", "modalities": {"image": "ct"}}
ABSENT = {
    "dice": {"1": 0.0, "7": 0.0},
    "hd95": {"1": None, "7": None},
    "surface_dice": {"1": 0.0, "7": 0.0},
}


@pytest.mark.parametrize(
    ("held", "produced", "invented", "states"),
    [(2, 0, 0, ["missing"] * 2), (0, 0, 2, ["invented"] * 2), (1, 0, 1, ["missing or invented"] * 2)],
)
def test_a_structure_is_missing_or_invented(world, capsys, held, produced, invented, states):
    world.describe(**SEGMENTATION)
    counts = {"structures": held, "structures_produced": produced, "structures_invented": invented}
    world.row(metrics={"dice": 0.0, "surface_dice": 0.0, **counts}, labels=ABSENT)
    document = explained(capsys, "demons", "made", "one")
    assert [one["state"] for one in document["labels"]] == states
    assert [one["share"] for one in document["labels"]] == [0.5, 0.5]
    if len(set(states)) == 1 and "or" in states[0]:
        # The built case tells.
        truth = np.zeros(GRID.shape, np.uint8)
        truth[2:4, 2:4, 2:4] = 7
        path = world.folder / "corpus" / "made" / "one" / "truth" / "labels.ome.zarr"
        path.parent.mkdir(parents=True)
        blocks.write_image(path, blocks.image_of(truth, GRID, unit="mm", kind="labels"))
        told = {one["label"]: one["state"] for one in explained(capsys, "demons", "made", "one")["labels"]}
        assert told == {"1": "invented", "7": "missing"}


def test_a_synthesis_is_told_by_region(world, capsys):
    truth = DOCUMENT["truth"] | {"labels": {}, "dynamic_range": 100.0}
    world.describe(task="synthesis", modalities={"source": "mr", "target": "ct"}, truth=truth)
    regions = {
        "mae": {"inside": 2.0, "quarter 1": 1.0, "quarter 2": 3.0},
        "bias": {"inside": -1.0, "quarter 1": 0.0, "quarter 2": -2.0},
        "voxels": {"inside": 8, "quarter 1": 4, "quarter 2": 4},
        "low": {"quarter 1": 0, "quarter 2": 5},
        "high": {"quarter 1": 5, "quarter 2": 9},
    }
    world.row(metrics={"mae": 2.0, "psnr": 20.0, "ssim": 0.9}, regions=regions)
    inside, first, second = explained(capsys, "demons", "made", "one")["regions"]
    assert (inside["region"], inside["share"], inside["low"]) == ("inside", None, None)
    assert (first["share"], second["share"]) == (0.25, 0.75)
    assert main(["explain", "demons", "made", "one", "--picture", str(world.folder / "p.png")]) == 0
    assert "5 to 9" in capsys.readouterr().out
    picture = iio.imread(world.folder / "p.png")
    assert (picture == np.array(MADE, np.uint8)).all(axis=-1).sum() > 1000


@pytest.mark.parametrize("built", [True, False])
def test_a_picture_shows_bars_and_where_it_lies(world, capsys, built):
    world.row(**NOW)
    world.row("identity", **BEFORE)
    if built:
        world.build()
    place = world.folder / "why.png"
    assert main(["explain", "demons", "made", "one", "--picture", str(place), "--json"]) == 0
    out = capsys.readouterr()
    json.loads(out.out)
    assert "drawn in" in out.err
    picture = iio.imread(place)
    assert (picture == np.array(MADE, np.uint8)).all(axis=-1).sum() > 1000
    assert (picture == np.array(TRUE, np.uint8)).all(axis=-1).sum() > 5 * 32
    assert (picture.shape[0] > 700) == built
    again = place.read_bytes()
    assert main(["explain", "demons", "made", "one", "--picture", str(place)]) == 0
    assert place.read_bytes() == again


def test_the_picture_of_the_unregistered_pair_holds_it_against_nothing(world, capsys):
    world.row("identity", **BEFORE)
    world.build()
    place = world.folder / "why.png"
    assert main(["explain", "identity", "made", "one", "--picture", str(place)]) == 0
    capsys.readouterr()
    assert not (iio.imread(place) == np.array(TRUE, np.uint8)).all(axis=-1).any()


def test_other_landmarks_than_were_scored_are_refused(world, capsys):
    world.row(**NOW | {"landmarks": {"tre": (1.0, 2.0)}})
    world.build()
    assert main(["explain", "demons", "made", "one"]) == 2
    assert "has 3 landmarks and the row has the errors of 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demons", "made"], "made has 2 cases; name the one to explain: one, two"),
        (["demons", "made", "three"], "made has no case 'three'"),
        (["demons", "made", "two"], "demons has no row of made/two on host; it has one of: one"),
        (["nobody", "made", "one"], "/results, only of demons; write some: fidopt run nobody made"),
        (["demons", "made", "one", "--results", "none"], "no rows of demons on made in none nor of another method;"),
        (["demons", "made", "one", "--machine", "mars"], "no rows from the machine mars"),
        (["demons", "nowhere", "one"], "nowhere"),
        (["demons", "made", "one", "--most", "0"], "--most"),
        (["demons", "made", "one", "--picture", "p.jpg"], "--picture writes a PNG file"),
    ],
)
def test_wrong_use_is_one_line(world, capsys, words, said):
    world.row(**NOW)
    assert main(["explain", *words]) == 2
    out = capsys.readouterr()
    assert (out.out, out.err.count("\n")) == ("", 1)
    assert said in out.err


def test_a_method_on_two_machines_needs_a_name(world, capsys):
    results.machine_here(resources.roots(), name="other")
    world.row(**NOW)
    world.row(**BEFORE, machine="other")
    assert main(["explain", "demons", "made", "one"]) == 2
    assert "measured on several machines; name one of them with --machine: host, other" in capsys.readouterr().err
    assert explained(capsys, "demons", "made", "one", "--machine", "other")["metrics"][0]["value"] == 0.5
