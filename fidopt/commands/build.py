"""``fidopt build``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fidopt.commands.options import Compute, Json, Overwrite, Where
from fidopt.commands.output import progress, say, show, show_json


def build(
    dataset: str,
    /,
    *cases: str,
    record: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Overwrite = False,
    where: Where | None = None,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Build a dataset's cases from its provider's files.

    Each case is built whole or not at all; a case that is there already is kept, and a build that was interrupted
    takes up where it stopped. Every store is read back and compared before it counts as built.

    Example: `fidopt build lung_ct --archives ~/archives`, where `~/archives/lung_ct` holds the provider's files.

    Parameters
    ----------
    dataset
        name of a dataset
    cases
        some of its cases; by default all
    record
        write the checksums into the dataset's folder, as those every later build is compared with
    """
    from fidopt import building, corpus

    roots = (where or Where()).roots()
    described = corpus.filled(corpus.dataset(dataset, roots))
    with (compute or Compute()).place() as place, progress(f"building {dataset}") as report:
        built = building.build(described, cases, roots=roots, overwrite=overwrite, client=place.client, progress=report)
    if record:
        path = building.record(described, {one.case: one.checksums for one in built}, roots=roots)
        say(f"checksums of {len(built)} case{'s' * (len(built) != 1)} recorded in {path}")
    if json:
        rows = [
            {"case": b.case, "folder": str(b.folder), "done": b.done, "recorded": "match" if record else b.recorded}
            for b in built
        ]
        show_json({"dataset": dataset, "cases": rows})
        return 0
    for one in built:
        show(f"{dataset}/{one.case}: {one.done}; {_WORDS['match' if record else one.recorded]}")
    show(f"in {roots.corpus / dataset}")
    return 0


_WORDS = {
    "match": "its checksums are those recorded",
    "differ": "its checksums are not those recorded: other versions of the libraries write other bytes",
    "none": "no checksums are recorded",
}
