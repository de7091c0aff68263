"""The draw is a pure function: the same seed and pool give the same cases, and development never touches test."""

from __future__ import annotations

import hashlib
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fidopt import cli, corpus
from fidopt.corpus.drawing import apportion, candidates, develop, draw, first_of_training, place
from fidopt.descriptors.base import load, parse
from fidopt.descriptors.dataset import CaseEntry, Dataset
from fidopt.descriptors.editing import edited
from fidopt.descriptors.pool import Pool
from fidopt.errors import DescriptorError, InputError, MissingError

#: A busy machine is slow to make up what is drawn from; that says nothing of the draw.
EASY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pool_of(sources, *, shared=False):
    """Return a pool: source -> names; each case has a subject of its own, or all the same one."""
    return Pool(
        cases={
            name: CaseEntry(source=source, subjects=("one",) if shared else (name,))
            for source, names in sources.items()
            for name in names
        }
    )


def names(found):
    return [one.name for one in found]


TOY = {"a": [f"a{i}" for i in range(1, 8)], "b": ["b1", "b2", "b3"]}
#: Of `printf '7:toy:NAME' | sha256sum`, sorted.
TOY_ORDER = ["a3", "b2", "b1", "b3", "a5", "a4", "a2", "a1", "a7", "a6"]


def test_the_order_is_that_of_sha256sum():
    assert names(candidates(pool_of(TOY), seed=7, dataset="toy")) == TOY_ORDER
    thirty = pool_of({"s": [f"case{i:02}" for i in range(1, 31)]})
    found = draw(candidates(thirty, seed=20251011, dataset="LungDIRQA"), 10)
    assert names(found) == [f"case{i}" for i in ("22", "12", "20", "26", "18", "09", "14", "19", "29", "17")]


def test_each_source_gives_its_share_and_the_last_are_set_aside():
    # Shares of four: 2.8 and 1.2, so three and one. Development: a6 and a7; without a1 too the shares would be 2.3 and
    # 1.7, so two and two, and it stays; then b3, a2 and b1.
    found = candidates(pool_of(TOY), seed=7, dataset="toy")
    test = draw(found, 4)
    assert names(test) == ["a3", "b2", "a5", "a4"]
    assert names(develop(found, test, 10)) == ["a6", "a7", "b3", "a2", "b1"]
    assert names(develop(found, test, 2)) == ["a6", "a7"]


@pytest.mark.parametrize(
    ("sizes", "count", "shares"),
    [
        ({"a": 5, "b": 5}, 10, {"a": 5, "b": 5}),
        ({"a": 1, "b": 1}, 10, {"a": 1, "b": 1}),
        ({"a": 50, "b": 50}, 5, {"a": 3, "b": 2}),
        ({"b": 50, "a": 50}, 5, {"a": 3, "b": 2}),
        ({"a": 100, "b": 1}, 10, {"a": 10, "b": 0}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"a": 1, "b": 1, "c": 0}),
        ({"a": 33, "b": 33, "c": 34}, 10, {"a": 3, "b": 3, "c": 4}),
    ],
)
def test_remainders_go_to_the_largest_and_then_to_the_first_name(sizes, count, shares):
    assert apportion(sizes, count) == shares


SOURCES = st.dictionaries(
    st.sampled_from("abcd"), st.sets(st.integers(0, 40), min_size=1, max_size=12), min_size=1, max_size=4
).map(lambda d: {source: [f"{source}{number}" for number in sorted(numbers)] for source, numbers in d.items()})
SEED = st.integers(0, 2**40)
COUNT = st.integers(1, 14)


@EASY
@given(SOURCES, SEED, COUNT, st.randoms(use_true_random=False))
def test_the_draw_depends_on_no_order_of_the_file(sources, seed, count, shuffle):
    pool = pool_of(sources)
    mixed = list(pool.cases.items())
    shuffle.shuffle(mixed)
    found, again = (candidates(one, seed=seed, dataset="toy") for one in (pool, Pool(cases=dict(mixed))))
    assert found == again
    assert names(found) == sorted(pool.cases, key=lambda name: hashlib.sha256(f"{seed}:toy:{name}".encode()).digest())


