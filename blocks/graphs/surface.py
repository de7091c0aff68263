"""Distances between the surfaces of many labels, lazily: one task a label, in the joint box of its two regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from dask import delayed
from dask.system import CPU_COUNT

from blocks.kernels import surface
from blocks.kernels.overlap import Labels, common_type
from blocks.memory import surface_bytes
from blocks.region import Region

#: Bytes that the labels in work at once may take, unless it is said otherwise.
MEMORY_BYTES = 1 << 30
#: What is asked of one label's distances.
Measure = Callable[[surface.SurfaceDistances], float]


def measured(
    fixed: Labels,
    warped: Labels,
    measures: Mapping[int, Sequence[Measure]],
    *,
    steps: Sequence[float],
    memory_bytes: int = MEMORY_BYTES,
    threads: int = CPU_COUNT,
) -> Iterator[dict[int, Any]]:
    """Yield what is asked of the surfaces of labels as lazy values, a batch of labels at a time.

    Parameters
    ----------
    fixed, warped
        Label maps of one shape in memory, ([z,] y, x).
    measures
        Label -> what is asked of it; its distances are computed once, whatever their number.
    steps
        Distance between neighbouring voxels along each array axis, in array order.
    memory_bytes
        What the labels of a batch may take together while ``threads`` of them are in work; a label that needs more is
        in work alone.
    threads
        How many labels of a batch are in work at a time.

    Yields
    ------
    dict of int to Delayed
        Label -> the tuple of its measures in the unit of ``steps``, None where either map lacks it: to be computed
        batch by batch, the largest labels first.
    """
    first, second = common_type(fixed, warped)
    boxes = dict(zip(measures, surface.boxes(first, second, ids=list(measures)), strict=True))
    costs = {label: label_bytes(box, itemsize=first.dtype.itemsize) for label, box in boxes.items()}
    batch: dict[int, Any] = {}
    width = threads
    for label in sorted(measures, key=lambda label: (-costs[label], label)):
        if not batch:
            # All that follow need less: as many as fit now fit later too.
            width = max(1, min(threads, memory_bytes // max(costs[label], 1)))
        box, asked = boxes[label].slices, tuple(measures[label])
        batch[label] = delayed(_measure, pure=False)(first[box], second[box], label, tuple(steps), asked)
        if len(batch) == width < threads:
            yield batch
            batch = {}
    if batch:
        yield batch


def label_bytes(box: Region, *, itemsize: int) -> int:
    """Return the most bytes that the distances of one label take, from its joint box; ``itemsize`` of a voxel."""
    corners = int(np.prod([n + 1 for n in box.shape]))
    return surface_bytes(corners, voxels=2 * box.size * itemsize)


def _measure(
    fixed: Labels, warped: Labels, label: int, steps: tuple[float, ...], measures: tuple[Measure, ...]
) -> tuple[float, ...] | None:
    distances = surface.surface_distances(fixed, warped, label=label, steps=steps)
    return None if distances is None else tuple(measure(distances) for measure in measures)
