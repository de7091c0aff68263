"""The JSON Schemas take what fidopt takes, refuse what it refuses of single values, and explain every key."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from fidopt import cli
from fidopt.descriptors.base import dump, load, parse
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.deployment import read_deployment
from fidopt.descriptors.schemas import KINDS, schema
from fidopt.errors import DescriptorError, UsageError

ROOT = Path(__file__).parents[2]
SHIPPED = {
    "dataset": sorted(ROOT.glob("datasets/*/dataset.json")),
    "pool": sorted(ROOT.glob("datasets/*/pool.json")),
    "checksums": sorted(ROOT.glob("datasets/*/checksums*.json")),
    "published": sorted(ROOT.glob("datasets/*/published.json")),
    "official_zero": sorted(ROOT.glob("datasets/*/official_zero.json")),
    "method": sorted(ROOT.glob("methods/*/method.json")),
    "deployment": sorted(ROOT.glob("deploy/*.yml")),
    **{kind: [ROOT / "datasets" / f"{kind}.json"] for kind in ("tracks", "families", "structures", "screening")},
}
DIGEST = "sha256:" + "0" * 64
#: One sound document of each kind.
SOUND = {
    "dataset": json.loads((ROOT / "datasets/lung_ct/dataset.json").read_text()),
    "pool": {"cases": {"a": {"source": "s", "subjects": ["x", "x"]}}},
    "checksums": {"fidopt": "0.1.0", "cases": {"case01": {"fixed.ome.zarr": DIGEST}}},
    "published": {"source": "there", "rows": [{"method": "m", "tre": 1.5}]},
    "official_zero": {"source": "there", "config": "c.json", "cases": {"a": {"tre": 2.0}}, "mean": {"tre": 2.0}},
    "image": {"file": "planes/*.tif", "spacing": [1.0, 1.0, 2.0], "unit": "mm", "axes": "psl"},
    "tracks": {"lung": {"title": "Lungs", "datasets": ["lung_ct"], "truth": "expert", "apart": None}},
    "families": {"lung": ["lung_ct"]},
    "structures": {"esophagus": {"synonyms": ["oesophagus"]}, "kidneys": {"of": ["kidney_left", "kidney_right"]}},
    "screening": {"Some Set": {"decision": "out", "reason": "no truth"}},
    "labels": {"1": "liver", "2": "left kidney"},
    "method": json.loads((ROOT / "methods/demons/method.json").read_text()),
    "check": {
        "lines": {
            "demons": {
                "version": "1",
                "made_from": DIGEST,
                "fidopt_version": "1",
                "date": "2026-11-30",
                "pairs": {"own": {"passed": True, "state": "right", "said": "right", "residual": 0.2}},
            }
        }
    },
    "machine": {"name": "m", "hostnames": [], "cpu": "c", "cores": 2, "ram_gib": 8.0, "gpu": None, "threads": 2},
    "rows": {
        "schema": 1,
        "method": "demons",
        "dataset": "lung_ct",
        "machine": "m",
        "checksums": DIGEST,
        "rows": {
            "case01": {
                "metrics": {"tre": 1.0, "dice": None},
                "reasons": {"dice": "no labels"},
                "fidopt_version": "1",
                "date": "2026-11-30",
            }
        },
    },
    "deployment": {"kind": "local", "workers": 2, "memory": "2GiB"},
}


@cache
def validator(kind):
    made = schema(kind)
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


def problems(kind, document):
    return [error.message for error in validator(kind).iter_errors(document)]


def read(path):
    return yaml.safe_load(path.read_text()) if path.suffix == ".yml" else json.loads(path.read_text())


@pytest.mark.parametrize("kind", SHIPPED)
def test_every_descriptor_that_ships_is_sound_for_an_editor_too(kind):
    assert SHIPPED[kind] or kind == "pool"
    for path in SHIPPED[kind]:
        if path.name != "compose.yml":
            assert problems(kind, read(path)) == [], path


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_file_passes_and_may_name_its_schema(kind):
    assert problems(kind, SOUND[kind]) == []
    if kind == "deployment":
        return  # YAML, whose editors are told of a schema in another way
    document = {"$schema": f"{kind}.schema.json", **SOUND[kind]}
    assert problems(kind, document) == []
    model = KINDS[kind][1]
    assert dump(parse(model, json.dumps(document), where="f")) == dump(parse(model, json.dumps(SOUND[kind]), where="f"))


BROKEN = {
    "dataset": [
        {"dimension": 4},
        {"unit": "um"},
        {"larg": True},
        {"citation": None},
        {"cases": {}},
        {"cases": None},
        {"source": {"url": "u", "files": {}}},
        {"source": {"url": "u", "files": {"../a": DIGEST}}},
        {"source": {"url": "u", "files": {"a": "sha256:0"}}},
        {"title": "  "},
        {"name": "two words"},
        {"modalities": {"image": "ct"}},
        {"masks": ["mask"]},
        {"unranked": ["dice", "dice"]},
        {"development": "one"},
        {"draw": {"seed": -1, "count": 10}},
        {"alignment": {"mode": "affine"}},
        {"alignment": {"legacy": {"transform": "rigid"}}},
        {"truth": {"grade": "expert", "by": "a", "checked": "b", "limits": "c", "tolerance_mm": 0}},
        {"checks": {"people": True, "dense": True, "room": True, "date": "10 May"}},
        {"to_fill": ["title"]},
    ],
    "pool": [{"cases": {"a": {"source": "s", "subjects": []}}}, {"subjects": {"a": {}}}],
    "checksums": [{"fidopt": 1}, {"cases": {"a": {"f": "x"}}}],
    "published": [{"rows": []}, {"rows": [{"tre": 1.0}]}, {"rows": [{"method": "m", "tre": "low"}]}],
    "official_zero": [{"cases": {}}, {"mean": {"tre": -1}}],
    "image": [{"axes": "xyz"}, {"spacing": [0.0]}],
    "tracks": [{"x": {"title": "X", "datasets": [], "truth": "expert"}}, {"x": {"title": "X", "datasets": ["a"]}}],
    "families": [{"$schema": ["a"]}, {"x": []}, {"x": "a"}, {"x": ["a", "a"]}],
    "structures": [{"x": {"synonym": ["a"]}}, {"x": []}],
    "screening": [{"x": {"decision": "perhaps", "reason": "r"}}, {"x": {"decision": "out"}}],
    "check": [{"lines": {"demons": {"version": "1"}}}, {"lines": {"a b": {}}}],
    "labels": [{"1": ""}, {"1": 2}],
    "method": [{"tasks": []}, {"dimensions": [4]}, {"device": "tpu"}, {"licence": {"code": None}}],
    "machine": [{"cores": 0}, {"hostnames": "h"}],
    "rows": [
        {"schema": 2},
        {"schema": True},
        {"checksums": "x"},
        {"rows": {"a": {"metrics": {}, "fidopt_version": "1", "date": "today"}}},
    ],
    "deployment": [{"kind": "cloud"}, {"workers": 0}, {"memory": "much"}, {"tls": 3}],
}


@pytest.mark.parametrize(("kind", "change"), [(kind, change) for kind in KINDS for change in BROKEN[kind]])
def test_a_broken_file_is_refused_by_the_schema_as_by_fidopt(kind, change, tmp_path):
    document = SOUND[kind] | change
    assert problems(kind, document)
    path = tmp_path / "file.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DescriptorError):
        read_deployment(path) if kind == "deployment" else load(KINDS[kind][1], path)


@pytest.mark.parametrize(
    "change",
    [
        {"to_fill": ["source", "cases", "citation"], "source": None, "cases": None, "citation": None},
        {"to_fill": ["source"], "source": {"url": "u", "files": {}}},
        {"development": None},
        {
            "task": "segmentation",
            "modalities": {"image": "ct"},
            "other_labels": [],
            "truth": {
                "grade": "expert",
                "by": "a",
                "checked": "b",
                "limits": "c",
                "labels": {"1": "x"},
                "tolerance_mm": {"x": 2},
            },
        },
        {"draw": {"seed": 1, "count": None}},
        {"dimension": 2, "unit": "px"},
    ],
)
def test_what_fidopt_takes_the_schema_takes(change):
    document = SOUND["dataset"] | change
    parse(Dataset, json.dumps(document), where="f")
    assert problems("dataset", document) == []


def _objects(found):
    if isinstance(found, dict):
        if "properties" in found and "additionalProperties" in found:
            yield found
        for value in found.values():
            yield from _objects(value)
    elif isinstance(found, list):
        for value in found:
            yield from _objects(value)


def test_the_keys_of_a_dataset_are_explained():
    made = schema("dataset")
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    bare = [key for key, entry in made["properties"].items() if "description" not in entry and key != "$schema"]
    assert bare == []
    assert made["properties"]["to_fill"]["description"].startswith("Keys that nobody has filled yet")
    assert all("Parameters" not in one["description"] for one in _objects(made) if "description" in one)


def test_the_command_prints_a_schema_or_the_kinds(capsys):
    assert cli.main(["schema", "tracks"]) == 0
    assert json.loads(capsys.readouterr().out) == schema("tracks")
    assert cli.main(["schema"]) == 0
    out = capsys.readouterr().out
    assert all(kind in out for kind in KINDS)
    assert cli.main(["schema", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["kinds"]) == set(KINDS)
    assert cli.main(["schema", "datset"]) == 2
    assert "there is no kind of descriptor 'datset'; there are: dataset, pool" in capsys.readouterr().err
    with pytest.raises(UsageError):
        schema("datset")


#: What may stand anywhere by mistake.
JUNK = [None, 0, 1, -1, 3.0, 1.5, "", "  ", "a", "two words", "../x", True, False, [], {}, ["a", "a"], [None], {"": 1}]
JUNK += [{"a": {}}, 10**30, DIGEST, "2026-11-30", "rigid", "segmentation", "synthesis", "é" * 200]


def places(document, above=()):
    """Yield where every value of a document stands."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield (*above, key)
        yield from places(value, (*above, key))


def disturbed(document, chance):
    """Return a document with one value replaced, taken out or put in."""
    document = copy.deepcopy(document)
    *above, key = chance.choice(list(places(document)))
    holder = document
    for step in above:
        holder = holder[step]
    kind = chance.random()
    if kind < 0.6:
        holder[key] = copy.deepcopy(chance.choice(JUNK))
    elif kind < 0.8 or isinstance(holder, list):
        del holder[key]
    else:
        holder[chance.choice(["new", "Grade", "a b", "", "$schema"])] = copy.deepcopy(chance.choice(JUNK))
    return document


def said_of(model, document):
    try:
        parse(model, json.dumps(document), where="f")
    except DescriptorError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "deployment"])
def test_whatever_stands_in_a_file_is_refused_in_sentences_or_taken_by_both(kind):
    chance = random.Random(kind)
    refused = []
    for _ in range(60):
        document = disturbed(SOUND[kind], chance)
        said = said_of(KINDS[kind][1], document)
        if said:
            refused.append(document)
            assert len(set(said)) == len(said)
            assert all(problem.startswith("f: ") and "\n" not in problem for problem in said)
        else:
            assert problems(kind, document) == [], document
    assert refused
