"""Criteria of a synthesis: KonfAI's errors inside a mask, added up in float64, and the similarity of the mask's voxels.

``evaluation/synthesis.yml`` names them. Targets: the real image, then the mask. Each is reducible: a case that KonfAI
hands over in patches has the value of the whole to rounding. This module imports KonfAI and torch: only the evaluator
imports it.
"""

import math
from typing import Any

import numpy as np
import torch
from konfai.metric.measure import regression
from konfai.metric.measure.base import Criterion

from blocks.kernels import similarity
from fidopt.scoring.tensors import Number

# Annotations stay real objects here: KonfAI reads them to bind a criterion's arguments.


class _InFloat64:
    """Has one of KonfAI's masked errors add its voxels up in float64 and in one order, whatever the threads."""

    def _stat(self, x: torch.Tensor, y: torch.Tensor) -> float:
        return float(np.sum(self._kernel(x.double(), y.double()).numpy()))  # type: ignore[attr-defined]

    def forward(self, output: torch.Tensor, *targets: torch.Tensor) -> Number:
        """Return the value of the whole case, NaN where the mask is empty."""
        answer: Number = self.combine_metric([self.partial_metric(output, *targets)])  # type: ignore[attr-defined]
        return answer


class MAE(_InFloat64, regression.MAE):  # type: ignore[misc]  # KonfAI's types are not read
    """Mean absolute error inside the mask, in the target's unit."""

    def __init__(self) -> None:
        super().__init__()


class PSNR(_InFloat64, regression.PSNR):  # type: ignore[misc]  # KonfAI's types are not read
    """Peak signal-to-noise ratio inside the mask, in dB; infinite where nothing differs.

    Parameters
    ----------
    dynamic_range
        The peak.
    """

    def __init__(self, dynamic_range: float) -> None:
        super().__init__(dynamic_range)

    def _finish(self, total: float, count: int) -> float:
        return math.inf if total == 0 else float(super()._finish(total, count))


class MaskedSSIM(Criterion):  # type: ignore[misc]  # KonfAI's types are not read
    """Structural similarity over the mask's voxels, the channels averaged.

    KonfAI's own, over the mask's voxels instead of the whole image: outside a mask it makes both images 0, whose
    similarity is 1, so that its value rises with the width of the margin around the body.

    Parameters
    ----------
    dynamic_range
        Of the intensities.
    """

    maximize = True
    reducible = True
    halo = similarity.RADIUS

    def __init__(self, dynamic_range: float) -> None:
        super().__init__()
        self.dynamic_range = dynamic_range

    def forward(self, output: torch.Tensor, *targets: torch.Tensor) -> Number:
        """Return the value of the whole case, NaN where the mask is empty."""
        return self.combine_metric([self.partial_metric(output, *targets)])

    def partial_metric(
        self, output: torch.Tensor, *targets: torch.Tensor, core: tuple[slice, ...] | None = None
    ) -> list[similarity.Similarity]:
        """Return what each channel's map adds up to over the mask's voxels in the patch's core."""
        target, mask = targets[0][0].numpy(), targets[1][0, 0].numpy() != 0
        channels = zip(output[0].numpy(), target, strict=True)
        return [similarity.partial(*pair, mask, dynamic_range=self.dynamic_range, core=core) for pair in channels]

    def combine_metric(self, states: list[Any]) -> Number:
        """Return the mean over the patches' voxels."""
        mean = similarity.combine(part for state in states for part in state).mean
        return torch.tensor(0.0), math.nan if mean is None else mean
