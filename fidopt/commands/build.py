"""``fidopt build``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidopt.commands.options import Compute, Json, Overwrite, Where
from fidopt.commands.output import progress, say, show, show_json
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from fidopt.descriptors.dataset import Dataset


def build(
    dataset: str,
    /,
    *cases: str,
    development: Annotated[bool, Parameter(negative=())] = False,
    record: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Overwrite = False,
    where: Where | None = None,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Build a dataset's cases from its provider's files.

    Each case is built whole or not at all; a case that is there already is kept, and a build that was interrupted
    takes up where it stopped. Every store is read back and compared before it counts as built.

    A known deformation is drawn from what is kept with the archive, ARCHIVES/DATASET/private/warp.json. Where nothing
    is kept there a seed is drawn once and kept on this machine (FIDOPT_PRIVATE); what it draws is the same in every
    build here, is nobody else's, and is left out of recorded checksums.

    Example: `fidopt build lung_ct --archives ~/archives`, where `~/archives/lung_ct` holds the provider's files.

    Parameters
    ----------
    dataset
        name of a dataset
    cases
        some of its cases, development cases too; by default all test cases
    development
        build its development cases instead, on which settings may be tuned
    record
        write the checksums into the dataset's folder, as those every later build is compared with: checksums.json, and
        checksums_development.json for development cases
    """
    from fidopt import building, corpus
    from fidopt.building.recipe import is_own, own_path

    roots = (where or Where()).roots()
    described = corpus.filled(corpus.dataset(dataset, roots))
    names = _development(described, cases) if development else cases
    with (compute or Compute()).place() as place, progress(f"building {dataset}") as report:
        built = building.build(described, names, roots=roots, overwrite=overwrite, client=place.client, progress=report)
    if record:
        for some in (described.cases, described.development):
            chosen = {one.case: one.checksums for one in built if one.case in some}
            if chosen:
                path = building.record(described, chosen, roots=roots)
                say(f"checksums of {len(chosen)} case{'s' * (len(chosen) != 1)} recorded in {path}")
    own = is_own(described, roots)
    if own:
        kept = roots.archives / dataset / "private" / "warp.json"
        mine = own_path(described, roots)
        say(f"{dataset}: its deformation is drawn from a seed that this machine alone has, {mine}")
        say(f"who keeps the truth puts that file at {kept}, so that others with the archive build the same")
    if json:
        rows = [
            {"case": b.case, "folder": str(b.folder), "done": b.done, "recorded": "match" if record else b.recorded}
            for b in built
        ]
        show_json({"dataset": dataset, "cases": rows, "own_seed": own})
        return 0
    for one in built:
        show(f"{dataset}/{one.case}: {one.done}; {_WORDS['match' if record else one.recorded]}")
    show(f"in {roots.corpus / dataset}")
    return 0


def _development(described: Dataset, cases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the named development cases, or all where none is named."""
    if not described.development:
        name = described.name
        msg = f"{name} has no development cases; `fidopt draw {name} --development 10` sets some aside"
        raise UsageError(msg)
    strange = [name for name in cases if name not in described.development]
    if strange:
        msg = f"{described.name} has no development case {strange[0]!r}; they are: {', '.join(described.development)}"
        raise UsageError(msg)
    return cases or described.development


_WORDS = {
    "match": "its checksums are those recorded",
    "differ": "its checksums are not those recorded; `fidopt verify` says what is known of the reason",
    "none": "no checksums are recorded",
}
