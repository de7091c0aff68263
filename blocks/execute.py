"""The one place that computes: graphs are made elsewhere, and run here, on threads or on a cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol

import dask
import xarray as xr
from dask.array.optimization import optimize
from dask.callbacks import Callback
from dask.core import flatten
from dask.highlevelgraph import MaterializedLayer
from dask.system import CPU_COUNT
from dask.threaded import get

from blocks.graphs.store import ShardError, Writes, level_writes, writes
from blocks.graphs.warp_job import compute_shard
from blocks.image.construction import construction, finish, make_room, publish_root
from blocks.image.opening import layer_prefix, open_store, read_root
from blocks.image.planning import plan_levels, plan_store, with_levels
from blocks.image.view import Kind
from blocks.storage import Library, StoredArray, StoreError, create_array, local_path, shard_file


class Progress(Protocol):
    """Called as shards are written, with how many are done and how many there are."""

    def __call__(self, done: int, total: int, /) -> None:
        """Take note of ``done`` of ``total`` shards."""


def compute(*lazy: Any, client: Any = None) -> Any:  # noqa: ANN401 - whatever Dask can compute; Dask is not typed
    """Return lazy images, arrays or values in memory: one for one, a tuple for several.

    Parameters
    ----------
    lazy
        Lazy ``xarray.DataArray``, Dask arrays or delayed values.
    client
        A Dask client; by default threads on this machine's cores.
    """
    if client is None and len(lazy) == 1 and (key := _only_task(lazy[0])):
        # Dask would copy what the one task made, in case it is somebody else's.
        return lazy[0].copy(data=get(lazy[0].data.dask, key))
    if client is None:
        # The function and not its name: to look a name up, Dask would import distributed.
        results = dask.compute(*lazy, scheduler=get, num_workers=CPU_COUNT)
    else:
        results = tuple(client.gather(client.compute(list(lazy))))
    return results[0] if len(results) == 1 else results


def _only_task(value: Any) -> tuple[Any, ...] | None:  # noqa: ANN401 - whatever Dask can compute
    """Return the key of the one warp task that computes an image; None where there are others, or other tasks."""
    data: Any = value.data if isinstance(value, xr.DataArray) else None
    if getattr(data, "npartitions", 0) != 1:
        return None
    key = next(flatten(data.__dask_keys__()))
    return key if getattr(data.dask.get(key), "func", None) is compute_shard else None


def write_image(
    path: str | Path,
    image: xr.DataArray,
    *,
    kind: Kind | None = None,
    levels: bool = True,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    library: Library = "zarr",
) -> None:
    """Write an image as an OME-Zarr 0.5 store: its voxels, its coarser levels and its geometry.

    Parameters
    ----------
    path
        Where the store goes, on this file system (and the workers').
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
    _refuse_itself(image, where)
    make_room(where, overwrite=overwrite)
    with construction(where, plan.layouts):
        laid = zip(plan.places, plan.layouts, strict=True)
        arrays = [create_array(f"{where}/{place.path}", layout, library=library) for place, layout in laid]
        _write(writes(image, arrays, kind=plan.kind), arrays, progress=progress, client=client)
        finish(where, plan.root)


def rewrite_levels(
    path: str | Path,
    *,
    kind: Kind | None = None,
    progress: Progress | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    library: Library = "zarr",
) -> None:
    """Write a store's coarser levels again from its level 0.

    Parameters
    ----------
    path
        An OME-Zarr 0.5 store on this file system.
    kind
        ``"labels"`` for the most frequent label; by default what the store says it holds. It is recorded.
    progress, client, library
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
    if not Path(where, "zarr.json").is_file() or "t" in said.axes:
        msg = f"{where} is not an OME-Zarr 0.5 store of one image on this file system; convert it first"
        raise StoreError(msg)
    kind = said.kind if kind is None else kind
    root = read_root(where)
    plan = plan_levels(store, root, kind=kind)
    with construction(where, plan.layouts):
        publish_root(where, with_levels(root, plan.places[:1], kind=kind))
        for stale in {place.path for place in (*said.levels, *plan.places)} - {plan.places[0].path}:
            shutil.rmtree(Path(where, stale), ignore_errors=True)
        laid = zip(plan.places[1:], plan.layouts[1:], strict=True)
        coarse = [create_array(f"{where}/{place.path}", layout, library=library) for place, layout in laid]
        _write(level_writes([store.arrays[0], *coarse], kind=kind), coarse, progress=progress, client=client)
        finish(where, plan.root)


def _refuse_itself(image: xr.DataArray, where: str) -> None:
    """Refuse an image that is read from the place it would be written to."""
    if _reads(image.data, where):
        msg = f"the image is read from {where}, which it would replace; write it elsewhere, or call compute() first"
        raise ValueError(msg)


def _reads(value: object, where: str) -> bool:
    """Whether a lazy array, or something a task is given, reads from a store."""
    if isinstance(value, StoredArray):
        return value.path.startswith(f"{where}/")
    if isinstance(value, tuple | list):
        return any(_reads(item, where) for item in value)
    if is_dataclass(value):
        return any(_reads(getattr(value, item.name), where) for item in fields(value))
    for name, layer in getattr(getattr(value, "dask", None), "layers", {}).items():
        if str(name).startswith(layer_prefix(where)):
            return True
        # What tasks have in common is a value in the graph; only layers that are spelled out hold such.
        if isinstance(layer, MaterializedLayer) and any(
            _reads(getattr(t, "value", None), where) for t in layer.values()
        ):
            return True
    return False


def _write(
    graphs: Iterable[Writes],
    arrays: Sequence[StoredArray],
    *,
    progress: Progress | None,
    client: Any,  # noqa: ANN401 - distributed is not typed
) -> None:
    """Run graphs that write shards one after the other, and see that every shard of the arrays is there."""
    total = sum(len(array.layout.indices()) for array in arrays)
    count = _Count(total, progress)
    for graph in graphs:
        if client is None or graph.local:
            _run_threads(graph, count)
        else:
            _run_cluster(graph, count, client)
    missing = [shard_file(a, i) for a in arrays for i in a.layout.indices() if not shard_file(a, i).is_file()]
    if missing or count.done != total:
        msg = f"{count.done} of {total} shards were written; {len(missing)} are missing, such as {missing[:1]}"
        raise StoreError(msg)


class _Count:
    """How many shards are written."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done = 0
        self.total = total
        self._progress = progress

    def add(self) -> None:
        """Count one more shard and tell."""
        self.done += 1
        if self._progress is not None:
            self._progress(self.done, self.total)


def _run_threads(graph: Writes, count: _Count) -> None:
    keys = set(graph.keys)
    running: set[Any] = set()

    def started(key: object, *_: object) -> None:
        running.add(key)

    def finished(key: object, *_: object) -> None:
        running.discard(key)
        if key in keys:
            count.add()

    try:
        with Callback(pretask=started, posttask=finished):
            get(optimize(graph.graph, list(graph.keys)), list(graph.keys), num_workers=CPU_COUNT)
    except Exception as error:
        raise _failure(running, error) from error


def _run_cluster(graph: Writes, count: _Count, client: Any) -> None:  # noqa: ANN401 - distributed is not typed
    from distributed import as_completed

    keys = list(graph.keys)
    futures = client.get(optimize(graph.graph, keys), keys, sync=False)
    try:
        for future in as_completed(futures, loop=client.loop):
            try:
                future.result()
            except Exception as error:
                raise _failure({future.key}, error) from error
            count.add()
    finally:
        client.cancel([future for future in futures if not future.done()])


def _failure(keys: Iterable[Any], error: Exception) -> ShardError:
    """Return an error that names the shard, or those that were in work where it cannot be told which."""
    if isinstance(error, ShardError):
        return error
    shards = sorted("/".join(map(str, key[1:])) for key in keys if isinstance(key, tuple))
    return ShardError(f"shard {' or '.join(shards)} could not be computed: {type(error).__name__}: {error}")
