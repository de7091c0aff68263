"""``fidopt table``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from fidopt.commands.options import Json, Where
from fidopt.commands.output import show, show_json
from fidopt.errors import UsageError

Switch = Annotated[bool, Parameter(negative=())]


def table(
    dataset: str | None = None,
    /,
    *,
    csv: Switch = False,
    latex: Switch = False,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Show leaderboards: a line a method, with means, 95 % intervals, failures, time and memory.

    Example: `fidopt table retina`

    Parameters
    ----------
    dataset
        name of a dataset; by default every dataset that has rows
    csv
        print them as CSV
    latex
        print them as LaTeX tables
    """
    from fidopt.leaderboard import tables
    from fidopt.leaderboard.board import board, boards

    if csv + latex + json > 1:
        msg = "--json, --csv and --latex exclude each other; give one"
        raise UsageError(msg)
    roots = (where or Where()).roots()
    found = [board(dataset, roots=roots)] if dataset else boards(roots)
    if not found:
        msg = f"there are no rows in {roots.results}; write some: fidopt run METHOD DATASET"
        raise UsageError(msg)
    if json:
        show_json({"boards": [one.document() for one in found]})
    elif csv:
        sys.stdout.write(tables.csv_text(found))
    elif latex:
        sys.stdout.write("\n".join(tables.latex(one) for one in found))
    else:
        for one in found:
            show(tables.terminal(one))
    return 0
