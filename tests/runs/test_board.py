from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import fidopt
from fidopt import results
from fidopt.descriptors.rows import Failure
from fidopt.errors import UsageError
from fidopt.leaderboard import tables
from fidopt.leaderboard.board import board, boards
from fidopt.leaderboard.lines import is_higher_better
from fidopt.results import Line

DIGEST, OTHER = ("sha256:" + pair * 32 for pair in ("ab", "cd"))
TEN = tuple(f"c{n}" for n in range(10))
ENTRY = {"source": "tests", "learn2reg": None, "subjects": ["a", "b"]}


@pytest.fixture
def write(world):
    """Return a function that writes a line's rows: metric -> one value a case."""
    world.dataset(cases=dict.fromkeys(TEN, ENTRY))

    def _write(method, *, machine="host", failed=(), digest=DIGEST, date=None, known=True, describe=None, **metrics):
        if known:
            world.method(method.partition("@")[0], "true", **(describe or {}))
        line = Line(world.roots.results, machine, method, "toy")
        results.machine_here(world.roots, name=machine)
        for number, case in enumerate(TEN):
            values = {metric: given[number] for metric, given in metrics.items() if number < len(given)}
            if not values:
                continue
            gone = [metric for metric, value in values.items() if value is None]
            row = results.new_row(
                values,
                reasons=dict.fromkeys(gone, "the warp kept no label"),
                time_s=1.0 + number,
                peak_ram_mib=100 + number,
                method_version="1",
                error=Failure(stage="run", reason="no") if case in failed else None,
            )
            results.add_row(line, case, row.model_copy(update={"date": date or row.date}), checksums=digest)

    return _write


def read(world):
    return board("toy", roots=world.roots)


def by_name(found):
    return {line.method: line for line in found.lines}


UP = list(np.linspace(2.0, 3.0, 10))


def test_a_line_is_its_mean_its_interval_its_failures_its_time_and_its_memory(world, write):
    write("m", tre=list(range(1, 11)), failed=["c3"])
    (line,) = read(world).lines
    mean = line.metrics["tre"]
    assert (mean.value, mean.cases, mean.missing) == (5.5, 10, 0)
    assert (mean.low, mean.high) == (pytest.approx(3.334149410331831), pytest.approx(7.665850589668169))
    assert (line.failures, line.time_s, line.peak_ram_mib, line.version) == (1, 5.5, 109, "1")


def test_a_change_is_from_the_zero_fields_rows_and_worse_is_said(world, write):
    write("identity", tre=[4.0] * 10, dice=[0.5] * 10)
    write("good", tre=[3.0] * 10, dice=[0.8] * 10)
    write("bad", tre=[6.0] * 10, dice=[0.6] * 10)
    lines = by_name(read(world))
    assert lines["good"].metrics["tre"].change == pytest.approx(1.0)
    assert lines["good"].metrics["dice"].change == pytest.approx(0.3)
    assert lines["bad"].notes == ("worse than no registration in tre",)
    assert lines["good"].notes == ()


def test_without_the_zero_field_there_is_no_change(world, write):
    write("m", tre=UP)
    assert by_name(read(world))["m"].metrics["tre"].change is None


def test_the_rank_is_the_mean_of_the_ranks_over_what_all_complete_lines_share(world, write):
    write("a", tre=[1.0 + n for n in range(10)], sdlogj=[0.3] * 10, dice=[0.9] * 10)
    write("b", tre=[2.0 + n for n in range(10)], sdlogj=[0.1] * 10)
    write("c", tre=[3.0 + n for n in range(10)], sdlogj=[0.3] * 10)
    found = read(world)
    assert (found.ranked_on, found.main) == (("tre", "sdlogj"), "tre")
    ranks = {line.method: (line.place, line.rank) for line in found.lines}
    # sdlogj: b is first, a and c share the second and third place.
    assert ranks == {"b": (1, 1.5), "a": (2, 1.75), "c": (3, 2.75)}


def test_metrics_the_dataset_does_not_rank_are_shown_all_the_same(world, write):
    world.dataset(cases=dict.fromkeys(TEN, ENTRY), unranked=["dice"])
    write("a", tre=UP, dice=[0.1] * 10)
    write("b", tre=[v + 1 for v in UP], dice=[0.9] * 10)
    found = read(world)
    assert found.ranked_on == ("tre",)
    assert found.columns == ("dice", "tre")
    assert [line.method for line in found.lines] == ["a", "b"]
    assert "shown and not ranked: dice" in found.notes


def test_a_metric_the_board_does_not_show_is_not_said_to_be_shown(world, write):
    world.dataset(cases=dict.fromkeys(TEN, ENTRY), unranked=["dice"])
    write("a", tre=UP)
    assert not [note for note in read(world).notes if "shown and not ranked" in note]


