"""Every dataset that the protocol names is described, with what it says of each and without what nobody knows yet."""

from __future__ import annotations

import json

import pytest

from fidopt import corpus, resources
from fidopt.descriptors.base import parse
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import DescriptorError, UsageError

LEARN2REG = {
    "LungCT": 3,
    "NLST": 10,
    "ThoraxCBCT": 6,
    "HippocampusMR": 60,
    "OASIS": 19,
    "AbdomenCTCT": 45,
    "AbdomenMRCT": 3,
}
SYNTHRAD = [
    f"SynthRAD{year}_{region}_{kind}"
    for year, regions in ((2023, ("Brain", "Pelvis")), (2025, ("HeadNeck", "Thorax", "Abdomen")))
    for region in regions
    for kind in ("MRCT", "CBCTCT")
]
NO_LEGACY = ("Lung250M", "POPI", "LUMIR", "RESECT", "SpineUSCT", "ANHIR", *SYNTHRAD)

#: The protocol's table, typed from it: dataset, transform, then each measure with its mean, lowest and highest case.
TABLE = """
AMOS_CTCT rigid dice .26 .16 .35
LungDIRQA rigid tre 6.0 2.2 12.5
AbdomenDIRQA rigid tre 7.4 4.4 12.3
LiverDIRQA rigid tre 2.4 1.3 6.6
Mindboggle101 affine dice .34 .30 .38
AFIDs affine tre 2.9 2.3 3.9
muRegPro translation dice .84 - - tre 5.8 2.4 10.3
ProstateMRUS translation dice .82 .75 .86
QINProstateRepeat translation dice .74 .67 .83
PelvicReference rigid tre 1.9 1.1 3.0
RIDERLungCT rigid dice .73 .37 .87
UltraCortex rigid dice .54 .53 .56
PDDCA rigid dice .37 - - tre 10.2 5.0 13.2
PediatricCT rigid dice .34 .18 .48
BOBs rigid dice .62 .47 .74
LCTSC translation dice .42 .32 .53
VerSe translation tre 9.4 - -
SpineGeneric translation tre 7.1 - -
SPIDER rigid
LUNA25 rigid tre 3.0 1.5 4.8
LongitudinalCT rigid tre 14.9 6.7 32.2
HNTSMRG rigid tre 3.6 1.0 8.8
CTColonography rigid dice .46 .35 .59
BreastNACT rigid dice .47 .06 .78
AMOS_MRMR rigid dice .33 .23 .41
PancreasCT8 rigid dice .35 .21 .53
KneeMR rigid dice .52 .42 .65
TopCoW rigid dice .57 .32 .63
CervixMR rigid tre 9.1 3.5 17.5
MSLesSeg rigid dice .79 .66 .83
PROMISE12 translation dice .72 .55 .86
HNCBCTCT rigid dice .72 .61 .82
MCRIB affine dice .48 .44 .52
NeuroPAL affine tre .0059 .0052 .0064
MouseMicroCT translation dice .44 .14 .64
LiverUSCT rigid tre 6.2 2.7 9.8
InnerEarCT rigid dice .57 .51 .65
MyocardialSPECT translation dice .78 .63 .86
TongueMR translation dice .59 .48 .72
HandMR rigid tre 28.3 9.7 39.6
HQColon rigid dice .51 .31 .65
PigCardiacCT translation dice .73 .48 .87
TotalSegMRI rigid dice .27 .18 .41
CRLMCT translation dice .26 .19 .33
TopBrain rigid dice .48 .37 .54
RibSeg rigid dice .06 .00 .25 hd95 32 22 52
ToothCBCT rigid dice .54 .41 .61
PSMAFollowUp rigid tre 8.1 5.9 15.5
FIRE rigid tre 9.9 1.2 18.9
COph100 rigid tre 9.4 3.1 20.2
CSXA affine tre 3.1 1.7 5.8
AarizCeph affine tre 3.8 2.4 6.1
WxBS affine tre 22.1 3.8 45.2
HPatches affine tre 70.7 17.0 109.8
"""
ROWS = [line.split() for line in TABLE.split("\n") if line]


@pytest.fixture(scope="module")
def catalogue():
    return {dataset.name: dataset for dataset in corpus.datasets(resources.roots())}


def test_every_dataset_the_protocol_names_is_described(catalogue):
    named = {*(row[0] for row in ROWS), *(f"L2R_{task}" for task in LEARN2REG), *NO_LEGACY}
    assert len(named) == 54 + 7 + 16
    assert sorted(named - set(catalogue)) == []


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_a_legacy_alignment_left_stands_as_the_table_has_it(catalogue, row):
    name, transform, *measures = row
    legacy = catalogue[name].alignment.legacy
    assert legacy.transform == transform
    expected = {
        measures[i]: tuple(None if text == "-" else float(text) for text in measures[i + 1 : i + 4])
        for i in range(0, len(measures), 4)
    }
    assert {key: spread for key, spread in legacy.left.model_dump().items() if spread is not None} == expected


def test_no_other_dataset_holds_a_legacy_alignment(catalogue):
    assert {name for name, d in catalogue.items() if d.alignment.legacy} == {row[0] for row in ROWS}


