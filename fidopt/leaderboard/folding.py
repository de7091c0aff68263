"""A table of any width in a terminal of any width: no cell is ever cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True)
class Folded:
    """A table whose columns that do not fit go on in a table below, beside the same first columns.

    Parameters
    ----------
    title, caption
        What stands above and below it; wrapped where they are wider than the terminal. Without rows they stand alone.
    heads
        A text a column.
    rows
        A text a cell, which may be of several lines.
    keys
        How many columns come first in every part and are left-justified; the others are numbers.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield title, tables and caption; rich calls this."""
        from rich.table import Table
        from rich.text import Text

        yield Text(self.title, style="italic")
        for columns in self._parts(options.max_width) if self.rows else ():
            table = Table()
            for column in columns:
                table.add_column(Text(self.heads[column]), justify="left" if column < self.keys else "right")
            for row in self.rows:
                table.add_row(*(Text(row[column]) for column in columns))
            yield table
        if self.caption:
            yield Text(self.caption, style="dim")

    def _parts(self, width: int) -> Iterator[list[int]]:
        """Yield the columns of each part: as many as fit beside the first ones, at least one."""
        first = list(range(self.keys))
        room = width - 1 - sum(map(self._width, first))
        part: list[int] = []
        for column in range(self.keys, len(self.heads)):
            if part and sum(map(self._width, [*part, column])) > room:
                yield first + part
                part = []
            part.append(column)
        yield first + part

    def _width(self, column: int) -> int:
        from rich.cells import cell_len

        lines = [
            line for text in (self.heads[column], *(row[column] for row in self.rows)) for line in text.split("\n")
        ]
        return max(map(cell_len, lines)) + 3
