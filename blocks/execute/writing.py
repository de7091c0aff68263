"""Write a store, its levels and its geometry; taken up where an earlier attempt stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from blocks.execute.counting import Count, Progress
from blocks.execute.itself import refuse_itself
from blocks.execute.objects import Attempt, attempting
from blocks.execute.running import run_work
from blocks.graphs.writes import Graph, Stream, Target, level_writes, writes
from blocks.image.construction import (
    JOURNAL,
    construction,
    finish,
    header_of,
    is_ready,
    is_unfinished,
    make_room,
    publish_root,
)
from blocks.image.opening import Store, open_store, read_root
from blocks.image.planning import StorePlan, plan_levels, plan_store, with_levels
from blocks.image.view import Kind
from blocks.journal import KERNELS, Journal, Written
from blocks.storage import Layout, Library, StoredArray, StoreError, create_array, is_url, local_path
from blocks.storage.objects import fetch


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


def write_image(
    path: str | Path,
    image: xr.DataArray,
    *,
    kind: Kind | None = None,
    levels: bool = True,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    made_from: str | None = None,
    progress: Progress | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    library: Library = "zarr",
) -> Outcome:
    """Write an image as an OME-Zarr 0.5 store: its voxels, its coarser levels and its geometry.

    Parameters
    ----------
    path
        Where the store goes, on this file system (and the workers') or in a bucket, ``s3://``.
    image
        Dims (c,) (z,) y, x, in memory or lazy; any chunks.
    kind
        ``"labels"`` where a coarser level holds the most frequent label; by default what the image says it is.
    levels
        Whether to write the coarser levels.
    overwrite
        Whether a store that is there is replaced.
    attributes
        Further keys of the root's attributes.
    made_from
        What stands for all that the voxels come from, such as a digest. An attempt that was interrupted is taken up
        where it stopped when this, the layout and the engine's kernels are the same; without it, all begins again.
    progress
        Called as shards are written.
    client
        A Dask client; by default threads on this machine's cores. The store is the same to the byte.
    library
        What writes the shards; a store of the corpus is written by "zarr".

    Raises
    ------
    StoreExistsError
        When something lies at ``path`` that is not to be replaced, or may not be.
    ShardError
        When a shard cannot be written; the message names it. What is there stays, opens as no store, and is cleared
        away by the next attempt.
    ValueError
        When the image has no geometry, a type no store holds, or is read from the store it would replace.

    Notes
    -----
    While it is written, a store has no metadata in its root, so that nobody takes it for a whole one.
    """
    where = local_path(path)
    plan = plan_store(image, kind=kind, levels=levels, attributes=attributes)
    refuse_itself(image, where)
    header = _header(plan, made_from)
    if is_url(where):
        with attempting(where, header, resumable=made_from is not None) as attempt:
            if not attempt.taken_up:
                attempt.clear(overwrite=overwrite)
                attempt.begin()
            arrays = [attempt.array(p.path, lay, library) for p, lay in zip(plan.places, plan.layouts, strict=True)]
            target = Target(arrays, plan.kind, attempt.written(arrays))
            return _attempted(
                attempt, lambda: writes(image, target), target, plan.root, progress=progress, client=client
            )
    unfinished = is_unfinished(where)
    taken_up = make_room(where, overwrite=overwrite, header=None if made_from is None else header)
    with construction(where, header):
        ready = taken_up and is_ready(where)
        arrays = [_array(f"{where}/{p.path}", lay, library) for p, lay in zip(plan.places, plan.layouts, strict=True)]
        target = _target(where, arrays, plan.kind, made_from, taken_up=taken_up, ready=ready)
        outcome = Outcome(target.written.total, target.written.count, unfinished and not taken_up)
        _write(lambda: writes(image, target), target, progress=progress, client=client)
        finish(where, plan.root)
    return outcome


def rewrite_levels(
    path: str | Path,
    *,
    kind: Kind | None = None,
    made_from: str | None = None,
    progress: Progress | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    library: Library = "zarr",
) -> Outcome:
    """Write a store's coarser levels again from its level 0.

    Parameters
    ----------
    path
        An OME-Zarr 0.5 store, on this file system or in a bucket.
    kind
        ``"labels"`` for the most frequent label; by default what the store says it holds. It is recorded.
    made_from, progress, client, library
        As for :func:`write_image`.

    Raises
    ------
    StoreError
        When there is no such store.
    ShardError
        When a shard cannot be written.

    Notes
    -----
    Meanwhile the store holds level 0 alone, and is left so where this is interrupted.
    """
    store = open_store(path, library=library)
    where, said = store.path, store.multiscales
    modern = fetch(f"{where}/zarr.json") is not None if is_url(where) else Path(where, "zarr.json").is_file()
    if not modern or "t" in said.axes:
        msg = f"{where} is not an OME-Zarr 0.5 store of one image; convert it first"
        raise StoreError(msg)
    kind = said.kind if kind is None else kind
    root = read_root(where)
    plan = plan_levels(store, root, kind=kind)
    header = _header(plan, made_from)
    if is_url(where):
        return _rewrite_objects(store, plan, header, made_from, progress=progress, client=client)
    before = header_of(where)
    taken_up = made_from is not None and before == header
    with construction(where, header):
        publish_root(where, with_levels(root, plan.places[:1], kind=kind))
        if not taken_up:
            for stale in {place.path for place in (*said.levels, *plan.places)} - {plan.places[0].path}:
                shutil.rmtree(Path(where, stale), ignore_errors=True)
        laid = zip(plan.places[1:], plan.layouts[1:], strict=True)
        arrays = [store.arrays[0], *(_array(f"{where}/{place.path}", layout, library) for place, layout in laid)]
        target = _target(where, arrays, kind, made_from, taken_up=taken_up, ready=taken_up and is_ready(where), first=1)
        found = target.written
        outcome = Outcome(found.total, found.count, begun_again=before is not None and not taken_up)
        _write(lambda: level_writes(target), target, progress=progress, client=client)
        finish(where, plan.root)
    return outcome


def _rewrite_objects(
    store: Store,
    plan: StorePlan,
    header: Mapping[str, Any],
    made_from: str | None,
    *,
    progress: Progress | None,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> Outcome:
    """Write the coarser levels of a store in a bucket again."""
    where, root = store.path, read_root(store.path)
    with attempting(where, header, resumable=made_from is not None) as attempt:
        if not attempt.taken_up:
            attempt.begin()
        attempt.publish(with_levels(root, plan.places[:1], kind=plan.kind))
        if not attempt.taken_up:
            stale = {place.path for place in (*store.multiscales.levels, *plan.places)} - {plan.places[0].path}
            attempt.drop([name for name in attempt.there if name.startswith(tuple(f"{path}/" for path in stale))])
        laid, library = zip(plan.places[1:], plan.layouts[1:], strict=True), store.arrays[0].library
        arrays = [store.arrays[0], *(attempt.array(place.path, layout, library) for place, layout in laid)]
        target = Target(arrays, plan.kind, attempt.written(arrays, first=1))
        return _attempted(attempt, lambda: level_writes(target), target, plan.root, progress=progress, client=client)


def _attempted(
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
    _write(make, target, progress=progress, client=client)
    attempt.finish(root)
    return outcome


def _header(plan: StorePlan, made_from: str | None) -> dict[str, Any]:
    """Return what an interrupted store must have been made from to be taken up."""
    levels = [{"shape": [*lay.shape], "shards": [*lay.blocks], "dtype": str(lay.dtype)} for lay in plan.layouts]
    return {"made_from": made_from, "kind": plan.kind, "kernels": KERNELS, "levels": levels}


def _array(path: str, layout: Layout, library: Library) -> StoredArray:
    """Return an array that is there, or make it."""
    if Path(path, "zarr.json").is_file():
        return StoredArray(path, library)
    # Whoever is killed while the metadata is written leaves the library's own temporary file.
    shutil.rmtree(path, ignore_errors=True)
    return create_array(path, layout, library=library)


def _target(
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


def _write(
    make: Callable[[], Iterator[Graph | Stream]],
    target: Target,
    *,
    progress: Progress | None,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> None:
    """Do the work that is left, and see that every shard of the arrays is written."""
    written = target.written
    run_work(make, Count(written.total, done=written.count, written=written, progress=progress), client)
    if written.count != written.total:
        missing = next(written.missing())
        msg = f"{written.count} of {written.total} shards were written; one that is missing is {missing}"
        raise StoreError(msg)
