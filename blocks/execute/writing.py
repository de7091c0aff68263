"""Write a store, its levels and its geometry; taken up where an earlier attempt stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from blocks.execute.counting import Progress
from blocks.execute.itself import refuse_itself
from blocks.execute.objects import attempting
from blocks.execute.targets import Outcome, array_at, attempted, do, header_for, target_of
from blocks.graphs.writes import Target, writes
from blocks.image.construction import abandon, construction, finish, is_ready, is_unfinished, make_room
from blocks.image.planning import plan_store
from blocks.image.view import Kind
from blocks.storage import Library, is_url, local_path


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
    header = header_for(plan, made_from)
    if is_url(where):
        with attempting(where, header, resumable=made_from is not None) as attempt:
            if not attempt.taken_up:
                attempt.clear(overwrite=overwrite)
                attempt.begin()
            arrays = [attempt.array(p.path, lay, library) for p, lay in zip(plan.places, plan.layouts, strict=True)]
            target = Target(arrays, plan.kind, attempt.written(arrays))
            try:
                return attempted(
                    attempt, lambda: writes(image, target), target, plan.root, progress=progress, client=client
                )
            except Exception:
                if not target.written.count:
                    attempt.abandon()
                raise
    unfinished = is_unfinished(where)
    taken_up = make_room(where, overwrite=overwrite, header=None if made_from is None else header)
    with construction(where, header, afresh=not taken_up):
        ready = taken_up and is_ready(where, header)
        arrays = [array_at(f"{where}/{p.path}", lay, library) for p, lay in zip(plan.places, plan.layouts, strict=True)]
        target = target_of(where, arrays, plan.kind, made_from, taken_up=taken_up, ready=ready)
        outcome = Outcome(target.written.total, target.written.count, unfinished and not taken_up)
        try:
            do(lambda: writes(image, target), target, progress=progress, client=client)
        except Exception:
            # What can never succeed leaves nothing; whatever is written already, the next attempt takes up.
            if not target.written.count:
                abandon(where)
            raise
        finish(where, header, plan.root)
    return outcome
