"""A board as a pandas data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidopt import resources
from fidopt.errors import MissingError
from fidopt.leaderboard.board import board as read_board
from fidopt.leaderboard.tables import records

if TYPE_CHECKING:
    from pandas import DataFrame


def board(name: str, *, results: Path | None = None, share: Path | None = None) -> DataFrame:
    """Return a dataset's leaderboard as a data frame, a line a row, in the board's order.

    Parameters
    ----------
    name
        A dataset's name.
    results, share
        Where rows and descriptors lie; as for the commands where they are not given.

    Raises
    ------
    MissingError
        Where pandas is not installed.
    UsageError
        When there is no such dataset, or no row of it.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        msg = "fidopt.board needs pandas: pip install 'fidopt[studies]'"
        raise MissingError(msg) from error
    return DataFrame(records(read_board(name, roots=resources.roots(results=results, share=share))))
