"""What a write of a store has in common, whether of all of it or of its levels: what is left to do, and doing it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from blocks.execute.counting import Count, Progress
from blocks.execute.objects import Attempt
from blocks.execute.running import run_work
from blocks.graphs.writes import Graph, Stream, Target
from blocks.image.construction import JOURNAL
from blocks.image.planning import StorePlan
from blocks.image.view import Kind
from blocks.journal import KERNELS, Journal, Written, clear
from blocks.storage import Layout, Library, StoredArray, StoreError, create_array


@dataclass(frozen=True)
class Outcome:
    """What a write found and did.

    Parameters
    ----------
    shards
        How many the store has, of all levels that were to be written.
    there
        How many of them an earlier attempt had left whole.
    begun_again
        Whether an earlier attempt was thrown away: it made something else, or nobody knows what.
    """

    shards: int
    there: int
    begun_again: bool

    @property
    def state(self) -> Literal["written", "taken up"]:
        """Whether all was written now, or only what an earlier attempt had left to do."""
        return "taken up" if self.there else "written"


def attempted(
    attempt: Attempt,
    make: Callable[[], Iterator[Graph | Stream]],
    target: Target,
    root: Mapping[str, Any],
    *,
    progress: Progress | None,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> Outcome:
    """Do what is left of an attempt and publish it."""
    written = target.written
    outcome = Outcome(written.total, written.count, attempt.unfinished and not attempt.taken_up)
    do(make, target, progress=progress, client=client)
    attempt.finish(root)
    return outcome


def header_for(plan: StorePlan, made_from: str | None) -> dict[str, Any]:
    """Return what an interrupted store must have been made from to be taken up."""
    levels = [{"shape": [*lay.shape], "shards": [*lay.blocks], "dtype": str(lay.dtype)} for lay in plan.layouts]
    return {"made_from": made_from, "kind": plan.kind, "kernels": KERNELS, "levels": levels}


def array_at(path: str, layout: Layout, library: Library) -> StoredArray:
    """Return an array that is there, or make it."""
    if Path(path, "zarr.json").is_file():
        return StoredArray(path, library)
    # Whoever is killed while the metadata is written leaves the library's own temporary file.
    shutil.rmtree(path, ignore_errors=True)
    return create_array(path, layout, library=library)


def target_of(
    where: str,
    arrays: Sequence[StoredArray],
    kind: Kind,
    made_from: str | None,
    *,
    taken_up: bool,
    ready: bool,
    first: int = 0,
) -> Target:
    """Return what is to be written, and what of it is there; levels below ``first`` are not looked at."""
    journal = None if made_from is None else Journal(f"{where}/{JOURNAL}")
    written = Written(arrays, first=first)
    for level in range(len(arrays) if ready else 0):
        written.fill(level)
    if journal is not None and taken_up and not ready:
        journal.find(arrays, written)
    return Target(arrays, kind, written, journal)


def do(
    make: Callable[[], Iterator[Graph | Stream]],
    target: Target,
    *,
    progress: Progress | None,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> None:
    """Do the work that is left, and see that every shard of the arrays is written, and nothing lies beside them."""
    written = target.written
    run_work(make, Count(written.total, done=written.count, written=written, progress=progress), client)
    if written.count != written.total:
        missing = next(written.missing())
        msg = f"{written.count} of {written.total} shards were written; one that is missing is {missing}"
        raise StoreError(msg)
    clear(target.arrays, written)
