"""Ways in which the numbers of a displacement field can be meant, as written and wrongly, each told in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid

Floats = npt.NDArray[np.float64]

#: How a tool may mean the axes its components go along.
Frame = Literal[
    "world",
    "fixed axes",
    "fixed voxels",
    "moving axes",
    "moving voxels",
    "turned twice",
    "world spacing",
    "over spacing",
    "grid_sample",
    "grid_sample corners",
    "moving header ignored",
]
#: Each frame in words.
FRAMES: dict[Frame, str] = {
    "world": "along the world's axes",
    "fixed axes": "as distances along the fixed image's axes, not the world's",
    "fixed voxels": "in voxels along the fixed image's axes",
    "moving axes": "as distances along the moving image's axes, not the world's",
    "moving voxels": "in voxels along the moving image's axes",
    "turned twice": "turned by the direction once too often (the inverse direction makes them right)",
    "world spacing": "divided by the spacing: in voxels, though along the world's axes",
    "over spacing": "multiplied by the spacing once too often",
    "grid_sample": "as parts of half the image's width from -1 to 1 (grid_sample with align_corners=False)",
    "grid_sample corners": "as parts of half the image's width from -1 to 1 (grid_sample with align_corners=True)",
    "moving header ignored": "as if the moving image's voxels lay where the fixed image's lie: its header was not read",
}
#: Unit of the numbers -> (its length in the dataset's unit, in words).
UNITS: dict[str, tuple[float, str]] = {
    "as stated": (1.0, ""),
    "tenths": (10.0, "in a unit ten times the dataset's (cm for mm)"),
    "thousandths": (1000.0, "in a unit a thousand times the dataset's (m for mm)"),
    "thousands": (0.001, "in a thousandth of the dataset's unit (micrometres for mm)"),
}
_AXES = "xyz"


@dataclass(frozen=True)
class Pair:
    """Where a field's vectors are looked at.

    Parameters
    ----------
    fixed, moving
        The grids of the two images.
    points
        World points (n, ndim; x, y, z) of voxels of the fixed grid.
    """

    fixed: Grid
    moving: Grid
    points: Floats

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.fixed.ndim

    @cached_property
    def matrices(self) -> dict[Frame, Floats]:
        """The matrix (ndim, ndim) that turns components meant in a frame into world displacements."""
        fixed, moving = self.fixed, self.moving
        sizes = np.array(fixed.shape[::-1], dtype=np.float64)
        return {
            "world": np.eye(self.ndim),
            "fixed axes": fixed.direction_matrix,
            "fixed voxels": fixed.matrix,
            "moving axes": moving.direction_matrix,
            "moving voxels": moving.matrix,
            "turned twice": np.asarray(np.linalg.inv(fixed.direction_matrix), dtype=np.float64),
            "world spacing": np.diag(fixed.spacing),
            "over spacing": np.diag(1 / np.array(fixed.spacing)),
            "grid_sample": fixed.matrix * (sizes / 2),
            "grid_sample corners": fixed.matrix * ((sizes - 1) / 2),
            "moving header ignored": moving.matrix @ fixed.inverse_matrix,
        }

    @cached_property
    def one_grid(self) -> bool:
        """Whether both images lie on one grid, where nothing is meant along the moving image's axes alone."""
        return self.moving.matches(self.fixed, tolerance=1e-6)

    @cached_property
    def shift(self) -> Floats:
        """World displacement (n, ndim) between voxels of the same index in the two images."""
        return np.asarray(self.moving.world(self.fixed.index(self.points)) - self.points)

    def start(self, frame: Frame) -> Floats:
        """Return the world point at which positions in ``frame`` begin (ndim,)."""
        if frame in {"fixed voxels", "grid_sample", "grid_sample corners"}:
            middle = np.array(self.fixed.shape[::-1], dtype=np.float64) / 2 - 0.5
            corner = np.zeros(self.ndim) if frame == "fixed voxels" else middle
            return np.asarray(self.fixed.world(corner[::-1]))
        return np.array(self.moving.origin) if frame == "moving voxels" else np.zeros(self.ndim)


@dataclass(frozen=True)
class Reading:
    """One way to read a field's numbers; the default is the contract's.

    Parameters
    ----------
    signs, order
        Component k of the displacement is ``signs[k]`` times the ``order[k]``-th number of a voxel.
    frame, unit
        What the components go along, and in which unit.
    position
        The numbers say where a point goes, not by how much.
    """

    signs: tuple[int, ...]
    order: tuple[int, ...]
    frame: Frame = "world"
    unit: str = "as stated"
    position: bool = False

    @classmethod
    def written(cls, ndim: int) -> Reading:
        """Return the contract's reading."""
        return cls((1,) * ndim, tuple(range(ndim)))

    @property
    def deviations(self) -> int:
        """In how many ways it departs from the contract; the signs of RAS and those of a push count as one way."""
        negative = self.signs.count(-1)
        usual = self.signs in {(-1, -1, 1), (-1,) * len(self.signs)}
        signs = 1 if usual else negative
        moved = self.order != tuple(range(len(self.order)))
        return signs + moved + (self.frame != "world") + (self.unit != "as stated") + self.position

    def displacements(self, numbers: Floats, pair: Pair) -> Floats:
        """Return the world displacements (n, ndim) that a field's numbers (n, ndim) mean."""
        meant = numbers[:, self.order] * np.array(self.signs)
        return np.asarray(meant @ self.matrix(pair).T + self.offset(pair))

    def numbers(self, displacements: Floats, pair: Pair) -> Floats:
        """Return the numbers (n, ndim) by which a tool of this convention says displacements (n, ndim)."""
        meant = (displacements - self.offset(pair)) @ np.linalg.inv(self.matrix(pair)).T * np.array(self.signs)
        written = np.empty_like(meant)
        written[:, self.order] = meant
        return np.asarray(written)

    def matrix(self, pair: Pair) -> Floats:
        """Return the matrix (ndim, ndim) by which components in order and sign become world displacements."""
        return np.asarray(pair.matrices[self.frame] * UNITS[self.unit][0])

    def offset(self, pair: Pair) -> Floats:
        """Return what is added to that, (n, ndim) or (ndim,): nothing, unless the numbers are places."""
        if self.position:
            return np.asarray(pair.start(self.frame) - pair.points)
        return pair.shift if self.frame == "moving header ignored" else np.zeros(pair.ndim)

    @property
    def words(self) -> str:
        """What the numbers would have to be for this reading to be right."""
        parts = [self._sign_words(), self._order_words()]
        parts.append(FRAMES[self.frame] if self.frame != "world" else "")
        parts.append(UNITS[self.unit][1])
        parts.append("as the place a point goes to, not the way to it" if self.position else "")
        return ", ".join(part for part in parts if part) or "as written"

    def _sign_words(self) -> str:
        negative = [_AXES[k] for k, sign in enumerate(self.signs) if sign < 0]
        if not negative:
            return ""
        if len(negative) == len(self.signs):
            also = "; in 2D that is RAS as well" if len(negative) == 2 else ""
            return f"with every sign reversed (a push, from the moving image to the fixed one{also})"
        ras = " (RAS, not LPS)" if negative == ["x", "y"] else ""
        return f"with {' and '.join(negative)} negated{ras}"

    def _order_words(self) -> str:
        if self.order == tuple(range(len(self.order))):
            return ""
        # Which displacement each number of the file holds, in the file's order.
        return f"with components in the order {', '.join(_AXES[self.order.index(k)] for k in range(len(self.order)))}"
