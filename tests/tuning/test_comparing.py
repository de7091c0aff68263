"""Differences, wins, ranks: by hand."""

from __future__ import annotations

import pytest
from scipy.stats import ttest_rel

from fidopt.descriptors.base import parse
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.rows import Failure
from fidopt.results import new_row
from fidopt.tuning.comparing import against, compare
from tests.runs.conftest import dataset_document


def dataset(name="toy", **changes) -> Dataset:
    import json

    return parse(Dataset, json.dumps(dataset_document(name=name, **changes)), where="test")


def rows(name, metric, **values):
    """Return the rows of settings: setting -> a value a case, None for a case that has none."""
    return {
        (setting, name, f"c{number}"): new_row({metric: value}, reasons={} if value is not None else {metric: "why"})
        for setting, numbers in values.items()
        for number, value in enumerate(numbers)
    }


def test_differences_are_paired_and_their_interval_is_student_s():
    ours, theirs = {"a": 0.5, "b": 0.7, "c": 0.9, "x": 1.0}, {"a": 0.4, "b": 0.75, "c": 0.5, "y": 0.0}
    held = against("dice", ours, theirs)
    assert held.cases == pytest.approx({"a": 0.1, "b": -0.05, "c": 0.4})
    assert held.difference == pytest.approx(0.15)
    interval = ttest_rel([0.5, 0.7, 0.9], [0.4, 0.75, 0.5]).confidence_interval(0.95)
    assert (held.low, held.high) == pytest.approx((interval.low, interval.high))
    assert (held.better, held.worse, held.equal) == (2, 1, 0)
    assert held.p == 0.5


def test_of_an_error_less_is_better_and_the_difference_keeps_its_sign():
    held = against("tre", {"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0})
    assert (held.difference, held.better, held.worse, held.equal) == (-1.0, 1, 0, 1)


def test_one_case_has_no_interval():
    held = against("tre", {"a": 1.0}, {"a": 3.0})
    assert (held.difference, held.low, held.high) == (-2.0, None, None)


def test_ranks_are_means_over_cases_then_datasets_and_equals_share_theirs():
    one, two = dataset("one"), dataset("two")
    found = {
        **rows("one", "dice", defaults=[0.5, 0.5, 0.5], a=[0.6, 0.6, 0.4], b=[0.5, 0.7, 0.3]),
        # In dataset two less is better, and one case counts as much as the three of the first.
        **rows("two", "tre", defaults=[2.0], a=[1.0], b=[None]),
    }
    done = compare(["defaults", "a", "b"], {"one": (one, ["c0", "c1", "c2"]), "two": (two, ["c0"])}, found)
    assert [result.metric for result in done.datasets] == ["dice", "tre"]
    ranks = {result.name: result.rank for result in done.overall}
    # Of one: defaults 2.5, 3, 1; a 1, 2, 2; b 2.5, 1, 3. Of two: a 1, defaults 2, b 3, which has no value.
    assert ranks == pytest.approx({"a": (5 / 3 + 1) / 2, "defaults": (6.5 / 3 + 2) / 2, "b": (6.5 / 3 + 3) / 2})
    assert done.best.name == "a"
    assert (done.best.better, done.best.worse, done.best.equal) == (3, 1, 0)


def test_an_unranked_metric_is_no_main_measure_and_what_has_none_is_left_out():
    found = rows("toy", "dice", defaults=[0.5], a=[0.6])
    cases = {"toy": (dataset(unranked=["dice"]), ["c0"])}
    assert compare(["defaults", "a"], cases, found).datasets == ()
    assert compare(["defaults", "a"], cases, found).overall == ()


def test_settings_whose_every_case_failed_are_not_called_the_same():
    found = rows("toy", "tre", defaults=[2.0, 3.0], a=[2.0, 3.0])
    broke = {"error": Failure(stage="run", reason="it broke")}
    found = {key: row.model_copy(update=broke) for key, row in found.items()}
    done = compare(["defaults", "a"], {"toy": (dataset(), ["c0", "c1"])}, found)
    assert [(one.same, one.failed) for one in done.overall] == [(False, 2), (False, 2)]


def test_settings_that_change_nothing_are_called_the_same_and_failures_are_counted():
    found = rows("toy", "tre", defaults=[2.0, 3.0], a=[2.0, 3.0], b=[2.0, 3.5])
    failed = found["b", "toy", "c1"]
    found["b", "toy", "c1"] = failed.model_copy(update={"error": Failure(stage="run", reason="it broke")})
    done = compare(["defaults", "a", "b"], {"toy": (dataset(), ["c0", "c1"])}, found)
    assert {one.name: (one.same, one.failed) for one in done.overall} == {
        "defaults": (False, 0),
        "a": (True, 0),
        "b": (False, 1),
    }
    # Of equals the one that was named first stands first: the defaults are not beaten by themselves.
    assert done.best.name == "defaults"
