"""Tracks, families, structures and screening fit the datasets, and all that does not is said at once."""

from __future__ import annotations

import json

import pytest

from fidopt import corpus
from fidopt.descriptors.base import parse
from fidopt.descriptors.structures import Structures
from fidopt.errors import DescriptorError

SEGMENTATION = {
    "task": "segmentation",
    "modalities": {"image": "ct"},
    "truth": {"grade": "expert", "by": "a", "checked": "b", "limits": "c", "labels": {"1": "left kidney"}},
}
UNKNOWN = "is a structure that neither this file nor a dataset names"
CURE = "rank it in a track of that truth, or say in apart why they stand together"
TRUTH = {"grade": "expert", "by": "a", "checked": "b", "limits": "c"}


@pytest.fixture
def share(make, described):
    """A share of the test's own, and a function that describes a dataset in it or writes a list beside it."""
    _, roots = make({"one-fixed.nii.gz": b""}, truth=TRUTH)
    folder = roots.share[0] / "datasets"
    source = {"url": "u", "files": {"a": "sha256:" + "0" * 64}}

    def write(name, document=None, **changes):
        if name.endswith(".json"):
            (folder / name).write_text(json.dumps(document))
        else:
            (folder / name).mkdir()
            changes = {"truth": TRUTH, "source": source} | changes
            (folder / name / "dataset.json").write_text(json.dumps(described(name=name, **changes)))

    write("scans", **SEGMENTATION)
    write("phantom", registration="rigid")
    write("drawn", truth=TRUTH | {"grade": "automatic"})
    return write, roots


def found(read, roots):
    """Return what is wrong, without the file's own name."""
    with pytest.raises(DescriptorError) as caught:
        read(roots)
    return [problem.split(".json: ", 1)[1] for problem in caught.value.problems]


def track(*datasets, **changes):
    return {"title": "T", "datasets": list(datasets), "truth": "expert"} | changes


def test_an_own_track_stands_beside_the_packaged_ones_and_may_take_one_s_place(share):
    write, roots = share
    packaged = {name for name in corpus.tracks(roots).root if name}
    write("tracks.json", {"mine": track("tiny"), "lung": track("tiny", title="Mine")})
    tracks = corpus.tracks(roots).root
    assert set(tracks) == packaged | {"mine"}
    assert tracks["lung"].title == "Mine"
    assert tracks["mine"].main


def test_what_is_wrong_with_a_track_is_said_at_once(share):
    write, roots = share
    write(
        "tracks.json",
        {
            "a": track("tinny"),
            "b": track("tiny", "scans"),
            "c": track("tiny", "phantom"),
            "d": track("drawn"),
            "tiny": track("tiny"),
            "e": track("tinny", title=""),
            "f": 3,
            "g": track(),
            "h": track("drawn", apart="labels of a network, as the challenge has them"),
            "i": track("drawn", truth="automatic"),
            "j": track("phantom"),
            "k": track("scans", task="segmentation"),
        },
    )
    assert sorted(found(corpus.tracks, roots)) == sorted(
        [
            "a.datasets: there is no dataset 'tinny'; did you mean 'tiny'?",
            "b.datasets: scans is a segmentation, and the track's task is registration",
            "c.datasets: phantom is registered rigidly, and stands in a track of its own",
            f"d.datasets: drawn's truth is automatic, and the track stands for truths that people made; {CURE}",
            "tiny: is a dataset's name too, so nobody could tell whose leaderboard is meant; choose another",
            'e.title: must not be empty, got ""',
            "e.datasets: there is no dataset 'tinny'; did you mean 'tiny'?",
            "f: must be an object, got 3",
            "g.datasets: must not be empty, got []",
        ]
    )


def test_what_is_wrong_with_a_family_is_said_at_once(share):
    write, roots = share
    write("families.json", {"a": ["tiny", "none_such"], "b": ["tiny", "scans"], "c": ["tiny", "tiny"], "d": ["scans"]})
    assert found(corpus.families, roots) == [
        'c: must name each once (tiny), got ["tiny", "tiny"]',
        "a: there is no dataset 'none_such'",
        "b: tiny is a registration and scans is a segmentation; settings are chosen for one task",
    ]


def test_what_is_wrong_with_structures_is_said_at_once(share):
    write, roots = share
    write(
        "structures.json",
        {
            "esophagus": {"synonyms": ["oesophagus", "gullet"]},
            "gullet": {},
            "throat": {"synonyms": ["oesophagus"]},
            "kidneys": {"of": ["left kidney", "right kidny"]},
            "right kidney": {},
            "whole": {"of": ["half"]},
            "half": {"of": ["whole"]},
            "odd": {"synonyms": "none"},
        },
    )
    assert found(corpus.structures, roots) == [
        'odd.synonyms: must be a list, got "none"',
        "throat.synonyms: oesophagus is claimed by esophagus too",
        "esophagus.synonyms: gullet is a structure of its own here",
        "whole.of: goes round in a circle: whole of half of whole",
        f"kidneys.of: 'right kidny' {UNKNOWN}; did you mean 'right kidney'?",
    ]


def test_an_own_structure_may_not_claim_what_a_packaged_one_does(share):
    write, roots = share
    write("structures.json", {"my_liver": {"synonyms": ["spleen", "oesophagus"]}})
    with pytest.raises(DescriptorError) as caught:
        corpus.structures(roots)
    assert len(caught.value.problems) == 2
    assert all("structures.json, beside the packaged structures.json: " in one for one in caught.value.problems)


def test_what_was_screened_out_is_not_here_and_what_was_taken_in_is(share):
    write, roots = share
    decided = {"tiny": "out", "tinny": "in", "gone": "out", "scans": "apart", "absent": "apart"}
    write("screening.json", {name: {"decision": one, "reason": "r"} for name, one in decided.items()})
    assert found(corpus.screening, roots) == [
        "tiny.decision: is 'out', and the dataset is here; remove its folder, or decide otherwise",
        "tinny.decision: is 'in', and there is no dataset 'tinny'; did you mean 'tiny'?",
        "absent.decision: is 'apart', and there is no dataset 'absent'",
    ]


def test_a_dataset_that_is_unsound_is_known_by_name(share):
    write, roots = share
    write("broken", title=3)
    write("families.json", {"a": ["tiny", "broken"]})
    assert corpus.families(roots).root["a"] == ("tiny", "broken")


STRUCTURES = {
    "kidneys": {"synonyms": ["both kidneys"], "of": ["kidney_left", "kidney_right"]},
    "kidney_left": {"synonyms": ["left kidney"]},
    "kidney_right": {},
    "organs": {"of": ["both kidneys", "left kidney", "liver"]},
}


def test_names_lead_to_one_and_unions_to_their_parts():
    read = parse(Structures, json.dumps(STRUCTURES), where="f")
    assert [read.canonical(name) for name in ("left kidney", "kidney_left", "liver")] == ["kidney_left"] * 2 + ["liver"]
    assert read.parts("organs") == ("kidney_left", "kidney_right", "liver")
    assert read.parts("left kidney") == ("kidney_left",)
