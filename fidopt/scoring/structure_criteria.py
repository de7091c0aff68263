"""Criteria of a segmentation: an output's structures against the truth's, both in the dataset's numbering.

``evaluation/segmentation.yml`` names them. A structure that neither map holds is left out of everything; one that only
the truth holds was missed, one that only the output holds was invented: both have a Dice and a surface Dice of 0, and
no distance. This module imports KonfAI and torch: only the evaluator imports it.
"""

import numpy as np
import numpy.typing as npt
import torch
from konfai.metric.measure.base import CriterionWithAttribute
from konfai.utils.dataset import Attribute

from blocks.kernels import overlap
from fidopt.scoring.surfaces import Hausdorff, Near, ask, will_ask
from fidopt.scoring.tensors import Number, Values, counted, grid_in, number, values, voxels

# Annotations stay real objects here: KonfAI reads them to bind a criterion's arguments.


class _StructureCriterion(CriterionWithAttribute):  # type: ignore[misc]  # KonfAI's types are not read
    """Compares an output's label map with the truth's, structure by structure.

    Parameters
    ----------
    labels
        The structures to score.
    """

    def __init__(self, labels: list[int]) -> None:
        super().__init__()
        self.labels = labels

    def counts(self, output: torch.Tensor, truth: torch.Tensor) -> overlap.LabelCounts:
        """Count the voxels of the structures that one of the maps holds; the truth's are ``fixed``."""
        counts = counted(truth, output).select(self.labels)
        held = (counts.fixed > 0) | (counts.warped > 0)
        return counts.select(int(label) for label in counts.ids[held])

    def steps(self, truth: torch.Tensor, attributes: list[list[Attribute]]) -> tuple[float, ...]:
        """Return the distance between voxels along each array axis."""
        return grid_in(voxels(truth).shape, attributes[0][0]).spacing[::-1]


class Dice(_StructureCriterion):
    """Dice of each structure; 0 for one that was missed or invented."""

    maximize = True

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Values:
        """Return each structure's Dice."""
        del attributes
        counts = self.counts(output, targets[0])
        return values(dict(zip(counts.ids.tolist(), overlap.dice(counts).tolist(), strict=True)))


class HD95(_StructureCriterion):
    """Percentile of the distances between the surfaces of each structure, in the grid's unit.

    Parameters
    ----------
    labels
        The structures to score.
    percent
        Of the area-weighted directed distances; the larger of the two directions counts.
    """

    def __init__(self, labels: list[int], percent: float = 95.0) -> None:
        super().__init__(labels)
        self.percent = percent
        will_ask(self)

    def measure(self, label: int) -> Hausdorff | None:
        """Return what is asked of a structure's distances."""
        return Hausdorff(self.percent) if label in self.labels else None

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Values:
        """Return each structure's distance, NaN for one that was missed or invented."""
        steps = self.steps(targets[0], attributes)
        return values(ask(self, self.counts(output, targets[0]).ids.tolist(), targets[0], output, steps=steps))


class SurfaceDice(_StructureCriterion):
    """Part of both surfaces of each structure that lies within a tolerance of the other; 0 for one missed or invented.

    Parameters
    ----------
    labels
        The structures to score.
    tolerances
        Of each of them, in the grid's unit.
    """

    maximize = True

    def __init__(self, labels: list[int], tolerances: list[float]) -> None:
        super().__init__(labels)
        self.tolerances = dict(zip(labels, tolerances, strict=True))
        will_ask(self)

    def measure(self, label: int) -> Near | None:
        """Return what is asked of a structure's distances."""
        return Near(self.tolerances[label]) if label in self.tolerances else None

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Values:
        """Return each structure's surface Dice."""
        steps = self.steps(targets[0], attributes)
        found = ask(self, self.counts(output, targets[0]).ids.tolist(), targets[0], output, steps=steps)
        return values({label: 0.0 if value is None else value for label, value in found.items()})


class Held(_StructureCriterion):
    """How many of the structures the truth holds."""

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Number:
        """Return their number."""
        del attributes
        return _number_of(self.counts(output, targets[0]).fixed > 0)


class Produced(_StructureCriterion):
    """How many of the structures that the truth holds are in the output."""

    maximize = True

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Number:
        """Return their number."""
        del attributes
        counts = self.counts(output, targets[0])
        return _number_of((counts.fixed > 0) & (counts.warped > 0))


class Invented(_StructureCriterion):
    """How many structures are in the output that the truth lacks."""

    def forward(self, output: torch.Tensor, *targets: torch.Tensor, attributes: list[list[Attribute]]) -> Number:
        """Return their number."""
        del attributes
        return _number_of(self.counts(output, targets[0]).fixed == 0)


def _number_of(which: npt.NDArray[np.bool_]) -> Number:
    return number(float(np.count_nonzero(which)))
