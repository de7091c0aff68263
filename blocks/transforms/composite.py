"""Transforms one after the other, and their shortest equivalent list of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from blocks.transforms.affine import Affine, as_points
from blocks.transforms.box import AffineBox
from blocks.transforms.bspline import BSpline
from blocks.transforms.field import DisplacementField

Floats = npt.NDArray[np.float64]

#: What a composite comes down to.
Stage: TypeAlias = Affine | BSpline | DisplacementField
#: Everything that maps fixed world points to moving world points.
Transform: TypeAlias = Union[Affine, BSpline, DisplacementField, "Composite"]


@dataclass(frozen=True, eq=False)
class Composite:
    """Several transforms, the first applied to the fixed point first.

    Parameters
    ----------
    stages
        At least one transform, all of the same number of axes; composites may be among them.
    """

    stages: tuple[Transform, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            msg = "a composite needs at least one transform; Affine.identity(ndim) moves nothing"
            raise ValueError(msg)
        if len({stage.ndim for stage in self.stages}) > 1:
            msg = f"the stages of a composite have different numbers of axes: {[stage.ndim for stage in self.stages]}"
            raise ValueError(msg)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.stages[0].ndim

    def points(self, points: npt.ArrayLike) -> Floats:
        """Return where fixed world points (n, ndim; x, y, z) are in the moving image's world (n, ndim)."""
        moved = as_points(points, self.ndim)
        for stage in self.stages:
            moved = stage.points(moved)
        return moved

    def bound(self, box: AffineBox) -> AffineBox:
        """Return a set around the moving points of a set of fixed points."""
        for stage in self.stages:
            box = stage.bound(box)
        return box


def fold(transform: Transform) -> tuple[Stage, ...]:
    """Return the stages of a transform in order, composites opened and neighbouring affine ones made one."""
    stages: list[Stage] = []
    for stage in _opened(transform):
        if isinstance(stage, Affine) and stages and isinstance(stages[-1], Affine):
            stages[-1] = stage.after(stages[-1])
        else:
            stages.append(stage)
    return tuple(stages)


def _opened(transform: Transform) -> list[Stage]:
    if isinstance(transform, Composite):
        return [stage for part in transform.stages for stage in _opened(part)]
    return [transform]
