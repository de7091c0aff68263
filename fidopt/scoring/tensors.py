"""What KonfAI's criteria are handed and hand back, as arrays and as values."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from konfai.utils.dataset import Attribute

from blocks.grid import Grid

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
