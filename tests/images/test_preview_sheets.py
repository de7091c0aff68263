"""Sheets, scales, outlines, arrows and bars: what stands on them is where it should be."""

import numpy as np
import pytest

from fidopt.images.preview import (
    BOTH,
    MADE,
    TRUE,
    Arrow,
    Bar,
    Key,
    Panel,
    Scale,
    arrows,
    bars,
    contours,
    outline,
    overlaid,
    rising,
    rounded_up,
    sheet,
)
from fidopt.images.preview.words import SMALL, _font, fitted, folded, length, plain

BOTH_WAYS = Scale(0.5, 2.0, (0.5, 1.0, 2.0), both_ways=True)


def pixels(picture, colour):
    return int((picture == np.array(colour, np.uint8)).all(axis=-1).sum())


def test_a_scale_that_goes_both_ways_is_white_at_one_and_symmetric():
    low, one, high = BOTH_WAYS.colours([0.5, 1.0, 2.0])
    assert (one > 240).all()
    assert low[2] > low[0]
    assert high[0] > high[2]
    assert BOTH_WAYS.place([1 / 1.3, 1.3]).sum() == pytest.approx(1.0)
    assert BOTH_WAYS.place([-3.0, 0.0, 100.0, np.nan]).tolist() == [0, 0, 1, 0]


def test_a_rising_scale_ends_at_a_round_number():
    assert [rounded_up(v) for v in (0.031, 0.05, 1.0, 1.2, 300, 730)] == [0.05, 0.05, 1, 2, 500, 1000]
    assert rising(37.0).ticks == (0, 25, 50)
    assert rising(0.0).high == 1.0
    brightness = rising(1.0).colours(np.linspace(0, 1, 50)).astype(int).sum(axis=-1)
    assert (np.diff(brightness) >= 0).all()


def test_contours_are_of_three_colours_and_only_there():
    truth, made = np.zeros((20, 20)), np.zeros((20, 20))
    truth[2:10, 2:10] = 1
    made[2:10, 2:12] = 1
    ground = np.full((20, 20, 3), 77, np.uint8)
    drawn = contours(ground, truth, made)
    # Blue where only the truth's right side runs, orange on the other's, white on the sides they share.
    assert pixels(drawn, TRUE) == 6
    assert pixels(drawn, BOTH) == 8 + 7 + 7
    assert pixels(drawn, MADE) == 8 + 2
    assert (ground == 77).all()
    assert pixels(contours(ground, np.ones((20, 20)), np.zeros((20, 20))), TRUE) == 0


def test_an_outline_is_inside_its_label_and_between_two_labels():
    labels = np.zeros((6, 8))
    labels[1:5, 1:4], labels[1:5, 4:7] = 3, 5
    edge = outline(labels)
    assert not edge[labels == 0].any()
    assert edge[2, 3]
    assert edge[2, 4]
    assert not edge[2, 2]


def test_a_tint_is_mixed_where_the_mask_is():
    ground = np.full((4, 4, 3), 100, np.uint8)
    mask = np.eye(4, dtype=bool)
    tinted = overlaid(ground, mask, (200, 0, 100), opacity=0.5)
    assert tinted[mask].tolist() == [[150, 50, 100]] * 4
    assert (tinted[~mask] == 100).all()


def test_arrows_run_from_start_to_end():
    ground = np.zeros((40, 60, 3), np.uint8)
    drawn = arrows(ground, [Arrow((5.0, 20.0), (50.0, 20.0), TRUE, width=2, head=True)])
    rows, columns = np.nonzero(drawn.any(axis=-1))
    assert columns.min() in (4, 5)
    assert columns.max() in (49, 50)
    assert abs(rows - 20).max() <= 4
    # A head is wider than its line.
    assert np.ptp(rows[columns == 44]) > np.ptp(rows[columns == 20])
    assert not arrows(ground, [Arrow((5.0, 5.0), (5.0, 5.0), TRUE)]).any()


def test_a_sheet_holds_its_panels_and_words_and_has_the_same_bytes():
    one, other = np.full((50, 300, 3), 90, np.uint8), np.full((80, 200, 3), 91, np.uint8)
    made = [
        sheet(
            "a title that is long enough to be folded on a sheet of so few pixels, and then some more of it",
            [[Panel(one, "left"), Panel(other, "right")], [Panel(np.full((20, 100, 3), 92, np.uint8))]],
            [Key(TRUE, "one thing"), Key(BOTH_WAYS, "a scale")],
            note="a note",
        )
        for _ in range(2)
    ]
    assert np.array_equal(*made)
    assert made[0].shape[1] == 300 + 8 + 200 + 2 * 12
    assert [pixels(made[0], (v, v, v)) for v in (90, 91, 92)] == [15000, 16000, 2000]
    # Each of the words leaves ink: without them there is less of it.
    bare = sheet("", [[Panel(one), Panel(other)]])
    assert (made[0] > 150).sum() > (bare > 150).sum() + 1000


def test_words_are_folded_to_the_width_and_cut_where_they_must_be():
    text = "eleven words of which each is short enough to be folded"
    lines = folded(text, 120, SMALL)
    assert " ".join(lines) == text
    assert max(length(line, SMALL) for line in lines) <= 120
    assert length(fitted("a" * 200, 100, SMALL), SMALL) <= 100
    assert fitted("short", 100, SMALL) == "short"


def test_bars_are_as_long_as_their_numbers():
    picture = bars([Bar("one", 1.0), Bar("half", 0.5), Bar("none", None), Bar("beyond", 9.0)], width=500, most=1.0)
    lengths = [pixels(picture[20 * n + 9 : 20 * n + 10], MADE) for n in range(4)]
    assert lengths[0] == lengths[3]
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=1)
    assert lengths[2] == 0
    ticked = bars([Bar("x", 1.0, before=2.0)], width=400)
    assert pixels(ticked, TRUE) == 2 * 16
    assert bars([Bar("zero", 0.0)], width=300).shape == (20, 300, 3)


def test_what_the_typeface_has_no_letter_for_is_written_without_it():
    assert plain("\u00f6sophage, 3 \u00b5m, \u809d") == "osophage, 3 um, ?"
    assert length("\u00f6", SMALL) == length("o", SMALL)
    font = _font(SMALL)
    absent = bytes(font.getmask("\uffff"))
    assert not [chr(n) for n in range(33, 127) if bytes(font.getmask(chr(n))) == absent]
