"""What a command tells while it works: how far it is, how fast, and how long the rest will take."""

import pytest

from fidopt.commands import output


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [1000.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    return now


def test_a_line_now_and_then_says_how_far_how_fast_and_how_long(clock, capsys):
    with output.progress("warping a") as report:
        for done in range(101, 201):
            clock[0] += 0.25
            report(done, 400, 2_000_000)
    # What an earlier attempt had done says nothing of how fast this one is.
    assert capsys.readouterr().err.splitlines() == [
        "warping a: 140 of 400, 4 shards/s, 8 MB/s, 65 s left",
        "warping a: 180 of 400, 4 shards/s, 8 MB/s, 55 s left",
    ]


def test_the_first_step_gives_no_time_before_it_is_done_and_counts_once(clock, capsys):
    with output.progress("building") as report:
        clock[0] += 10
        report(0, 4)
        clock[0] += 10
        report(1, 4)
    assert capsys.readouterr().err.splitlines() == ["building: 0 of 4", "building: 1 of 4, 60 s left"]


def test_a_rate_has_no_exponent(clock, capsys):
    with output.progress("warping a") as report:
        clock[0] += 200
        report(1, 3, 1000)
    assert capsys.readouterr().err == "warping a: 1 of 3, < 0.01 shards/s, < 0.01 MB/s, 7 min left\n"


def test_steps_that_write_nothing_are_not_called_shards(clock, capsys):
    with output.progress("building") as report:
        clock[0] += 7200
        report(1, 3)
    assert capsys.readouterr().err == "building: 1 of 3, 4.0 h left\n"
