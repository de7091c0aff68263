"""``fidopt draw``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fidopt.commands.options import Json, Share
from fidopt.commands.output import say, show, show_json
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from fidopt.corpus import Drawn
    from fidopt.descriptors.dataset import Dataset


def draw(
    dataset: str,
    /,
    *,
    development: int | None = None,
    write: Annotated[bool, Parameter(negative=())] = False,
    share: Share = None,
    json: Json = False,
) -> int:
    """Draw a dataset's test and development cases from all that have a ground truth.

    `pool.json` beside the dataset's `dataset.json` lists them. They are sorted by the SHA-256 of SEED:DATASET:CASE, and
    the first are test cases, from each source in proportion to its share; the development cases are the last, from the
    source with the most left, as long as the test cases stay the same without them. The same pool and seed always give
    the same draw. What would change in `dataset.json` is printed, and written with `--write`.

    Subjects without pairs are sorted the same way and paired two by two. A task with an official split, whose draw has
    a count of null, keeps it: its development cases are the first of its training set.

    Example: `fidopt draw hippocampus_mr --development 10`

    Parameters
    ----------
    dataset
        name of a dataset whose dataset.json has a "draw": its seed, and how many cases are drawn
    development
        how many cases are set aside for tuning, at most; by default those that the descriptor names
    write
        write the cases into the dataset's dataset.json, whose other keys stay as they are
    """
    from fidopt import corpus, resources
    from fidopt.corpus import pools

    if development is not None and development < 0:
        msg = f"--development: must not be negative, got {development}"
        raise UsageError(msg)
    roots = resources.roots(share=share)
    described = corpus.dataset(dataset, roots)
    pools.asked_draw(described)
    found = corpus.drawn(described, corpus.pool(described, roots), development=development)
    path = pools.descriptor_path(described, roots)
    # Line ends stay as they are: those of the file are written again.
    before = path.read_bytes().decode()
    after = pools.redrawn(before, found)
    changed = after != before
    written = pools.write(described, after, roots) if write and changed else None
    _short(described, found, asked=development)
    if json:
        show_json(_document(described, found) | {"changed": changed, "written": written and str(written)})
        return 0
    for line in _diff(before, after, name=str(path)):
        show(line)
    if not changed:
        show(f"{dataset}: its cases are those of the draw; nothing to write")
    elif written:
        say(f"written in {written}")
    else:
        say("nothing is written; add --write")
    return 0


def _document(dataset: Dataset, found: Drawn) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "draw": dataset.draw and dataset.draw.model_dump(),
        "sources": found.sources,
        "cases": {one.name: one.entry().model_dump(mode="json") for one in found.cases},
        "development": list(found.development),
    }


def _short(dataset: Dataset, found: Drawn, *, asked: int | None) -> None:
    wanted = dataset.draw.count if dataset.draw else None
    if wanted is not None and len(found.cases) < wanted:
        say(f"{dataset.name}: all {len(found.cases)} cases of its pool are test cases; {wanted} were to be drawn")
    if asked is not None and len(found.development) < asked:
        say(
            f"{dataset.name}: {len(found.development)} of {asked} development cases: the pool holds no other that "
            f"leaves the test cases as they are and shows none of their subjects"
        )


def _diff(before: str, after: str, *, name: str) -> Iterator[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=1, lineterm="")
    yield from lines
