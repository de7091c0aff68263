"""What criteria ask of the surfaces of two label maps: each label's distances are computed once for all that ask.

A case's criteria are there before the first of them is called. The first to be called has the others' measures taken
along, of the labels that it asks for itself, and they find them. This module imports torch: only criteria import it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakSet

import torch

from blocks.execute import compute
from blocks.graphs.surface import Measure, measured
from blocks.kernels import surface
from fidopt.scoring.tensors import Last, voxels


@dataclass(frozen=True)
class Hausdorff:
    """A percentile of the distances between two surfaces, in the grid's unit."""

    percent: float

    def __call__(self, distances: surface.SurfaceDistances) -> float:
        """Return the larger of the two directed percentiles."""
        return surface.hausdorff(distances, percent=self.percent)


@dataclass(frozen=True)
class Near:
    """The part of two surfaces that lies within a tolerance of the other, in the grid's unit."""

    tolerance: float

    def __call__(self, distances: surface.SurfaceDistances) -> float:
        """Return the surface Dice."""
        return surface.surface_dice(distances, tolerance=self.tolerance)


class Asking(Protocol):
    """A criterion that asks for distances."""

    def measure(self, label: int) -> Measure | None:
        """Return what it asks of a label's distances; None where it does not ask for the label."""


Found = dict[tuple[int, Measure], float | None]

#: The criteria there are; one that is gone asks for nothing.
_ASKING: WeakSet[Asking] = WeakSet()
_FOUND: Last[Found] = Last()


def will_ask(criterion: Asking) -> None:
    """Have a criterion's measures taken along with those of the others."""
    _ASKING.add(criterion)


def ask(
    criterion: Asking, labels: Iterable[int], fixed: torch.Tensor, warped: torch.Tensor, *, steps: Sequence[float]
) -> dict[int, float | None]:
    """Return what a criterion asks of the surfaces of labels, None for a label that one of the maps lacks.

    Parameters
    ----------
    labels
        Those that one of the maps holds.
    fixed, warped
        A batch of one label map each, on one grid.
    steps
        Distance between neighbouring voxels along each array axis, in array order.
    """
    wanted = {label: measure for label in labels if (measure := criterion.measure(label)) is not None}
    found = _FOUND.of(fixed, warped, make=dict)
    missing = [label for label, measure in wanted.items() if (label, measure) not in found]
    asked = {label: _all_of(label, criterion) for label in missing}
    found |= _measured(asked, fixed, warped, steps)
    return {label: found[label, measure] for label, measure in wanted.items()}


def _all_of(label: int, criterion: Asking) -> tuple[Measure, ...]:
    everybody = (one.measure(label) for one in (criterion, *_ASKING))
    return tuple(dict.fromkeys(measure for measure in everybody if measure is not None))


def _measured(
    asked: Mapping[int, tuple[Measure, ...]], fixed: torch.Tensor, warped: torch.Tensor, steps: Sequence[float]
) -> Found:
    found: Found = {}
    for batch in measured(voxels(fixed), voxels(warped), asked, steps=steps):
        for label, values in compute(batch).items():
            nothing = (None,) * len(asked[label])
            found |= {(label, measure): v for measure, v in zip(asked[label], values or nothing, strict=True)}
    return found
