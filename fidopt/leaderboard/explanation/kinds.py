"""What an explanation is made of: values of one row beside those of the unregistered pair, and what they cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """A metric of the row.

    Parameters
    ----------
    metric, value
        Which, and what it is; None for the reason in ``reason``.
    unregistered
        What it is of the unregistered pair; None where that is not known.
    better
        By how much the row is better; negative where it is worse.
    reason
        Why it has no value.
    """

    metric: str
    value: float | None
    unregistered: float | None
    better: float | None
    reason: str = ""


@dataclass(frozen=True)
class LabelCost:
    """One label of one set.

    Parameters
    ----------
    set, label, name
        The set (``""`` is the first), the number, and the structure's name where the descriptor gives one.
    state
        ``"lost"`` where a warp erased it, ``"missing"`` or ``"invented"`` of a segmentation, ``""`` where both have it.
    dice, hd95, surface_dice
        Of the row; None where there is none.
    dice_before, hd95_before
        Of the unregistered pair; None where that is not known.
    cost
        What it takes from the set's mean Dice: (1 - Dice) over the number of labels.
    share
        Its part of all that the set lacks to 1; None where nothing is lacking.
    """

    set: str
    label: str
    name: str
    state: str
    dice: float | None
    dice_before: float | None
    hd95: float | None
    hd95_before: float | None
    surface_dice: float | None
    cost: float | None
    share: float | None


@dataclass(frozen=True)
class LandmarkCost:
    """One landmark pair of one set.

    Parameters
    ----------
    set, number
        The set (``""`` is the first), and its line in the files, from 1.
    error, before
        Of the row, and of the unregistered pair; None where that is not known.
    share
        Its part of the sum of all errors of the set; None where all are 0.
    position
        The fixed point, world x, y[, z] in LPS; None where the case is not built here.
    """

    set: str
    number: int
    error: float | None
    before: float | None
    share: float | None
    position: tuple[float, ...] | None


@dataclass(frozen=True)
class Regularity:
    """How regular the field is in one place; 0 in both would be a translation."""

    place: str
    sdlogj: float | None
    folds: float | None


@dataclass(frozen=True)
class RegionCost:
    """One region of a synthesis.

    Parameters
    ----------
    region
        Its name; see :mod:`fidopt.scoring.regions`.
    mae, bias
        Mean absolute error, and mean of made minus real.
    voxels
        How many voxels it has.
    low, high
        The real values that bound a quarter.
    share
        Of a quarter, its part of all the error inside the mask. Quarters are parted by values.
    """

    region: str
    mae: float
    bias: float
    voxels: int
    low: float | None
    high: float | None
    share: float | None


@dataclass(frozen=True)
class Explanation:
    """What cost what in one row.

    Parameters
    ----------
    method, dataset, case, machine, task, unit
        Whose it is, of what, where, and the unit of its distances.
    error
        Why the case failed; None where it did not.
    metrics
        The row's metrics.
    labels, landmarks
        Set by set, what costs most first.
    regularity, regions
        Of a registration, of a synthesis.
    pictures
        The folder of the case's pictures; None where there is none.
    notes
        What is not known, and how it comes to be.
    """

    method: str
    dataset: str
    case: str
    machine: str
    task: str
    unit: str
    error: str | None
    metrics: tuple[Change, ...]
    labels: tuple[LabelCost, ...]
    landmarks: tuple[LandmarkCost, ...]
    regularity: tuple[Regularity, ...]
    regions: tuple[RegionCost, ...]
    pictures: str | None
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        return asdict(self)