@EASY
@given(SOURCES, COUNT)
def test_shares_add_up_and_are_within_one_of_the_exact_ones(sources, count):
    sizes = {source: len(cases) for source, cases in sources.items()}
    total = sum(sizes.values())
    shares = apportion(sizes, count)
    assert sum(shares.values()) == min(count, total)
    assert all(0 <= shares[source] <= sizes[source] for source in sizes)
    if count < total:
        assert all(abs(shares[source] - count * size / total) < 1 for source, size in sizes.items())


@EASY
@given(SOURCES, SEED, COUNT)
def test_a_case_added_to_one_source_moves_no_other_source_s_order(sources, seed, count):
    more = {**sources, "a": [*sources.get("a", []), "a99"]}
    before, after = (candidates(pool_of(one), seed=seed, dataset="toy") for one in (sources, more))
    assert [one for one in names(after) if one != "a99"] == names(before)
    for source in set(sources) - {"a"}:
        old, new = ([one.name for one in draw(found, count) if one.source == source] for found in (before, after))
        # Its share may change, and then by its last cases alone.
        assert old[: len(new)] == new[: len(old)]


@EASY
@given(SOURCES, SEED, COUNT, st.integers(0, 12))
def test_development_never_touches_test(sources, seed, count, aside):
    found = candidates(pool_of(sources), seed=seed, dataset="toy")
    test = draw(found, count)
    development = develop(found, test, aside)
    assert not set(names(test)) & set(names(development))
    assert len(development) <= aside
    assert len(set(names(development))) == len(development)
    for number in range(len(development) + 1):
        rest = [one for one in found if one not in development[:number]]
        assert draw(rest, count) == test
    for gone in development:
        assert draw([one for one in found if one != gone], count) == test


def test_a_case_with_a_test_case_s_subject_is_not_set_aside():
    found = candidates(pool_of(TOY, shared=True), seed=7, dataset="toy")
    # b's subject "one" is another than a's: a name is its source's own. Both are in the test cases.
    assert develop(found, draw(found, 4), 10) == ()
    assert [one.source for one in develop(found, draw([one for one in found if one.source == "a"], 4), 3)] == []


def test_subjects_without_pairs_are_sorted_and_paired_two_by_two_in_their_sources():
    # 7:toy:NAME sorts s1 s4 s2 s3 s5; the fifth is left over.
    pool = Pool.model_validate_json(json.dumps({"subjects": {f"s{i}": {"source": "x"} for i in range(1, 6)}}))
    found = candidates(pool, seed=7, dataset="toy")
    assert names(found) == ["s1_s4", "s2_s3"]
    assert found[0].entry() == CaseEntry(source="x", subjects=("s1", "s4"))
    mixed = {"subjects": {"s1": {"source": "x"}, "s2": {"source": "x"}, "s3": {"source": "y"}, "s4": {"source": "y"}}}
    found = candidates(Pool.model_validate_json(json.dumps(mixed)), seed=7, dataset="toy")
    assert [(one.name, one.source) for one in found] == [("s1_s2", "x"), ("s4_s3", "y")]


def test_two_pairs_of_one_name_are_refused():
    subjects = {"a_b": {"source": "x"}, "c": {"source": "x"}, "a": {"source": "y"}, "b_c": {"source": "y"}}
    pool = Pool.model_validate_json(json.dumps({"subjects": subjects}))
    seed = next(
        seed
        for seed in range(100)
        if place(seed, "toy", "a_b") < place(seed, "toy", "c") and place(seed, "toy", "a") < place(seed, "toy", "b_c")
    )
    with pytest.raises(InputError, match="the pool of toy: two pairs would both be named a_b_c; give its subjects"):
        candidates(pool, seed=seed, dataset="toy")


def test_an_official_split_is_tested_and_development_is_the_first_of_its_training_set():
    training = candidates(pool_of({"l2r": TOY["a"]}), seed=7, dataset="toy")
    test = [one for one in training if one.name == "a3"]
    assert names(first_of_training(training, test, 3)) == ["a5", "a4", "a2"]
    assert names(first_of_training(training, test, 99)) == ["a5", "a4", "a2", "a1", "a7", "a6"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "cases: must be given, or else subjects to pair, and not both; neither is given"),
        ({"cases": {"a": {"source": "s", "subjects": ["x"]}}, "subjects": {"x": {"source": "s"}}}, "both are given"),
        ({"cases": {"a": {"source": "s", "subjects": []}}}, "cases.a.subjects: must not be empty"),
        ({"cases": {"../a": {"source": "s", "subjects": ["x"]}}}, "must be a name of letters"),
    ],
)
def test_a_pool_is_read_strictly(document, why):
    with pytest.raises(DescriptorError) as caught:
        parse(Pool, json.dumps(document), where="pool.json")
    assert why in str(caught.value)


