"""Lazy images, arrays and values in memory."""

from __future__ import annotations

from typing import Any

import dask
import xarray as xr
from dask.core import flatten
from dask.system import CPU_COUNT
from dask.threaded import get

from blocks.graphs.warp_job import compute_shard
from blocks.storage import letting_go


def thread_count() -> int:
    """Return how many threads of this process compute: Dask's setting ``num_workers``, else one a core."""
    return int(dask.config.get("num_workers", None) or CPU_COUNT)


@letting_go()
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
        results = dask.compute(*lazy, scheduler=get, num_workers=thread_count())
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
