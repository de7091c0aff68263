"""A table is folded where it is wider than the terminal, and no cell is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fidopt.leaderboard.folding import Folded

TABLE = Folded(
    title="Numbers",
    heads=["place", "method", *(f"measure {n}" for n in range(9))],
    rows=[[str(row), f"method-{row}", *(f"{row}.{n}12345\n{row} to {n}" for n in range(9))] for row in range(2)],
    keys=2,
    caption="Read them with care: " + "they are many. " * 8,
)


def printed(width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(TABLE)
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120, 240])
def test_every_cell_is_whole_and_no_line_longer_than_the_terminal(width):
    text = printed(width)
    assert all(cell in text for row in TABLE.rows for text_ in row for cell in text_.split("\n"))
    assert all(head in text for head in TABLE.heads)
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= width


def test_what_fits_is_one_table_and_what_does_not_goes_on_beside_the_same_first_columns():
    assert printed(240).count("method-0") == 1
    parts = printed(80).count("method-0")
    assert parts > 1
    assert printed(80).count("place") == parts


def test_a_table_without_rows_is_what_stands_above_and_below_it():
    stream = io.StringIO()
    Console(file=stream, width=80).print(Folded("Numbers", ["place", "method"], [], caption="There are none."))
    assert stream.getvalue() == "Numbers\nThere are none.\n"
