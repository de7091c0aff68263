"""``fidopt explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from fidopt.commands.options import Json, Where
from fidopt.commands.output import say, show, show_json
from fidopt.commands.pictures import refuse_picture


def explain(
    method: str,
    dataset: str,
    case: str | None = None,
    /,
    *,
    most: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 20,
    picture: Path | None = None,
    machine: str | None = None,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Show what cost what in one row: which labels, landmarks and regions, beside the unregistered pair.

    Each label has its Dice and distances, what it takes from the mean, and its share of all that the mean lacks to 1;
    each landmark its error and where it lies, the worst first; of a synthesis, the error inside and outside and by
    quarters of the real values. Nothing is computed again: the values were kept when the case was scored.

    Example: `fidopt explain demons lung_ct case01 --picture why.png`

    Parameters
    ----------
    method
        the line's name: a method's, METHOD@VARIANT, or one that was scored
    dataset
        name of a dataset
    case
        one of its cases; it may be left out where there is one
    most
        landmarks to print; --json has all
    picture
        PNG file to draw it into: what costs most, and where it lies where the case is built
    machine
        folder of the results, where the method was measured on several machines
    """
    from fidopt.leaderboard.explanation import explain as explained
    from fidopt.leaderboard.explanation import find
    from fidopt.leaderboard.explanation.tables import headline, tables

    if picture is not None:
        refuse_picture(picture, option="--picture")
    roots = (where or Where()).roots()
    found = find(method, dataset, case, roots=roots, machine=machine)
    answer = explained(found)
    if picture is not None:
        from fidopt.images.preview import write_png
        from fidopt.leaderboard.explanation.picture import draw

        write_png(picture, draw(found, answer))
        say(f"drawn in {picture}")
    if json:
        show_json(answer.document())
        return 0
    show(headline(answer))
    for table in tables(answer, most=most):
        show(table)
    for note in answer.notes:
        show(note)
    if answer.pictures:
        show(f"pictures in {answer.pictures}")
    return 0
