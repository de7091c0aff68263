"""Tracks, families, structures and screening: the lists that say how datasets, names and decisions hang together."""

from __future__ import annotations

from collections import Counter

import pytest

from fidopt import corpus, resources

#: In no track: drawn from a seed that everybody can read (the demonstration), or from each machine's own.
UNTRACKED = {"brain", "retina", "ovule", "mouse_brain", "slide"}


@pytest.fixture(scope="module")
def catalogue():
    return {dataset.name: dataset for dataset in corpus.datasets(resources.roots())}


@pytest.fixture(scope="module")
def tracks():
    return corpus.tracks(resources.roots()).root


@pytest.fixture(scope="module")
def structures():
    return corpus.structures(resources.roots())


def test_a_dataset_stands_in_one_track_and_what_cannot_be_compared_in_none(tracks, catalogue):
    counted = Counter(name for track in tracks.values() for name in track.datasets)
    assert set(counted.values()) == {1}
    assert set(counted) == set(catalogue) - UNTRACKED


def test_a_track_asks_of_a_method_what_its_datasets_do(tracks, catalogue):
    for name, track in tracks.items():
        assert {catalogue[one].task for one in track.datasets} == {track.task}, name


def test_main_tracks_hold_truths_that_people_made_or_checked(tracks, catalogue):
    grades = {
        name: {catalogue[one].truth.grade for one in track.datasets}
        for name, track in tracks.items()
        if track.main and name != "learn2reg"
    }
    assert len(grades) > 15
    assert {grade for found in grades.values() for grade in found} == {"expert", "semi-automatic"}
    assert all(
        tracks[name].truth == ("semi-automatic" if "semi-automatic" in found else "expert")
        for name, found in grades.items()
    )


def test_no_main_track_ranks_on_a_truth_whose_grade_is_a_guess(tracks, catalogue):
    guessed = {name for name, dataset in catalogue.items() if "truth.grade" in dataset.to_fill}
    apart = {one for track in tracks.values() if track.apart for one in track.datasets}
    learn2reg = {name for name in guessed if name.startswith("L2R_")}
    assert guessed - learn2reg <= apart
    assert learn2reg == {"L2R_ThoraxCBCT"}


def test_networks_labels_and_known_deformations_are_ranked_apart(tracks):
    automatic = {one for track in tracks.values() if track.truth == "automatic" for one in track.datasets}
    assert {name for name in automatic if not name.startswith("SynthRAD")} == {"LUMIR"}
    assert len(automatic) == 11
    assert [name for name, track in tracks.items() if track.truth == "synthetic"] == ["synthetic"]
    assert not any(track.main for track in tracks.values() if track.truth in {"automatic", "synthetic"})


def test_the_lung_track_ranks_on_lung250m_and_learn2reg_keeps_its_own(tracks):
    assert "Lung250M" in tracks["lung"].datasets
    assert {name for name in tracks["learn2reg"].datasets if name.startswith("L2R_")} == set(
        tracks["learn2reg"].datasets
    )
    assert len(tracks["learn2reg"].datasets) == 7
    assert tracks["rigid"].datasets == ("SpineUSCT",)


def test_sets_that_miss_a_check_stand_apart_with_the_reason(tracks):
    reasons = {one: track.apart for track in tracks.values() for one in track.datasets}
    assert "one pair" in reasons["lung_ct"]
    assert "two pairs" in reasons["histology"]
    assert "L2R_LungCT" in reasons["lungct_points"]
    assert "L2R_HippocampusMR" in reasons["hippocampus_mr"]


def test_families_name_datasets_of_one_kind_of_task(catalogue):
    families = corpus.families(resources.roots()).root
    named = {name for family in families.values() for name in family}
    assert named <= set(catalogue)
    assert all(len({catalogue[name].task for name in family}) == 1 for family in families.values())
    described = {name for name, dataset in catalogue.items() if dataset.to_fill}
    assert described <= named


def test_what_was_screened_out_says_why_and_is_no_dataset(catalogue):
    screened = corpus.screening(resources.roots()).root
    assert "L2R_LungCT" in screened["Lung250M_LungCT"].reason
    assert "25 pairs" in screened["LiverDIRQA_shared"].reason
    assert {entry.decision for entry in screened.values()} == {"out"}
    assert not set(screened) & set(catalogue)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("oesophagus", "esophagus"),
        ("left_kidney", "kidney_left"),
        ("kidney left", "kidney_left"),
        ("postcava", "inferior_vena_cava"),
        ("spinal cord", "spinal_cord"),
        ("grey matter", "grey_matter"),
        ("anterior hippocampus", "hippocampus_anterior"),
        ("primary tumour", "primary_tumor"),
        ("L5", "vertebrae_L5"),
        ("r_pca", "posterior_cerebral_artery_right"),
        ("somewhere else", "somewhere else"),
    ],
)
def test_a_structure_has_one_name(structures, written, name):
    assert structures.canonical(written) == name


def test_unions_are_made_of_what_is_listed(structures):
    assert structures.parts("kidneys") == ("kidney_left", "kidney_right")
    assert len(structures.parts("lungs")) == 5
    assert len(structures.parts("vertebrae")) == 24
    assert len(structures.parts("ribs")) == 24
    assert structures.parts("hippocampus") == ("hippocampus_anterior", "hippocampus_posterior")
    assert {part for entry in structures.root.values() for part in entry.of} <= set(structures.root)


def test_left_and_right_never_meet(structures):
    for name, entry in structures.root.items():
        for side, other in (("left", "right"), ("right", "left")):
            if name.endswith(f"_{side}"):
                assert not any(other in synonym for synonym in entry.synonyms), name
                assert all(part.endswith(f"_{side}") for part in entry.of), name


def test_the_names_datasets_use_are_listed(structures, catalogue):
    known = {*structures.root, *(synonym for entry in structures.root.values() for synonym in entry.synonyms)}
    used = {label for dataset in catalogue.values() for label in dataset.truth.labels.values()}
    assert sorted(used - known) == ["first region", "second region"]
