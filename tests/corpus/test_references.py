"""The organisers' figures beside a dataset: their zero fields to check ours against, their tables to look at."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fidopt import corpus, resources

SPACING = (1.75, 1.25, 1.75)


def beside(name, file):
    path = corpus.dataset_folder(name, resources.roots()) / file
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["lungct_points", "L2R_LungCT"])
def test_the_zero_field_of_lungct_is_the_distance_of_the_organisers_points(name, shared_data):
    zero = beside(name, "official_zero.json")
    for folder, key in (("landmarksTr", "tre"), ("keypointsTr", "tre_keypoints")):
        means = {}
        for case in zero["cases"]:
            paths = [shared_data("lungct_points") / folder / f"{case}_000{side}.csv" for side in (0, 1)]
            fixed, moving = (np.loadtxt(path, delimiter=",") * SPACING for path in paths)
            means[case] = np.linalg.norm(fixed - moving, axis=1).mean()
        assert means == pytest.approx({case: row[key] for case, row in zero["cases"].items()}, abs=5e-7)
        assert np.mean(list(means.values())) == pytest.approx(zero["mean"][key], abs=5e-7)


@pytest.mark.parametrize("name", ["lungct_points", "L2R_LungCT"])
def test_the_cases_of_a_zero_field_are_the_datasets(name):
    assert list(beside(name, "official_zero.json")["cases"]) == list(corpus.dataset(name, resources.roots()).cases)


def test_the_published_rows_of_lungct_are_those_of_the_challenge():
    rows = {row["method"]: row for row in beside("L2R_LungCT", "published.json")["rows"]}
    assert (round(rows["ConvexAdam"]["tre"], 2), round(rows["ConvexAdam"]["sdlogj"], 2)) == (1.79, 0.06)
    assert (round(rows["corrField"]["tre"], 2), round(rows["corrField"]["sdlogj"], 2)) == (1.75, 0.05)
    assert rows["no registration"] == {"method": "no registration", "tre": 10.235}


@pytest.mark.parametrize(("name", "entries"), [("L2R_LungCT", 19), ("L2R_OASIS", 21), ("L2R_AbdomenMRCT", 14)])
def test_published_rows_name_their_source_and_that_it_is_a_hidden_test_set(name, entries):
    published = beside(name, "published.json")
    assert published["source"].startswith("https://github.com/MDL-UzL/L2R")
    assert "hidden test pairs" in published["source"]
    assert len({row["method"] for row in published["rows"]}) == len(published["rows"]) == entries