def test_an_affine_legacy_says_that_none_is_made_any_more(catalogue):
    affine = [name for name, d in catalogue.items() if d.alignment.legacy and d.alignment.legacy.transform == "affine"]
    assert len(affine) == 8
    assert all("refused now" in catalogue[name].alignment.legacy.note for name in affine)


@pytest.mark.parametrize(("task", "pairs"), LEARN2REG.items())
def test_a_learn2reg_task_holds_all_its_official_validation_pairs(catalogue, task, pairs):
    dataset = catalogue[f"L2R_{task}"]
    assert len(dataset.cases) == pairs
    assert dataset.alignment.mode == "as-delivered"
    assert len({case.learn2reg for case in dataset.cases.values()}) == pairs
    assert all(case.startswith(f"{task}_") and entry.source == "learn2reg" for case, entry in dataset.cases.items())


def test_the_pairs_of_learn2reg_keep_the_challenges_names(catalogue):
    cases = {task: catalogue[f"L2R_{task}"].cases for task in LEARN2REG}
    assert cases["NLST"]["NLST_0110"].learn2reg == "0110_0110"
    assert cases["AbdomenCTCT"]["AbdomenCTCT_0025_0028"].subjects == ("0025", "0028")
    assert cases["HippocampusMR"]["HippocampusMR_0201_0260"].learn2reg == "0201_0260"
    assert cases["ThoraxCBCT"]["ThoraxCBCT_0013_0002"].learn2reg == "0013_0002_0013_0000"


@pytest.mark.parametrize("numbers", ["0011", "0011_0001_0011", "11_12", "0011_0001_0011_0000_0001"])
def test_other_counts_of_numbers_are_no_learn2reg_pair(described, numbers):
    document = described(cases={"one": {"source": "learn2reg", "learn2reg": numbers, "subjects": ["a"]}})
    with pytest.raises(DescriptorError, match=r"cases\.one\.learn2reg: must be Learn2Reg's numbers, as in '0001_0001'"):
        parse(Dataset, json.dumps(document), where="dataset.json")


def test_grades_are_those_the_protocol_gives(catalogue):
    assert {catalogue[name].truth.grade for name in (*SYNTHRAD, "LUMIR", "L2R_NLST")} == {"automatic"}
    assert {catalogue[f"{organ}DIRQA"].truth.grade for organ in ("Lung", "Abdomen", "Liver")} == {"semi-automatic"}
    assert {name for name, d in catalogue.items() if d.to_fill and d.warp} == {"SPIDER"}
    assert catalogue["SPIDER"].truth.grade == "synthetic"


def test_labels_that_a_network_drew_beside_landmarks_are_not_ranked(catalogue):
    for name in ("POPI", "LungDIRQA"):
        assert {"dice", "hd95"} <= set(catalogue[name].unranked)
    assert catalogue["InnerEarCT"].unranked == ("tre",)


def test_rigid_registration_is_of_one_dataset(catalogue):
    assert [name for name, d in catalogue.items() if d.registration == "rigid"] == ["SpineUSCT"]
    assert catalogue["SpineUSCT"].alignment.mode == "as-delivered"


def test_images_of_two_dimensions_are_in_pixels_or_in_the_providers_unit(catalogue):
    units = {name: d.unit for name, d in catalogue.items() if d.to_fill and d.dimension == 2}
    assert units == {
        "ANHIR": "px", "AarizCeph": "mm", "COph100": "px", "CSXA": "mm", "FIRE": "px", "HPatches": "px", "WxBS": "px"
    }  # fmt: skip


def test_nothing_is_ranked_under_a_licence_that_nobody_looked_up(catalogue):
    unknown = [d for d in catalogue.values() if "spdx" in d.to_fill]
    assert len(unknown) == 75
    assert {d.spdx for d in unknown} == {"LicenseRef-to-fill"}
    assert not corpus.data_terms("LicenseRef-to-fill").ranked


def test_a_dataset_that_is_only_described_is_refused_with_what_is_missing(catalogue):
    with pytest.raises(UsageError, match=r"FIRE is described and not filled yet: .* source, cases, draw"):
        corpus.filled(catalogue["FIRE"])


def test_a_misspelled_name_among_many_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"there is no 'mindboggle' in .*; did you mean 'Mindboggle101'\?; there are"):
        corpus.dataset("mindboggle", resources.roots())
    with pytest.raises(UsageError, match=r"there is no 'xyz123' in [^;]*; there are: "):
        corpus.dataset("xyz123", resources.roots())


def test_learn2regs_tasks_that_miss_a_check_say_since_when_they_stand(catalogue):
    held = {name: dataset.checks for name, dataset in catalogue.items() if name.startswith("L2R_") and dataset.checks}
    assert sorted(held) == ["L2R_AbdomenMRCT", "L2R_LungCT", "L2R_NLST", "L2R_OASIS", "L2R_ThoraxCBCT"]
    assert not any(checks.passed for checks in held.values())
    assert all("before these checks were asked for (2026-10-11)" in checks.reason for checks in held.values())
