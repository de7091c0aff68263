"""Boards as a pandas data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidopt import resources
from fidopt.errors import MissingError
from fidopt.leaderboard.board import board as read_board
from fidopt.leaderboard.tables import records
from fidopt.leaderboard.track import find, track_board

if TYPE_CHECKING:
    from pandas import DataFrame


def board(name: str, *, results: Path | None = None, share: Path | None = None) -> DataFrame:
    """Return a dataset's leaderboard, or those of a track, as a data frame: a line a row, in the boards' order.

    Parameters
    ----------
    name
        A dataset's or a track's name; the column ``dataset`` tells a track's boards apart.
    results, share
        Where rows and descriptors lie; as for the commands where they are not given.

    Raises
    ------
    MissingError
        Where pandas is not installed.
    UsageError
        When there is no such dataset or track, or no row of it.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        msg = "fidopt.board needs pandas: pip install 'fidopt[studies]'"
        raise MissingError(msg) from error
    roots = resources.roots(results=results, share=share)
    track = find(name, roots)
    boards = [read_board(name, roots=roots)] if track is None else track_board(name, track, roots=roots).boards
    return DataFrame([record for one in boards for record in records(one)])
