"""A float64 value as a voxel: rounded half to even and clamped for integers, converted once for floats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload


def as_voxel(value: float, like: Any) -> Any:  # noqa: ANN401 - a scalar of any voxel type
    """Return ``value`` as an element of the array ``like``; only compiled code calls it."""
    raise NotImplementedError


def weighted(low: float, high: float, value: float, fraction: float, like: Any) -> float:  # noqa: ANN401
    """Return ``value``, or the neighbour that has all the weight: the other one may be NaN or infinite in floats."""
    raise NotImplementedError


@overload(weighted, strict=False)
def _weighted(low: Any, high: Any, value: Any, fraction: Any, like: Any) -> Any:  # noqa: ANN401 - Numba types
    if isinstance(like.dtype, types.Float):
        return lambda low, high, value, fraction, like: low if fraction == 0.0 else (high if fraction == 1.0 else value)
    return lambda low, high, value, fraction, like: value


@overload(as_voxel, strict=False)
def _as_voxel(value: Any, like: Any) -> Any:  # noqa: ANN401 - Numba types
    if isinstance(like.dtype, types.Float):
        return lambda value, like: value
    low, high = float(like.dtype.minval), float(like.dtype.maxval)
    if like.dtype.bitwidth < 32:
        return lambda value, like: np.int32(min(max(np.rint(value), low), high))
    if like.dtype.bitwidth == 32:
        return lambda value, like: np.int64(min(max(np.rint(value), low), high))
    kind = np.int64 if like.dtype.signed else np.uint64
    least, most = kind(like.dtype.minval), kind(like.dtype.maxval)

    def wide(value: float, like: Any) -> Any:  # noqa: ANN401
        # The largest 64-bit integers are no float64: `high` is the power of two above, and belongs to none of them.
        if value >= high:
            return most
        if value <= low:
            return least
        return kind(np.rint(value))

    return wide
