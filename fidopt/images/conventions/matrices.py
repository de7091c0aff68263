"""Affine transforms as a matrix in text, as NiftyReg and greedy write them: along RAS, fixed world -> moving world."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blocks.transforms import Affine
from fidopt.errors import InputError
from fidopt.images.conventions.readings import Floats
from fidopt.images.conventions.table import RAS, Convention

#: Bytes of the longest text that is looked at: four lines of four numbers are far shorter.
_LONGEST = 4096


def matrix_of(path: str | Path) -> Floats | None:
    """Return the square matrix that a text holds, 3 x 3 or 4 x 4; None where it holds something else."""
    where = Path(path)
    if not where.is_file() or where.stat().st_size > _LONGEST:
        return None
    try:
        rows = [
            [float(word) for word in line.split()] for line in where.read_text("ascii").splitlines() if line.strip()
        ]
    except ValueError:
        return None
    if len(rows) not in (3, 4) or any(len(row) != len(rows) for row in rows):
        return None
    return np.array(rows)


def read_matrix(path: str | Path, meant: Convention, *, ndim: int | None = None) -> Affine:
    """Return the affine transform of a matrix in text.

    Parameters
    ----------
    path
        The file.
    meant
        Whose matrix it is.
    ndim
        Dimensions of the fixed image where they are known: NiftyReg writes 4 x 4 of 2D images too.

    Raises
    ------
    InputError
        When the file holds no such matrix, or its last row is not 0 0 0 1.
    """
    matrix = matrix_of(path)
    if matrix is None:
        msg = f"{path}: {meant.tool}'s affine matrix is expected, four lines of four numbers (2D: three of three)"
        raise InputError(f"{msg}; write it again")
    if ndim == 2 and len(matrix) == 4 and np.array_equal(matrix[2, [0, 1, 3]], [0, 0, 0]) and not matrix[:2, 2].any():
        matrix = matrix[np.ix_([0, 1, 3], [0, 1, 3])]
    n = len(matrix) - 1
    if not np.isfinite(matrix).all() or not np.array_equal(matrix[n], [*[0.0] * n, 1.0]):
        msg = f"{path}: the last row of an affine matrix is {'0 ' * n}1 and all numbers are finite, got"
        raise InputError(f"{msg} {matrix[n].tolist()}; write it again")
    signs = np.array(RAS[:n], dtype=np.float64)
    return Affine.of(matrix[:n, :n] * np.outer(signs, signs), matrix[:n, n] * signs)
