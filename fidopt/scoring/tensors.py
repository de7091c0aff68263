"""What KonfAI's criteria are handed and hand back, as arrays and as values."""

import math
import weakref
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from konfai.utils.dataset import Attribute

from blocks.grid import Grid
from blocks.kernels import overlap

T = TypeVar("T")

#: What a criterion answers: a loss, which plays no part here, and a value for each label or the one value.
Values = tuple[torch.Tensor, dict[str, float]]
Number = tuple[torch.Tensor, float]


def voxels(labels: torch.Tensor) -> npt.NDArray[np.integer]:
    """Return a batch of one label map as an array ([z,] y, x)."""
    array: npt.NDArray[np.integer] = labels[0, 0].numpy()
    return array


def grid_in(shape: tuple[int, ...], attribute: Attribute) -> Grid:
    """Return the grid that KonfAI's attributes of an image say, ``shape`` in array order."""
    origin, spacing, direction = (attribute.get_np_array(key) for key in ("Origin", "Spacing", "Direction"))
    return Grid.of(shape, spacing=spacing.tolist(), origin=origin.tolist(), direction=direction.ravel().tolist())


def values(found: Mapping[int, float | None]) -> Values:
    """Return a criterion's answer of one value a label, None as NaN."""
    return torch.tensor(0.0), {str(label): math.nan if value is None else value for label, value in found.items()}


def number(value: float | None) -> Number:
    """Return a criterion's answer of one value, None as NaN."""
    return torch.tensor(0.0), math.nan if value is None else value


class Last(Generic[T]):
    """What was made of the last tensors: KonfAI hands the same ones to every criterion of a case, one after another."""

    def __init__(self) -> None:
        self._made: tuple[tuple[weakref.ref[torch.Tensor], ...], T] | None = None

    def of(self, *tensors: torch.Tensor, make: Callable[[], T]) -> T:
        """Return what was made of these tensors before, else make it; tensors that are gone are never mistaken."""
        if self._made is not None:
            known, made = self._made
            if len(known) == len(tensors) and all(one() is other for one, other in zip(known, tensors, strict=True)):
                return made
        made = make()
        self._made = tuple(map(weakref.ref, tensors)), made
        return made


_COUNTS: Last[overlap.LabelCounts] = Last()
_HELD: Last[npt.NDArray[np.int64]] = Last()


def counted(fixed: torch.Tensor, warped: torch.Tensor) -> overlap.LabelCounts:
    """Return how often the labels of two batches of one label map meet; counted once for all criteria that ask."""
    return _COUNTS.of(fixed, warped, make=lambda: overlap.partial(voxels(fixed), voxels(warped)))


def held(labels: torch.Tensor) -> npt.NDArray[np.int64]:
    """Return the labels that a batch of one label map holds, ascending, without the background."""
    return _HELD.of(labels, make=lambda: overlap.distinct(voxels(labels)))