def test_who_is_not_ranked_and_why(world, write):
    write("ranked", tre=UP)
    write("identity", tre=[1.0] * 10)
    write("strays", tre=[1.0] * 10, known=False)
    write("closed", tre=[1.0] * 10, describe={"licence": {"code": "MIT", "weights": "CC-BY-NC-4.0"}})
    write("partial", tre=[1.0] * 7)
    write("hopeless", tre=[1.0] * 10, failed=TEN)
    tuned = {"variants": {"fine": {"source": "tests"}, "cheat": {"source": "tests", "tuned_on": ["toy/c1"]}}}
    write("m@fine", tre=[1.0] * 10, describe=tuned)
    write("m@cheat", tre=[1.0] * 10, describe=tuned)
    write("secret", tre=[1.0] * 10, describe={"board": False})
    found = read(world)
    lines = by_name(found)
    assert [line.method for line in found.lines if line.place] == ["ranked"]
    assert found.lines[1].method == "identity"
    reasons = {name: line.unranked for name, line in lines.items()}
    assert reasons["ranked"] is None
    assert "reference" in reasons["identity"]
    assert "no method.json" in reasons["strays"]
    assert "CC-BY-NC-4.0" in reasons["closed"]
    assert "no row for 3 of 10 cases" in reasons["partial"]
    assert "every case" in reasons["hopeless"]
    assert "tier 2" in reasons["m@fine"]
    assert not {"m@cheat", "secret"} & set(lines)


def test_neighbours_whose_cases_do_not_differ_are_tied(world, write):
    noise = [0.3, -0.2, 0.25, -0.3, 0.1, -0.15, 0.2, -0.1, 0.05, -0.1]
    write("a", tre=UP)
    write("b", tre=[v + e + 0.01 for v, e in zip(UP, noise, strict=True)])
    write("c", tre=[v + 5 for v in UP])
    lines = by_name(read(world))
    assert (lines["a"].places, lines["a"].tie) == ((1, 2), None)
    assert (lines["b"].places, lines["b"].tie) == ((1, 2), "tied")
    assert (lines["c"].places, lines["c"].tie) == ((3, 3), None)


def test_a_line_tied_on_both_sides_could_hold_three_places(world, write):
    signs = [1, -1] * 5
    for number, name in enumerate("abc"):
        write(name, tre=[v + 0.5 * s * number + 0.001 * number for v, s in zip(UP, signs, strict=True)])
    lines = by_name(read(world))
    assert [lines[name].places for name in "abc"] == [(1, 2), (1, 3), (2, 3)]


def test_an_upper_line_that_its_cases_call_worse_is_tied_not_better(world, write):
    # First by the mean of two ranks, but significantly worse on the main measure.
    write("smooth", tre=[v + 1 for v in UP], sdlogj=[0.1] * 10, dice=[0.5] * 10, hd95=[1.0] * 10)
    write("sharp", tre=UP, sdlogj=[0.9] * 10, dice=[0.6] * 10, hd95=[2.0] * 10)
    found = read(world)
    assert found.main == "dice"
    assert [line.rank for line in found.lines] == [1.5, 1.5]
    write("smooth", tre=[v - 1 for v in UP], sdlogj=[0.1] * 10, dice=[0.5] * 10, hd95=[1.0] * 10)
    found = read(world)
    assert [line.method for line in found.lines] == ["smooth", "sharp"]
    assert found.lines[1].tie == "tied"


def test_five_cases_are_too_few_and_the_board_says_so(world, write):
    world.dataset(cases=dict.fromkeys(TEN[:5], ENTRY))
    write("a", tre=[1.0] * 5)
    write("b", tre=[9.0] * 5)
    found = read(world)
    assert by_name(found)["b"].tie == "too few"
    assert by_name(found)["b"].places == (2, 2)
    assert "too few to tell neighbours apart" in shown(found)


def test_a_method_that_loses_a_structure_cannot_gain_by_it(world, write):
    write("honest", tre=UP, hd95=[5.0] * 9 + [50.0])
    write("lossy", tre=[v + 1 for v in UP], hd95=[5.0] * 9 + [None])
    found = read(world)
    lines = by_name(found)
    assert lines["lossy"].metrics["hd95"].value < lines["honest"].metrics["hd95"].value
    assert (lines["lossy"].metrics["hd95"].missing, lines["lossy"].rank) == (1, 2.0)
    assert "5.00 (9 cases)" in shown(found)


def test_structures_that_were_missed_are_said_to_be_left_out_of_the_distances(world, write):
    write("blind", tre=UP, structures=[2.0] * 10, structures_produced=[2.0] * 9 + [1.0])
    (line,) = read(world).lines
    missed = "what it missed counts 0 in Dice and not at all in HD95"
    assert line.notes == (f"produced 19 of the truth's 20 structures; {missed}",)


