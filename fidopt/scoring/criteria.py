"""Criteria that KonfAI's evaluator runs, each a thin reading of one of the engine's kernels or graphs.

``evaluation/registration.yml`` names them ``fidopt:scoring:criteria:NAME``: colons throughout, since KonfAI takes a dot
in such a name for a level of its file and would build the criterion with its defaults, in silence. This module imports
KonfAI and torch: only the evaluator imports it.
"""

import numpy as np
import torch
from konfai.metric.measure.base import Criterion, CriterionWithAttribute
from konfai.utils.dataset import Attribute

from blocks.kernels import jacobian, overlap
from fidopt.scoring.regularity import Inside, Question, answer
from fidopt.scoring.surfaces import Hausdorff, ask, will_ask
from fidopt.scoring.tensors import Number, Values, counted, grid_in, held, number, values, voxels

# Annotations stay real objects here: KonfAI reads them to bind a criterion's arguments.


class _LabelCriterion(CriterionWithAttribute):  # type: ignore[misc]  # KonfAI's types are not read
    """Compares the warped label map with the fixed one, over the labels that both images hold.

    Parameters
    ----------
    labels
        The labels to score; every label but the background by default.

    Notes
    -----
    Targets: the fixed label map, and the moving one on its own grid, as it was before it was warped. A label that the
    moving image never had is not the field's fault and is left out; one that it had and the warp erased is scored.
    """

    def __init__(self, labels: list[int] | None = None) -> None:
        super().__init__()
        self.labels = labels

    def counts(self, warped: torch.Tensor, fixed: torch.Tensor, moving: torch.Tensor) -> overlap.LabelCounts:
        """Count the voxels of the labels to score."""
        counts = counted(fixed, warped)
        there = np.intersect1d(counts.ids[counts.fixed > 0], held(moving))
        wanted = there if self.labels is None else np.intersect1d(there, self.labels)
        return counts.select(int(label) for label in wanted)


class Dice(_LabelCriterion):
    """Dice of each label of both images; one that the warp erased has 0."""

    maximize = True

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Values:
        """Return each label's Dice."""
        del attributes
        counts = self.counts(output, targets[0], targets[1])
        return values(dict(zip(counts.ids.tolist(), overlap.dice(counts).tolist(), strict=True)))


class LabelsLost(_LabelCriterion):
    """How many labels of both images the warp erased."""

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Number:
        """Return the number of labels without a voxel left."""
        del attributes
        counts = self.counts(output, targets[0], targets[1])
        return number(float(np.count_nonzero(counts.warped == 0)))


class HD95(_LabelCriterion):
    """Percentile of the distances between the surfaces of each label that the warp kept, in the grid's unit.

    Parameters
    ----------
    labels
        The labels to score; every label but the background by default.
    percent
        Of the area-weighted directed distances; the larger of the two directions counts.
    """

    def __init__(self, labels: list[int] | None = None, percent: float = 95.0) -> None:
        super().__init__(labels)
        self.percent = percent
        will_ask(self)

    def measure(self, label: int) -> Hausdorff | None:
        """Return what is asked of a label's distances."""
        return Hausdorff(self.percent) if self.labels is None or label in self.labels else None

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Values:
        """Return each label's distance, NaN for a label that the warp erased."""
        steps = grid_in(voxels(targets[0]).shape, attributes[0][0]).spacing[::-1]
        counts = self.counts(output, targets[0], targets[1])
        return values(ask(self, counts.ids.tolist(), targets[0], output, steps=steps))


class TREPercentile(Criterion):  # type: ignore[misc]  # KonfAI's types are not read
    """Percentile of the landmark errors, interpolated between them as ``numpy.percentile`` does.

    Parameters
    ----------
    percent
        Which one.
    """

    def __init__(self, percent: float = 95.0) -> None:
        super().__init__()
        self.percent = percent

    def forward(self, output: torch.Tensor, *targets: torch.Tensor) -> Number:
        """Return the percentile of the distances between two lists of points, (1, n, ndim) each."""
        errors = torch.linalg.norm(output - targets[0], dim=2).ravel().numpy()
        return number(float(np.percentile(errors, self.percent)))


class _FieldCriterion(Criterion):  # type: ignore[misc]  # KonfAI's types are not read
    """Looks at what the Jacobian determinants of a displacement field add up to.

    Parameters
    ----------
    inside
        "everywhere"; "body", where the fixed image is above its Otsu threshold; "mask", where the fixed mask is not 0.
    margin
        Voxels left out on each side before the spread is taken.
    offset
        Added to the determinant before its logarithm.

    Notes
    -----
    The output is the table of :mod:`fidopt.scoring.regularity`; the target only says what the field is held against.
    """

    def __init__(
        self, inside: Inside = "everywhere", margin: int = jacobian.MARGIN, offset: float = jacobian.OFFSET
    ) -> None:
        super().__init__()
        self.question = Question(inside, margin, offset)

    def regularity(self, output: torch.Tensor) -> jacobian.Regularity:
        """Return what the field's determinants add up to, over the voxels that count."""
        return answer(output[0].numpy(), self.question)


class SDlogJ(_FieldCriterion):
    """Standard deviation of the logarithm of the determinants."""

    def forward(self, output: torch.Tensor, *targets: torch.Tensor) -> Number:
        """Return the deviation, NaN where no voxel is left."""
        del targets
        return number(self.regularity(output).spread)


class Folds(_FieldCriterion):
    """Fraction of the voxels whose determinant is not positive."""

    def __init__(self, inside: Inside = "everywhere") -> None:
        super().__init__(inside)

    def forward(self, output: torch.Tensor, *targets: torch.Tensor) -> Number:
        """Return the fraction, NaN where there is no voxel."""
        del targets
        return number(self.regularity(output).folded)