@pytest.fixture
def toy(make):
    """A dataset in a folder of the test's own, and a function that gives it a pool and other keys."""
    _, roots = make({"a1-fixed.nii.gz": b""})
    folder = corpus.dataset_folder("tiny", roots)

    def write(pool, **changes):
        path = folder / "dataset.json"
        document = json.loads(path.read_text()) | changes
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        (folder / "pool.json").write_text(json.dumps(pool))
        return path

    return write, roots


def entries(*cases, source="s"):
    return {name: {"source": source, "learn2reg": None, "subjects": [name, name]} for name in cases}


TEN = [f"c{i}" for i in range(10)]
#: Of `printf '3:tiny:NAME' | sha256sum`, sorted.
TINY_ORDER = sorted(TEN, key=lambda name: hashlib.sha256(f"3:tiny:{name}".encode()).hexdigest())


def run(*words, roots):
    return cli.main(["draw", "tiny", *words, "--share", str(roots.share[0])])


def test_draw_shows_what_it_would_write_and_writes_it_when_asked(toy, capsys):
    write, roots = toy
    path = write({"cases": entries(*TEN)}, draw={"seed": 3, "count": 4}, title="Zwölf — ünchanged")
    before = path.read_bytes()
    assert run("--development", "2", roots=roots) == 0
    out, err = capsys.readouterr()
    assert path.read_bytes() == before
    assert "nothing is written; add --write" in err
    added = [line for line in out.splitlines() if line.startswith("+ ")]
    assert f'+    "{min(TINY_ORDER[:4])}": {{' in added
    assert run("--development", "2", "--write", roots=roots) == 0
    assert f"written in {path}" in capsys.readouterr().err
    written = load(Dataset, path)
    assert list(written.cases) == sorted(TINY_ORDER[:4])
    assert written.development == (TINY_ORDER[-1], TINY_ORDER[-2])
    rest = {"cases", "development"}
    old, new = json.loads(before), json.loads(path.read_bytes())
    assert [(k, v) for k, v in new.items() if k not in rest] == [(k, v) for k, v in old.items() if k not in rest]
    assert "Zwölf — ünchanged".encode() in path.read_bytes()
    capsys.readouterr()
    after = path.read_bytes()
    assert run("--development", "2", "--write", roots=roots) == 0
    assert "nothing to write" in capsys.readouterr().out
    assert path.read_bytes() == after


def test_a_draw_without_development_keeps_the_descriptor_s(toy):
    write, roots = toy
    path = write({"cases": entries(*TEN)}, draw={"seed": 3, "count": 4}, cases=entries("c0"), development=[])
    document = json.loads(path.read_text())
    path.write_text(
        json.dumps(document | {"cases": {}, "development": [TINY_ORDER[0]], "to_fill": ["cases"]}, indent=2)
    )
    assert run("--write", roots=roots) == 0
    written = load(Dataset, path)
    assert list(written.cases) == sorted(TINY_ORDER[1:5])
    assert written.development == (TINY_ORDER[0],)
    assert written.to_fill == ()


def test_the_json_document_says_the_whole_draw(toy, capsys):
    write, roots = toy
    write({"cases": entries(*TEN[:3])}, draw={"seed": 3, "count": 4})
    assert run("--development", "2", "--json", roots=roots) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["draw"] == {"seed": 3, "count": 4}
    assert list(document["cases"]) == ["c0", "c1", "c2"]
    assert document["sources"] == {"s": 3}
    assert (document["development"], document["changed"], document["written"]) == ([], True, None)
    assert "all 3 cases of its pool are test cases; 4 were to be drawn" in err
    assert "0 of 2 development cases" in err


