"""How often the labels of two maps meet, lazily: one task a shard counts, a tree of tasks adds up."""

from __future__ import annotations

from typing import Any

import xarray as xr
from dask import delayed
from dask.base import tokenize

from blocks.graphs.pyramid import as_shards
from blocks.image.view import channels_of, grid_of
from blocks.kernels.overlap import combine, partial

#: Counts that one task adds up.
ARITY = 16


def overlap(fixed_labels: xr.DataArray, warped_labels: xr.DataArray) -> Any:  # noqa: ANN401 - Dask is not typed
    """Return the voxels of each label in two maps, and in both at one place, as a lazy value.

    Parameters
    ----------
    fixed_labels, warped_labels
        Label maps on one grid, dims (z,) y, x, any integer type.

    Returns
    -------
    Delayed
        Computes to :class:`blocks.kernels.overlap.LabelCounts`; :func:`blocks.kernels.overlap.dice` makes Dice of it.
        Its tasks are named ``label-counts`` and ``label-counts-sum``; :func:`blocks.memory.overlap_bytes` says what
        one takes.

    Raises
    ------
    ValueError
        When the maps do not lie on one grid, or have channels.
    """
    maps = (fixed_labels, warped_labels)
    if any(channels_of(labels) is not None for labels in maps):
        msg = f"a label map has no channel axis, got {fixed_labels.dims} and {warped_labels.dims}"
        raise ValueError(msg)
    if not grid_of(fixed_labels).matches(grid_of(warped_labels)):
        msg = f"label maps are compared voxel by voxel and need one grid, got {grid_of(maps[0])} and {grid_of(maps[1])}"
        raise ValueError(f"{msg}; warp one onto the other's grid first")
    first, second = (as_shards(labels).to_delayed().ravel() for labels in maps)
    token = tokenize(first[0].key, second[0].key)
    pairs = enumerate(zip(first, second, strict=True))
    counts = [delayed(partial)(a, b, dask_key_name=(f"label-counts-{token}", k)) for k, (a, b) in pairs]
    level = 0
    while len(counts) > 1:
        level, parts = level + 1, [counts[i : i + ARITY] for i in range(0, len(counts), ARITY)]
        name = f"label-counts-sum-{token}"
        counts = [delayed(combine)(some, dask_key_name=(name, level, k)) for k, some in enumerate(parts)]
    return counts[0]
