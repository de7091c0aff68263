"""Write a store's coarser levels again; it has its old ones until the new ones are whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blocks.execute.counting import Progress
from blocks.execute.objects import attempting
from blocks.execute.targets import Outcome, array_at, attempted, do, header_for, target_of
from blocks.graphs.writes import Target, level_writes
from blocks.image.construction import JOURNAL, LEVELS, abandon, construction, finish_levels, header_of, is_ready
from blocks.image.opening import Store, open_store, read_root
from blocks.image.planning import StorePlan, plan_levels, with_levels
from blocks.image.view import Kind
from blocks.storage import Library, StoreError, is_url
from blocks.storage.objects import fetch


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
    On a file system the store has its old levels until the new ones are whole; where this is interrupted, it keeps
    them. While folders are renamed in the end, it shows level 0 alone. In a bucket, where nothing is renamed, it shows
    level 0 alone from the beginning.
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
    header = header_for(plan, made_from)
    if is_url(where):
        return _rewrite_objects(store, plan, header, made_from, progress=progress, client=client)
    before = header_of(where)
    taken_up = made_from is not None and (before == header or is_ready(where, header))
    stale = [place.path for place in said.levels if place.path != plan.places[0].path]
    with construction(where, header, afresh=not taken_up):
        ready = taken_up and is_ready(where, header)
        laid = zip(plan.places[1:], plan.layouts[1:], strict=True)
        made = [(_place(where, place.path, ready=ready), layout) for place, layout in laid]
        arrays = [store.arrays[0], *(array_at(place, layout, library) for place, layout in made)]
        target = target_of(where, arrays, kind, made_from, taken_up=taken_up, ready=ready, first=1)
        found = target.written
        outcome = Outcome(found.total, found.count, begun_again=before is not None and not taken_up)
        try:
            do(lambda: level_writes(target), target, progress=progress, client=client)
        except Exception:
            if not found.count or made_from is None:
                abandon(f"{where}/{JOURNAL}")
            raise
        first = with_levels(root, plan.places[:1], kind=kind)
        finish_levels(where, header, plan.root, first=first, stale=stale)
    return outcome


def _place(where: str, name: str, *, ready: bool) -> str:
    """Return where a level lies until all are whole, or, where they are, until it was moved to its own place."""
    made = f"{where}/{LEVELS}/{name}"
    return f"{where}/{name}" if ready and not Path(made).exists() else made


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
        return attempted(attempt, lambda: level_writes(target), target, plan.root, progress=progress, client=client)