def test_a_method_on_two_machines_is_ranked_on_its_latest_complete_line(world, write):
    write("m", machine="old", tre=UP, date="2026-01-01")
    write("m", machine="new", tre=UP, date="2026-02-01")
    write("m", machine="newest", tre=UP[:4], date="2026-03-01")
    found = read(world)
    assert [(line.machine, line.place) for line in found.lines] == [("new", 1), ("newest", None), ("old", None)]
    assert "that of new" in found.lines[2].unranked


def test_rows_of_other_files_are_left_out_and_named(world, write):
    write("a", tre=UP, date="2026-01-02")
    write("b", tre=UP, digest=OTHER, date="2026-01-01")
    found = read(world)
    assert [line.method for line in found.lines] == ["a"]
    assert any("b on host was scored on other files" in note for note in found.notes)


def test_a_licence_that_forbids_commerce_is_said(world, write):
    world.dataset(cases=dict.fromkeys(TEN, ENTRY), spdx="CC-BY-NC-4.0")
    write("a", tre=UP)
    assert any("CC-BY-NC-4.0" in note for note in read(world).notes)


def test_a_dataset_without_rows_names_the_command(world):
    with pytest.raises(UsageError, match="fidopt run METHOD toy"):
        read(world)
    assert boards(world.roots) == []


def test_sets_follow_their_metric():
    better = {"dice": True, "dice_lungs": True, "hd95_lungs": False, "tre_airways": False, "surface_dice": True}
    assert {metric: is_higher_better(metric) for metric in better} == better


def shown(found):
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=140).print(tables.terminal(found), markup=False)
    return " ".join(stream.getvalue().split())


def test_the_terminal_shows_place_mean_interval_change_failures_time_and_memory(world, write):
    write("identity", tre=[7.0] * 10)
    write("m", tre=list(range(1, 11)), failed=["c3"])
    text = shown(read(world))
    for part in ("TRE mm *", "5.50", "3.33 to 7.67", "+1.50", "5.5", "109", "reference"):
        assert part in text


def test_csv_and_frame_hold_a_line_a_row(world, write, monkeypatch):
    write("a", tre=UP)
    write("b", tre=[v + 1 for v in UP], dice_lungs=[0.5] * 10)
    rows = list(csv.DictReader(io.StringIO(tables.csv_text([read(world)]))))
    assert [row["method"] for row in rows] == ["a", "b"]
    assert float(rows[1]["dice_lungs"]) == 0.5
    assert rows[0]["dice_lungs"] == ""
    frame = fidopt.board("toy", results=world.roots.results, share=world.share)
    assert list(frame["method"]) == ["a", "b"]
    assert frame.loc[0, "tre"] == pytest.approx(2.5)


def test_latex_is_a_table_with_nothing_left_to_escape(world, write):
    write("a_b", tre=UP, folds=[0.0] * 10)
    text = tables.latex(read(world))
    assert r"a\_b" in text
    assert r"folds \%" in text
    assert text.count(r"\\") == 2
    assert r"2.50 $\pm$ 0.24" in text


def test_distances_far_below_one_keep_three_digits_of_the_largest(world, write):
    write("identity", tre=[0.00123] * 10, dice=[0.5] * 10)
    write("m", tre=[0.000034] * 10, dice=[0.5] * 10)
    found = read(world)
    assert tables.digits_of("tre", found) == 5
    text = shown(found)
    for part in ("0.00123", "0.00003", "+0.00120", "0.500"):
        assert part in text
    assert r"0.00003 $\pm$ 0.00000" in tables.latex(found)


@pytest.mark.parametrize(("value", "digits"), [(250.0, 2), (7.0, 2), (0.7, 3), (0.01, 4), (0.0, 2), (1e-30, 9)])
def test_a_column_has_the_decimals_of_its_largest_mean(world, write, value, digits):
    write("m", tre=[value] * 10)
    assert tables.digits_of("tre", read(world)) == digits


def test_a_line_says_what_its_warps_erased(world, write):
    write("identity", dice=[0.5] * 10, hd95=[5.0] * 10, labels_lost=[0.0] * 10)
    write("eraser", dice=[0.9] * 9 + [0.0], hd95=[2.0] + [None] * 9, labels_lost=[0.0] * 9 + [2.0])
    found = read(world)
    assert by_name(found)["eraser"].notes == (
        "its warps erased 2 labels in 1 case, which count 0 in Dice and not at all in HD95",
    )
    assert by_name(found)["identity"].notes == ()
    assert tables.mean_text("hd95", by_name(found)["eraser"].metrics["hd95"], 2) == "2.00 (1 case)"
