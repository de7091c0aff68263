"""``fidopt table``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidopt.commands.options import Json, Where
from fidopt.commands.output import say, show, show_json
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from fidopt.leaderboard.board import Board
    from fidopt.leaderboard.track import TrackBoard
    from fidopt.resources import Roots

Switch = Annotated[bool, Parameter(negative=())]


def table(
    name: str | None = None,
    /,
    *,
    parity: Switch = False,
    csv: Switch = False,
    latex: Switch = False,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Show leaderboards: a line a method, with means, 95 % intervals, failures, time and memory.

    Of a track: who is ranked on all of its datasets, and the leaderboard of each. A challenge's own published table
    stands below the leaderboard of its task, never ranked with it.

    Example: `fidopt table retina`, `fidopt table lung_pair` for a track, or `fidopt table lungct_points --parity`

    Parameters
    ----------
    name
        name of a dataset or a track; by default every dataset that has rows
    parity
        compare the zero field, the rows of identity, with the organisers' own figures (official_zero.json): exit code
        1 where one is more than 0.0001 apart and no reason is stated
    csv
        print them as CSV
    latex
        print them as LaTeX tables
    """
    if csv + latex + json > 1:
        msg = "--json, --csv and --latex exclude each other; give one"
        raise UsageError(msg)
    roots = (where or Where()).roots()
    if parity:
        if latex:
            msg = "--parity is printed as a table, as --json or as --csv; leave --latex out"
            raise UsageError(msg)
        return _parity(name, roots, csv=csv, json=json)
    track, found = _boards(name, roots)
    if json:
        show_json({"boards": [one.document() for one in found]} | ({"track": track.document()} if track else {}))
    else:
        _show(track, found, csv=csv, latex=latex)
    return 0


def _boards(name: str | None, roots: Roots) -> tuple[TrackBoard | None, list[Board]]:
    """Return the leaderboards that are asked for, and their track's where a track is."""
    from fidopt.leaderboard.board import board, boards
    from fidopt.leaderboard.track import find, track_board

    if name is None:
        found = boards(roots)
        if not found:
            msg = f"there are no rows in {roots.results}; write some: fidopt run METHOD DATASET"
            raise UsageError(msg)
        return None, found
    described = find(name, roots)
    if described is None:
        return None, [board(name, roots=roots)]
    track = track_board(name, described, roots=roots)
    return track, list(track.boards)


def _show(track: TrackBoard | None, found: list[Board], *, csv: bool, latex: bool) -> None:
    from fidopt.leaderboard import published, tables
    from fidopt.leaderboard.track import terminal

    if csv:
        sys.stdout.write(tables.csv_text(found))
        return
    if latex:
        sys.stdout.write("\n".join(tables.latex(one) for one in found))
        return
    if track is not None:
        show(terminal(track))
    for one in found:
        show(tables.terminal(one))
        if one.published is not None:
            show(published.terminal(one.published, dataset=one.dataset))


def _parity(name: str | None, roots: Roots, *, csv: bool, json: bool) -> int:
    """Print the zero field beside the organisers' figures; 1 where a difference is not explained."""
    from fidopt.leaderboard import tables
    from fidopt.leaderboard.parity import parities, parity, records, terminal

    wanted = _official(name, roots)
    found, without = ([parity(name, roots)], []) if wanted == [name] and name else parities(wanted, roots)
    if not found:
        msg = f"there are no rows of identity on {', '.join(wanted) or 'any dataset that has an official_zero.json'} in"
        msg = f"{msg} {roots.results}; write some: fidopt run identity DATASET, or, where it has no images,"
        raise UsageError(f"{msg} fidopt score identity DATASET --fields DIR --voxels")
    for message in without:
        say(message)
    if json:
        show_json({"parity": [one.document() for one in found], "not_compared": without})
    elif csv:
        sys.stdout.write(tables.csv_of(records(found)))
    else:
        for one in found:
            show(terminal(one))
    return 0 if all(one.holds for one in found) else 1


def _official(name: str | None, roots: Roots) -> list[str]:
    """Return the datasets to compare: the one, those of a track, or all of which there are official figures."""
    from fidopt.leaderboard.parity import official_datasets
    from fidopt.leaderboard.track import find

    known = official_datasets(roots)
    if name is None:
        return known
    track = find(name, roots)
    if track is None:
        return [name]
    there = [one for one in track.datasets if one in known]
    if not there:
        msg = f"no dataset of {name} has an official_zero.json to compare with; those that have one:"
        raise UsageError(f"{msg} {', '.join(known) or 'none'}")
    return there
