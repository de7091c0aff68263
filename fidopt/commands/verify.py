"""``fidopt verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fidopt.commands.options import Json, Where
from fidopt.commands.output import progress, say, show, show_json
from fidopt.errors import MissingError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fidopt.building import Difference
    from fidopt.descriptors.dataset import Dataset
    from fidopt.resources import Roots


def verify(
    dataset: str | None = None,
    /,
    *cases: str,
    across: Annotated[bool, Parameter(negative=())] = False,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Compare every file of the built corpus with the recorded checksums, or its images with one another.

    One changed byte is found wherever it lies, and named; so are files that are missing and files that do not
    belong. A case that was built to other bytes than were recorded is told from a damaged one, with what is known of
    the reason: whether its voxels are those recorded, and which libraries were of another version. The exit code is 1
    when there is a difference.

    With `--across`, nothing is compared with checksums. Instead every image of every dataset, built here or recorded,
    is looked for in the others, by its voxels and their type: an image in two datasets of one task, in a test case and
    in a development case (of whatever tasks), on both sides of a pair, or under two subjects' names is named with both
    places, and the exit code is 1. Images of one value or of fewer than 256 voxels are left out, and so is what was
    turned, cut or resampled: its voxels are others.

    Example: `fidopt verify lung_ct`; without a dataset, all that are built. `fidopt verify --across` before a dataset
    is added.

    Parameters
    ----------
    dataset
        name of a dataset; by default each that is built
    cases
        some of its cases, development cases too; by default each that is built
    across
        look for images that are in two places where they may not be
    """
    from fidopt import building, corpus

    roots = (where or Where()).roots()
    if across:
        if dataset is not None:
            msg = f"--across looks at every dataset at once; leave out {dataset}"
            raise UsageError(msg)
        return _across(roots, json=json)
    if dataset is not None:
        chosen = [corpus.filled(corpus.dataset(dataset, roots))]
    else:
        chosen = [one for one in corpus.datasets(roots) if not one.to_fill and building.built_cases(one, roots)]
    if not chosen:
        msg = f"no dataset is built in {roots.corpus}; build one first: fidopt build DATASET"
        raise MissingError(msg)
    documents = []
    for one in chosen:
        names = tuple(cases) or building.built_cases(one, roots)
        with progress(f"verifying {one.name}") as report:
            found = building.verify(one, names, roots=roots, progress=report)
        against = _against(one, names, roots)
        rows = [_row(difference) for difference in found]
        documents.append({"dataset": one.name, "cases": list(names), "against": against, "differences": rows})
        if json:
            continue
        for difference in found:
            say(f"{roots.corpus / one.name}/{difference}")
        differences = "1 difference" if len(found) == 1 else f"{len(found)} differences"
        show(f"{one.name}: {', '.join(names)}: {differences if found else f'every file as {_AGAINST[against]}'}")
    if json:
        show_json({"datasets": documents})
    return int(any(document["differences"] for document in documents))


def _row(difference: Difference) -> dict[str, str]:
    row = {"case": difference.case, "path": difference.path, "problem": difference.problem}
    return row | ({"why": difference.why} if difference.why else {})


def _across(roots: Roots, *, json: bool) -> int:
    from fidopt.building.doubles import search

    with progress("comparing images") as report:
        found = search(roots, progress=report)
    if json:
        doubles: list[dict[str, Any]] = [
            {
                "kind": double.kind,
                "places": [
                    {"dataset": place.dataset, "case": place.case, "path": place.path, "side": place.side}
                    for place in double.places
                ],
                "problem": str(double),
            }
            for double in found.doubles
        ]
        show_json({"images": found.images, "datasets": found.datasets, "unknown": found.unknown, "doubles": doubles})
        return int(bool(doubles))
    for double in found.doubles:
        say(str(double))
    if found.unknown:
        shown = ", ".join(found.unknown[:5]) + (" and others" if len(found.unknown) > 5 else "")
        say(f"not looked at, since they are neither built here nor recorded: {len(found.unknown)} cases ({shown})")
    count = len(found.doubles)
    said = "no image twice" if not count else f"{count} image{'s' * (count != 1)} twice"
    number = len(found.datasets)
    show(f"{found.images} images of {number} dataset{'s' * (number != 1)}: {said}")
    return int(bool(count))


def _against(dataset: Dataset, names: Sequence[str], roots: Roots) -> str:
    """Return what cases were compared with: ``recorded``, ``built`` here, or ``both``.

    It is both where a seed of this machine's own drew what is not recorded.
    """
    from fidopt import building
    from fidopt.building.recipe import is_drawn

    known = [(name, building.recorded(dataset, name, roots)) for name in names]
    if any(one is None for _, one in known):
        return "built"
    whole = all(any(map(is_drawn, one.cases[name])) for name, one in known if one)
    return "recorded" if whole or not dataset.warp else "both"


_AGAINST = {
    "recorded": "recorded with the dataset",
    "built": "built here (no checksums are recorded with the dataset)",
    "both": "recorded with the dataset, and what a seed of this machine draws as built here",
}
