"""Affine transforms, with translations and rigid ones among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from blocks.transforms.box import AffineBox

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Affine:
    """``y = M x + c`` from fixed world points to moving world points.

    Parameters
    ----------
    matrix
        ``M``, ndim * ndim numbers, row-major, world order x, y, z.
    offset
        ``c``, ndim numbers, in the image's unit.
    """

    matrix: tuple[float, ...]
    offset: tuple[float, ...]

    def __post_init__(self) -> None:
        n = len(self.offset)
        if n not in (2, 3) or len(self.matrix) != n * n:
            msg = f"an affine transform has 4 and 2 or 9 and 3 numbers, got {len(self.matrix)} and {n}"
            raise ValueError(msg)
        if not np.isfinite([*self.matrix, *self.offset]).all():
            msg = f"an affine transform needs finite numbers, got matrix {self.matrix}, offset {self.offset}"
            raise ValueError(msg)

    @classmethod
    def of(cls, matrix: npt.ArrayLike, offset: npt.ArrayLike) -> Affine:
        """Return the transform of a (ndim, ndim) matrix and a (ndim,) offset, world order."""
        rows, shift = np.asarray(matrix, dtype=np.float64), np.asarray(offset, dtype=np.float64)
        return cls(tuple(float(v) for v in rows.ravel()), tuple(float(v) for v in shift))

    @classmethod
    def identity(cls, ndim: int) -> Affine:
        """Return the transform that leaves every point where it is."""
        return cls.of(np.eye(ndim), np.zeros(ndim))

    @classmethod
    def translation(cls, vector: Sequence[float]) -> Affine:
        """Return the translation by a world vector (x, y, z)."""
        return cls.of(np.eye(len(vector)), np.asarray(vector, dtype=np.float64))

    @classmethod
    def rigid(
        cls,
        rotation: npt.ArrayLike,
        translation: Sequence[float],
        *,
        centre: Sequence[float] | None = None,
    ) -> Affine:
        """Return ``y = R (x - centre) + centre + t``.

        Parameters
        ----------
        rotation
            ``R`` (ndim, ndim), a rotation matrix.
        translation
            ``t`` (ndim,).
        centre
            Point that the rotation alone leaves in place, by default the world's origin.

        Raises
        ------
        ValueError
            When the matrix is not a rotation to 1e-6.
        """
        turn = np.asarray(rotation, dtype=np.float64).reshape((len(translation), len(translation)))
        middle = np.zeros(len(translation)) if centre is None else np.asarray(centre, dtype=np.float64)
        result = cls.of(turn, np.asarray(translation, dtype=np.float64) + middle - turn @ middle)
        if not result.is_rigid(1e-6):
            msg = f"a rigid transform needs a rotation matrix, got {turn.tolist()}; use Affine for any other"
            raise ValueError(msg)
        return result

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.offset)

    @cached_property
    def rows(self) -> Floats:
        """``M`` as an array (ndim, ndim)."""
        return np.array(self.matrix, dtype=np.float64).reshape((self.ndim, self.ndim))

    @cached_property
    def shift(self) -> Floats:
        """``c`` as an array (ndim,)."""
        return np.array(self.offset, dtype=np.float64)

    def points(self, points: npt.ArrayLike) -> Floats:
        """Return where fixed world points (n, ndim; x, y, z) are in the moving image's world (n, ndim)."""
        return np.asarray(as_points(points, self.ndim) @ self.rows.T + self.shift)

    def bound(self, box: AffineBox) -> AffineBox:
        """Return a set around the moving points of a set of fixed points; exact but for the set's remainder."""
        return box.through(self.rows, self.shift)

    def after(self, first: Affine) -> Affine:
        """Return this transform applied to what ``first`` returns, as one."""
        rows, shift = self.rows.astype(np.longdouble), self.shift.astype(np.longdouble)
        return Affine.of(rows @ first.rows.astype(np.longdouble), rows @ first.shift.astype(np.longdouble) + shift)

    def inverse(self) -> Affine:
        """Return the transform from moving to fixed points.

        Raises
        ------
        ValueError
            When the matrix is singular.
        """
        if np.linalg.cond(self.rows) > 1e12:
            msg = f"the affine transform has no inverse: its matrix {self.rows.tolist()} is singular"
            raise ValueError(msg)
        back = np.linalg.inv(self.rows)
        return Affine.of(back, -back @ self.shift)

    def is_rigid(self, tolerance: float = 1e-6) -> bool:
        """Whether the matrix is a rotation, each number within ``tolerance``: no scale, no shear, no reflection."""
        gram = self.rows @ self.rows.T
        return bool(np.abs(gram - np.eye(self.ndim)).max() <= tolerance and np.linalg.det(self.rows) > 0)


def as_points(points: npt.ArrayLike, ndim: int) -> Floats:
    """Return points as float64 (n, ndim).

    Raises
    ------
    ValueError
        When they do not have ``ndim`` coordinates each.
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != ndim:
        msg = f"a transform of {ndim} axes takes points of shape (n, {ndim}), got {array.shape}"
        raise ValueError(msg)
    return array
