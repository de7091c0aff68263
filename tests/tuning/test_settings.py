"""What is compared, and on which cases: read from files, or refused."""

from __future__ import annotations

import json

import pytest

from fidopt.errors import DescriptorError, UsageError
from fidopt.runner import methods
from fidopt.tuning.cases import development_cases
from fidopt.tuning.settings import settings_of
from fidopt.tuning.variant import refuse_name, write_variant
from tests.runs.conftest import CASES

READS = 'echo "$FIDOPT_SETTINGS"'


def variant(**settings):
    return {"tier": 2, "datasets": [], "tuned_on": [], "source": "us", "settings": settings}


def grid(world, text: str):
    path = world.share / "grid.yml"
    path.write_text(text)
    return path


def test_a_grid_s_combinations_and_named_settings_change_what_the_method_has(world):
    world.method("m", READS, variants={"v": variant(a=1, keep="yes")})
    path = grid(world, "grid:\n  a: [1, 2]\n  b: [x, [1, 2]]\nsettings:\n  coarse: {a: 5}\n")
    found = settings_of(methods.find("m@v", world.roots), path)
    assert [(one.name, dict(one.values)) for one in found] == [
        ("defaults", {"a": 1, "keep": "yes"}),
        ("coarse", {"a": 5, "keep": "yes"}),
        ("a=1 b=x", {"a": 1, "b": "x", "keep": "yes"}),
        ("a=1 b=[1,2]", {"a": 1, "b": [1, 2], "keep": "yes"}),
        ("a=2 b=x", {"a": 2, "b": "x", "keep": "yes"}),
        ("a=2 b=[1,2]", {"a": 2, "b": [1, 2], "keep": "yes"}),
    ]


def test_settings_that_are_the_defaults_are_run_once(world):
    world.method("m", READS, variants={"v": variant(a=1)})
    found = settings_of(methods.find("m@v", world.roots), grid(world, "grid: {a: [1, 2]}"))
    assert [one.name for one in found] == ["defaults", "a=2"]


def test_without_a_file_the_variants_are_compared(world):
    world.method("m", READS, variants={"v": variant(a=1), "w": variant(a=2)})
    assert [one.name for one in settings_of(methods.find("m", world.roots), None)] == ["defaults", "v", "w"]
    assert [one.name for one in settings_of(methods.find("m@v", world.roots), None)] == ["defaults", "w"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grid: {}", "at least one setting"),
        ("settings: {defaults: {a: 1}}", "choose another"),
        ("grid: {a: []}", "grid.a"),
        ("grid: {a: 1}", "grid.a"),
        ("girds: {a: [1]}", "girds"),
        ("grid: {a: [1], a: [2]}", "given twice"),
        ("- a", "must be a mapping"),
        ("settings: {one: {}}", "nothing is to be compared"),
        (f"grid: {{a: {list(range(17))}, b: {list(range(17))}}}", "at most 256 settings"),
    ],
)
def test_a_file_of_settings_that_says_nothing_useful_is_refused(world, text, said):
    world.method("m", READS)
    with pytest.raises((UsageError, DescriptorError), match=said):
        settings_of(methods.find("m", world.roots), grid(world, text))


def test_a_method_that_reads_no_settings_and_one_without_variants_are_refused(world):
    world.method("deaf", "true")
    world.method("m", READS)
    with pytest.raises(UsageError, match=r"deaf reads no settings .* mentions FIDOPT_SETTINGS"):
        settings_of(methods.find("deaf", world.roots), grid(world, "grid: {a: [1]}"))
    with pytest.raises(UsageError, match="m has no variants to compare"):
        settings_of(methods.find("m", world.roots), None)


@pytest.fixture
def family(world):
    """Return a function that gives the world a family whose datasets hold back some of the toy's built cases."""

    def _family(**development):
        datasets = world.share / "datasets"
        for name, held in development.items():
            cases = {c: {"source": "tests", "learn2reg": None, "subjects": [c, c]} for c in CASES if c not in held}
            world.dataset(name=name, cases=cases, development=list(held))
        (datasets / "families.json").write_text(json.dumps({"toys": list(development)}))
        world.method("m", READS)
        return lambda *names: development_cases(
            "toys", names, methods.find("m", world.roots), world.roots, say=world.say
        )

    return _family


def test_development_cases_are_taken_and_test_cases_refused(world, family):
    cases = family(toy=("two", "three"))
    assert [case.name for case in cases()] == ["two", "three"]
    assert [case.name for case in cases("toy/three")] == ["three"]
    for name, said in (
        ("toy/one", "toy/one is a test case: settings are chosen on development cases alone"),
        ("toy/four", "no development case 'four'; they are: two, three"),
        ("one", "DATASET/CASE of the family toys is expected"),
        ("other/one", "its datasets: toy"),
    ):
        with pytest.raises(UsageError, match=said):
            cases(name)


def test_datasets_without_development_cases_and_cases_that_are_not_built_are_left_out_aloud(world, family):
    cases = family(toy=("two", "three"), bare=(), unbuilt=("two",))
    assert [f"{case.dataset.name}/{case.name}" for case in cases()] == ["toy/two", "toy/three"]
    assert any("bare is left out: it has no development cases (fidopt draw bare" in said for said in world.told)
    assert any("unbuilt: two not built" in said for said in world.told)
    with pytest.raises(UsageError, match="has no built development case that m takes"):
        family(unbuilt=("two",))()


def test_a_family_that_is_not_there_is_refused_with_what_may_be_meant(world, family):
    family(toy=("two",))
    chosen = methods.find("m", world.roots)
    with pytest.raises(UsageError, match=r"no family 'toy' \(did you mean 'toys'\?\); toy is a dataset of: toys"):
        development_cases("toy", (), chosen, world.roots, say=world.say)


def test_a_variant_names_its_cases_and_leaves_the_rest_of_the_file_as_it_is(world):
    folder = world.method("m", READS, variants={"v": variant(a=1)})
    path = folder / "method.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
    before = path.read_text()
    chosen = methods.find("m", world.roots)
    best = settings_of(chosen, grid(world, "grid: {b: [0.5]}"))[1]
    write_variant(chosen, "new", best, cases=["toy/two", "toy/three", "other/x"], source="us, today")
    made = methods.find("m@new", world.roots).method.variants["new"]
    assert made.model_dump(mode="json") == {
        "tier": 2,
        "datasets": ["toy", "other"],
        "tuned_on": ["toy/two", "toy/three", "other/x"],
        "source": "us, today",
        "settings": {"b": 0.5},
    }
    after = json.loads(path.read_text())
    del after["variants"]["new"]
    assert after == json.loads(before)
    assert path.read_text().startswith(before[: before.index('"variants"')])


@pytest.mark.parametrize(("name", "said"), [("v", "has a variant 'v' already"), ("a b", "cannot name a variant")])
def test_a_name_that_no_variant_can_have_is_refused_before_anything_runs(world, name, said):
    world.method("m", READS, variants={"v": variant(a=1)})
    with pytest.raises(UsageError, match=said):
        refuse_name(methods.find("m", world.roots), name)
