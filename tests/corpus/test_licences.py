"""Licences are judged part by part: what may be ranked, what may be released, what may only be run here."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fidopt import corpus
from fidopt.corpus.licences import HARMLESS, LICENCES, METHOD_LICENCES, SHARED_LICENCES
from fidopt.descriptors.base import parse
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.spdx import licensing
from fidopt.errors import DescriptorError


@pytest.mark.parametrize(
    ("spdx", "ranked"),
    [
        ("CC-BY-4.0", True),
        ("cc-by-4.0", True),
        ("CC0-1.0 AND MIT", True),
        ("(Apache-2.0 AND CC-BY-SA-4.0)", True),
        ("CC-BY-NC-4.0", False),
        ("CC-BY-ND-4.0", False),
        ("CC-BY-4.0 AND CC-BY-NC-4.0", False),
        ("CC-BY-4.0 OR CC-BY-NC-4.0", True),
        ("MIT OR LicenseRef-Commercial", True),
        ("CC-BY-NC-4.0 OR (MIT AND CC-BY-ND-4.0)", False),
        ("CC-BY-NC-4.0 OR (MIT AND CC0-1.0)", True),
        ("MIT AND (CC-BY-NC-4.0 OR CC0-1.0)", True),
        ("MIT AND CC-BY-NC-4.0 OR CC0-1.0", True),
        ("CC0-1.0 OR MIT AND CC-BY-NC-4.0", True),
        ("(CC0-1.0 OR MIT) AND CC-BY-NC-4.0", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0 WITH SHL-2.1", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("Apache-2.0+", True),
        ("LicenseRef-MNI-ICBM152", False),
        ("NOASSERTION", False),
        ("NONE", False),
        ("MIT or later", False),
        ("MIT OR BSD", False),
        ("AND", False),
        ("(MIT", False),
        ("", False),
    ],
)
def test_a_dataset_is_ranked_when_every_part_of_its_terms_is_open(spdx, ranked):
    terms = corpus.data_terms(spdx)
    assert (terms.ranked, terms.released, terms.only_here) == (ranked, ranked, not ranked)
    assert (terms.reason is None) is ranked


@pytest.mark.parametrize(
    ("code", "weights", "ranked", "released"),
    [
        ("MIT", None, True, True),
        ("BSD-3-Clause", "Apache-2.0", True, True),
        ("MIT", "CC-BY-NC-4.0", False, False),
        ("GPL-3.0-or-later", None, False, True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", None, False, True),
        ("GPL-2.0+", "CC-BY-SA-4.0", False, True),
        ("MIT OR GPL-3.0-only", "CC0-1.0 OR CC-BY-NC-4.0", True, True),
        ("CC-BY-4.0", None, False, True),
        ("LicenseRef-custom", None, False, False),
        ("NONE", None, False, False),
    ],
)
def test_a_method_is_ranked_and_released_by_its_code_and_its_weights(code, weights, ranked, released):
    terms = corpus.method_terms(code, weights)
    assert (terms.ranked, terms.released, terms.only_here) == (ranked, released, not released)


def test_terms_that_can_be_chosen_in_code_cannot_be_undone_by_those_of_weights():
    assert not corpus.method_terms("MIT OR GPL-3.0-only", "CC-BY-NC-4.0").ranked


@pytest.mark.parametrize(
    ("spdx", "reason"),
    [
        ("CC-BY-NC-4.0", "is no open licence that allows commercial use (CC-BY-NC-4.0)"),
        (
            "MIT AND CC-BY-ND-4.0 AND CC-BY-NC-4.0",
            "is no open licence that allows commercial use (CC-BY-ND-4.0, CC-BY-NC-4.0)",
        ),
        ("NOASSERTION", "is not stated"),
        ("LicenseRef-to-fill", "is to be filled in (LicenseRef-to-fill)"),
        ("MIT AND LicenseRef-to-fill", "is to be filled in (LicenseRef-to-fill)"),
        ("LicenseRef-to-fill AND CC-BY-NC-4.0", "is no open licence that allows commercial use (CC-BY-NC-4.0)"),
        (
            "CC-BY 4.0 AND Foo",
            (
                "cannot be judged: 'CC-BY 4.0' (did you mean CC-BY-4.0?) and 'Foo' are no SPDX identifiers; "
                "terms of an owner's own are LicenseRef-NAME"
            ),
        ),
        (
            "MIT AND",
            (
                "cannot be read: it must be an SPDX licence expression such as CC-BY-4.0 or MIT AND CC0-1.0 "
                "(AND requires two or more licenses as in: MIT AND BSD)"
            ),
        ),
    ],
)
def test_what_keeps_a_dataset_out_is_named(spdx, reason):
    assert corpus.data_terms(spdx).reason == reason


@pytest.mark.parametrize("spdx", ["CC-BY 4.0", "BSD", "MIT AND", "MIT/Apache-2.0", "Apache-2.0 WITH Foo", "see it"])
def test_a_descriptor_whose_licence_says_nothing_is_refused(described, spdx):
    with pytest.raises(DescriptorError) as caught:
        parse(Dataset, json.dumps(described(spdx=spdx)), where="dataset.json")
    (found,) = [problem for problem in caught.value.problems if ": spdx: " in problem]
    assert found.startswith("dataset.json: spdx: must be an SPDX licence expression")


@pytest.mark.parametrize("names", [LICENCES, METHOD_LICENCES, SHARED_LICENCES])
def test_every_licence_that_passes_is_one_of_spdx_and_no_exception(names):
    listed = licensing().known_symbols
    assert {name for name in names if name not in listed or listed[name].is_exception} == set()
    assert not [name for name in names if "-NC" in name or "-ND" in name]


def test_every_harmless_exception_is_one_of_spdx():
    listed = licensing().known_symbols
    assert {name for name in HARMLESS if name not in listed or not listed[name].is_exception} == set()


def trees():
    leaves = st.sampled_from(["MIT", "CC-BY-4.0", "CC-BY-NC-4.0", "LicenseRef-a", "NOASSERTION"])
    return st.recursive(leaves, lambda inner: st.tuples(st.sampled_from(["AND", "OR"]), inner, inner), max_leaves=8)


def written(tree):
    return tree if isinstance(tree, str) else f"({written(tree[1])} {tree[0]} {written(tree[2])})"


def passes(tree):
    if isinstance(tree, str):
        return tree in LICENCES
    left, right = passes(tree[1]), passes(tree[2])
    return left and right if tree[0] == "AND" else left or right


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees())
def test_and_asks_for_both_and_or_for_one_however_deep(tree):
    assert corpus.data_terms(written(tree)).ranked is passes(tree)
