"""Ours against the challenges' and other packages' figures of the same inputs: equal, or apart for a stated reason."""

from __future__ import annotations

import pytest

from tests.parity.comparison import Comparison, tables
from tests.parity.every import absent, comparisons
from tests.parity.page import PAGE, lines, page
from tests.parity.peers import PEERS

pytest.importorskip("konfai", reason="KonfAI is not installed")


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[Comparison]:
    return list(comparisons(tmp_path_factory.mktemp("parity")))


def test_every_figure_is_theirs_or_differs_by_the_stated_reason_alone(found):
    assert [one.problem for one in found if one.problem] == []
    assert len({one.key for one in found}) == len(found)
    assert sum(not one.why for one in found) > 20
    assert sum(bool(one.why) for one in found) > 10


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_package_is_compared_or_said_to_be_absent(found, peer):
    if not peer.here:
        pytest.skip(f"{peer.name} is not installed: {peer.where}")
    assert [one for one in found if one.peer == peer.name and not one.why]


def test_the_page_holds_these_figures_and_reasons_and_no_others(found):
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(page([]).partition("##")[0])
    written = lines(text)
    gone = {peer.name for peer in absent()}
    if "surface-distance" in gone:
        pytest.skip("surface-distance is not installed, and Learn2Reg's HD95 calls it")
    assert {key for key in written if key[0] not in gone} == {one.key for one in found}
    for one in found:
        (line,) = lines(tables([one])).values()
        assert written[one.key][2] == line[2]
        for there, here in zip(written[one.key][:2], line[:2], strict=True):
            assert there == here or float(there) == pytest.approx(float(here), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (Comparison("a", "b", "c", 1.0, 1.1), "they should be equal"),
        (Comparison("a", "b", "c", None, 1.1), "they should be equal"),
        (Comparison("a", "b", "c", 1.0, 1.0, "a reason"), "they are equal, and should differ"),
        (Comparison("a", "b", "c", 1.0, 2.0, "a reason", 1.9), "differ for another reason too: without it ours is 1.9"),
        (Comparison("a", "b", "c", 1.0, 2.0, "a reason", back=1.1), "without it theirs is 1.1"),
    ],
)
def test_a_line_that_does_not_hold_is_found(one, problem):
    assert problem in one.problem
    assert Comparison("a", "b", "c", 1.0, 2.0, "a reason", 2.0).problem is None
