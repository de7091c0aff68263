"""``fidopt run``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fidopt.commands.options import Json, Where
from fidopt.commands.output import progress, say, show, show_json

if TYPE_CHECKING:
    from fidopt.runner.session import Finished


def run(
    method: str,
    dataset: str,
    /,
    *cases: str,
    again: Literal["failed", "all"] | None = None,
    machine: str | None = None,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Run a method on a dataset's cases, score its fields and write its rows.

    The method's environment is made first where it is not there. Cases that have a row are not run again; a case that
    fails gets a row that says why, counts as the unregistered pair, and stops no other.

    Example: `fidopt run demons retina`, then `fidopt table retina`.

    Parameters
    ----------
    method
        a method's name, or METHOD@VARIANT
    dataset
        name of a dataset, built before
    cases
        some of its cases; by default all
    again
        run again the cases that failed, or all
    machine
        folder of the results to write to, instead of this host's [FIDOPT_MACHINE]
    """
    from fidopt.runner.session import run_dataset

    roots = (where or Where()).roots()
    with progress(f"{method} on {dataset}") as report:
        finished = run_dataset(
            method, dataset, cases, roots=roots, say=say, again=again, machine=machine, progress=report
        )
    if json:
        show_json(_document(finished))
    else:
        show(_summary(finished))
    return 0


def _document(finished: Finished) -> dict[str, object]:
    line = finished.line
    return {
        "method": line.method,
        "dataset": line.dataset,
        "machine": line.machine,
        "file": str(line.rows),
        "done": finished.done,
        "failed": finished.failed,
        "kept": finished.kept,
    }


def _summary(finished: Finished) -> str:
    line = finished.line
    parts = [f"{len(finished.done)} run"]
    if finished.failed:
        parts.append(f"{len(finished.failed)} of them failed")
    if finished.kept:
        parts.append(f"{len(finished.kept)} had a row already")
    return f"{line.method} on {line.dataset}: {', '.join(parts)}; rows in {line.rows}"
