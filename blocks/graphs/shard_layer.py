"""A layer of a Dask graph whose tasks each compute one shard of a job: made when asked for, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import xarray as xr
from dask._task_spec import Task, TaskRef
from dask.highlevelgraph import Layer

from blocks.graphs.warp_job import FieldJob, WarpJob, compute_shard
from blocks.region import Region

Key = tuple[str | int, ...]


class ShardLayer(Layer):  # type: ignore[misc]  # Dask is not typed
    """The shards of a job, a task each, under (name, [0 for the channels,] z, y, x).

    Parameters
    ----------
    name, common
        Of the layer, and of the entry of the graph that holds the job.
    job
        What the tasks have in common.
    size
        Voxels of a shard, spatial axes.
    channels
        Whether the image has an axis of channels, which a shard has whole.
    """

    def __init__(
        self, name: str, common: str, job: WarpJob | FieldJob, *, size: tuple[int, ...], channels: bool
    ) -> None:
        super().__init__()
        self.name, self.common, self.job = name, common, job
        self.size, self.lead = size, (0,) if channels else ()
        self.counts = tuple(-(-n // s) for n, s in zip(job.fixed.shape, size, strict=True))

    def is_materialized(self) -> bool:
        """Return False: no task is held."""
        return False

    def get_output_keys(self) -> set[Key]:
        """Return the keys of all tasks."""
        return set(self)

    def __getitem__(self, key: Key) -> Task:
        """Return the task of a key."""
        if key not in self:
            raise KeyError(key)
        start = tuple(int(i) * s for i, s in zip(key[1 + len(self.lead) :], self.size, strict=True))
        stop = tuple(a + s for a, s in zip(start, self.size, strict=True))
        return Task(key, compute_shard, TaskRef(self.common), Region(start, stop).clip(self.job.fixed.shape))

    def __contains__(self, key: object) -> bool:
        """Whether a key is one of the layer's."""
        lead = (self.name, *self.lead)
        if not isinstance(key, tuple) or key[: len(lead)] != lead or len(key) != len(lead) + len(self.counts):
            return False
        return all(isinstance(i, int) and 0 <= i < n for i, n in zip(key[len(lead) :], self.counts, strict=True))

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys, in index order."""
        for index in product(*(range(n) for n in self.counts)):
            yield (self.name, *self.lead, *index)

    def __len__(self) -> int:
        """Return how many tasks there are."""
        total = 1
        for n in self.counts:
            total *= n
        return total


def job_of(image: xr.DataArray) -> WarpJob | FieldJob | None:
    """Return the job of which a lazy image is the result and nothing else; None for any other image."""
    data: Any = image.data
    layer = getattr(getattr(data, "dask", None), "layers", {}).get(getattr(data, "name", None))
    return layer.job if isinstance(layer, ShardLayer) else None