def test_a_task_with_an_official_split_keeps_it_and_draws_development_from_its_training_set(toy):
    write, roots = toy
    split = entries("v1", "v2", source="validation")
    path = write({"cases": entries(*TEN) | split}, draw={"seed": 3, "count": None}, cases=split)
    assert run("--development", "3", "--write", roots=roots) == 0
    written = load(Dataset, path)
    assert list(written.cases) == ["v1", "v2"]
    assert written.development == tuple(TINY_ORDER[:3])


@pytest.mark.parametrize(
    ("changes", "words", "why"),
    [
        ({"draw": None}, [], "tiny is not drawn: its dataset.json has no draw"),
        ({"draw": None, "to_fill": ["source", "draw", "cases"]}, [], "leaves open source, draw; fill them in"),
        ({"draw": {"seed": 3, "count": 4}}, ["--development", "-1"], "--development: must not be negative, got -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(toy, capsys, changes, words, why):
    write, roots = toy
    path = write({"cases": entries(*TEN)}, **changes)
    if not words:
        path.with_name("pool.json").unlink()  # that it is missing, too, is not what has to be mended first
    assert run(*words, roots=roots) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


def test_a_dataset_without_a_pool_says_what_one_is(toy, capsys):
    write, roots = toy
    path = write({"cases": entries(*TEN)}, draw={"seed": 3, "count": 4})
    path.with_name("pool.json").unlink()
    assert run(roots=roots) == 2
    assert "pool.json is missing: it lists every case with a ground truth" in capsys.readouterr().err
    with pytest.raises(MissingError):
        corpus.pool(corpus.dataset("tiny", roots), roots)


def test_the_installed_package_s_own_descriptors_are_not_written(toy, capsys, monkeypatch):
    write, roots = toy
    path = write({"cases": entries(*TEN)}, draw={"seed": 3, "count": 4})
    before = path.read_bytes()
    share = roots.share[0].rename(roots.share[0].with_name("_share"))
    monkeypatch.setattr("fidopt.corpus.pools.packaged_share", lambda: share)
    monkeypatch.setattr("fidopt.resources.packaged_share", lambda: share)
    assert cli.main(["draw", "tiny", "--write"]) == 2
    assert "is part of the installed package and is not written; copy" in capsys.readouterr().err
    assert (share / "datasets" / "tiny" / "dataset.json").read_bytes() == before


ORDER = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "values", "after"),
    [
        ('{"a": 1, "c": [1, 2]}', {"c": [3]}, '{"a": 1, "c": [3]}'),
        ('{"a": 1,  "c" :[1,2]}', {"c": [1, 2]}, '{"a": 1,  "c" :[1,2]}'),
        ('{"a": 1, "d": 2}', {"b": {}}, '{"a": 1, "b": {}, "d": 2}'),
        ('{"d": 2}', {"b": 1}, '{ "b": 1,"d": 2}'),
        ("{}", {"b": 1}, '{ "b": 1}'),
        (
            '{\n  "a": "x, y: {",\n  "c": 0\n}\n',
            {"c": {"k": [1]}},
            '{\n  "a": "x, y: {",\n  "c": {\n    "k": [\n      1\n    ]\n  }\n}\n',
        ),
        ('{\n\t"c": {\n\t\t"k": [1, 2]\n\t}\n}', {"c": {"m": [1, 2]}}, '{\n\t"c": {\n\t\t"m": [1, 2]\n\t}\n}'),
        ('{\r\n "a": 1\r\n}\r\n', {"b": [1]}, '{\r\n "a": 1,\r\n "b": [\r\n  1\r\n ]\r\n}\r\n'),
    ],
)
def test_an_edited_file_keeps_its_writer_s_hand(text, values, after):
    found = edited(text, values, order=ORDER)
    assert found == after
    assert json.loads(found) == json.loads(text) | values


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@EASY
@given(
    st.dictionaries(st.sampled_from(ORDER), JSON),
    st.dictionaries(st.sampled_from(ORDER), JSON),
    st.sampled_from([None, 2, "\t"]),
)
def test_an_edited_file_says_what_it_is_told_whatever_it_holds(before, values, indent):
    text = json.dumps(before, indent=indent, ensure_ascii=random.Random(len(before)).random() < 0.5)
    found = edited(text, values, order=ORDER)
    assert json.loads(found) == before | values
    if all(before.get(key, ...) == value for key, value in values.items()):
        assert found == text
