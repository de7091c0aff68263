"""``fidopt demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidopt.commands.options import Json, Share
from fidopt.commands.output import progress, say, show, show_json

if TYPE_CHECKING:
    from fidopt.demo import Outcome


def demo(
    *,
    directory: Annotated[Path, Parameter(name="--dir")] = Path("demo"),
    share: Share = None,
    json: Json = False,
) -> int:
    """Show all of it: two small real datasets built, verified, registered, scored and ranked, and a warp on a cluster.

    The images come with scikit-image and nilearn, so nothing else is downloaded but the methods' own environments.

    Example: `fidopt demo --dir /tmp/demo`

    Parameters
    ----------
    directory
        where everything goes; a demo that was interrupted takes up where it stopped
    """
    from fidopt import demo as whole
    from fidopt import resources
    from fidopt.descriptors.base import shown
    from fidopt.leaderboard import tables
    from fidopt.leaderboard.board import Board

    def show_board(board: Board) -> None:
        if not json:
            show(tables.terminal(board))

    console = whole.Console(say=say, show=show_board, progress=progress)
    outcome = whole.demo(directory, roots=resources.roots(share=share), console=console)
    if json:
        show_json(_document(outcome))
        return int(outcome.failed > 0)
    size = f"{outcome.voxels / 1e6:.0f} million voxels in {outcome.shards} shards"
    show(f"Done in {outcome.seconds:.0f} s; warped, with the coarser levels: {size}")
    if outcome.pictures:
        show(f"pictures  {shown(outcome.pictures[-1])}/, before.png and after.png")
    show(f"rows      {shown(directory / 'results')}/")
    show(f"volume    fidopt info {shown(outcome.warped)} --preview brain.png")
    if outcome.failed:
        say(f"{outcome.failed} runs failed, for the reasons above; mend them, and the demo runs those again")
    return int(outcome.failed > 0)


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "boards": [board.document() for board in outcome.boards],
        "failed": outcome.failed,
        "pictures": [str(folder) for folder in outcome.pictures],
        "warped": str(outcome.warped),
        "dashboard": outcome.dashboard,
        "voxels": outcome.voxels,
        "shards": outcome.shards,
        "seconds": outcome.seconds,
    }
