"""What others call their measures, written anew from what they do: in voxels, one grid, axes x first, as they have it.

Each function is the definition and nothing else, in NumPy and SciPy; nothing of fidopt or of the engine is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import ndimage

Array = npt.NDArray[np.float64]
Map = npt.NDArray[np.integer]


def learn2reg_warp(moving: Map, field: Array) -> Map:
    """Read a label map at every voxel's place moved by a field of voxels, (3, x, y, z): nothing outside its centres."""
    places = np.indices(moving.shape) + field
    return ndimage.map_coordinates(moving, places, order=0, mode="constant", cval=0)


def learn2reg_dice(fixed: Map, moving: Map, warped: Map, labels: Sequence[int]) -> dict[int, float]:
    """Return each label's Dice, NaN where the fixed or the moving map lacks it; their mean leaves NaN out."""
    return {
        label: _dice(fixed == label, warped == label) if _in_both(label, fixed, moving) else np.nan for label in labels
    }


def learn2reg_hd95(fixed: Map, moving: Map, warped: Map, labels: Sequence[int]) -> dict[int, float]:
    """Return each label's HD95 by DeepMind's code, in voxels: infinite where the warp erased the label."""
    spacing = (1.0, 1.0, 1.0)
    return {
        label: deepmind(fixed == label, warped == label, spacing)["hd95"] if _in_both(label, fixed, moving) else np.nan
        for label in labels
    }


def learn2reg_determinants(field: Array) -> Array:
    """Return det of identity + gradient by central differences, two voxels cut off each face."""
    rows = np.stack([np.stack(np.gradient(component)) for component in field])
    matrix = np.moveaxis(rows, (0, 1), (-2, -1)) + np.eye(3)
    return np.asarray(np.linalg.det(matrix[2:-2, 2:-2, 2:-2]))


def learn2reg_regularity(field: Array, mask: Map | None = None) -> tuple[float, float]:
    """Return SDlogJ and the number of foldings: the determinant, 3 added, is clipped before both are taken."""
    clipped = (learn2reg_determinants(field) + 3).clip(1e-9, 1e9)
    inside = np.ones(clipped.shape, bool) if mask is None else mask[2:-2, 2:-2, 2:-2] == 1
    return float(np.log(clipped)[inside].std()), float((clipped <= 0).sum())


def learn2reg_tre(fixed: Array, moving: Array, field: Array, spacing: Sequence[float], *, order: int = 3) -> Array:
    """Return each landmark's error in mm; landmarks (n, 3) in voxels, the field read by a spline of this order."""
    moved = np.stack([ndimage.map_coordinates(component, fixed.T, order=order) for component in field], axis=1)
    return np.asarray(np.linalg.norm((fixed + moved - moving) * spacing, axis=1))


def anhir_rtre(warped: Array, target: Array, size: Sequence[int]) -> Array:
    """Return each landmark's error, (n, 2) in pixels, over the diagonal of the image it lies in (width, height)."""
    return np.asarray(np.linalg.norm(warped - target, axis=1) / np.hypot(*size))


def brats_empty(truth: bool, found: bool, *, diagonal: float) -> Mapping[str, float]:
    """Return BraTS's Dice and HD95 of a region that the truth or the output, or both, lack."""
    right = not truth and not found
    return {"dice": float(right), "hd95": 0.0 if right else diagonal}


def border_distances(
    first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], steps: Sequence[float]
) -> list[Array]:
    """Return the distances of each region's border voxels to the other's, every voxel counting once, both ways.

    A border voxel is one that an erosion by the six (in 2D four) neighbours takes away. MONAI and MetricsReloaded
    measure between them.
    """
    padded = [np.pad(region, 1) for region in (first, second)]
    borders = [region & ~ndimage.binary_erosion(region) for region in padded]
    away = [ndimage.distance_transform_edt(~border, sampling=steps) for border in borders]
    return [away[1][borders[0]], away[0][borders[1]]]


def border_hd95(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], steps: Sequence[float]) -> float:
    """Return the larger of the two directed 95th percentiles over border voxels."""
    return float(max(np.percentile(way, 95) for way in border_distances(first, second, steps)))


def border_dice(
    first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], steps: Sequence[float], *, tolerance: float
) -> float:
    """Return the part of both borders' voxels that lies within a tolerance of the other border."""
    ways = border_distances(first, second, steps)
    return float(sum((way <= tolerance).sum() for way in ways) / sum(way.size for way in ways))


def deepmind(
    first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], steps: Sequence[float], *, tolerance: float = 1.0
) -> dict[str, float]:
    """Return HD95 and surface Dice by DeepMind's surface-distance itself, which Learn2Reg calls too.

    The package on PyPI fails on an empty region: its infinite distance is answered here.
    """
    if not first.any() or not second.any():
        return {"hd95": np.inf, "surface_dice": 0.0 if first.any() or second.any() else np.nan}
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from surface_distance import (
            compute_robust_hausdorff,
            compute_surface_dice_at_tolerance,
            compute_surface_distances,
        )

        distances = compute_surface_distances(first, second, steps)
    near = compute_surface_dice_at_tolerance(distances, tolerance)
    return {"hd95": float(compute_robust_hausdorff(distances, 95)), "surface_dice": float(near)}


def _dice(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> float:
    return float(2 * (first & second).sum() / (first.sum() + second.sum()))


def _in_both(label: int, fixed: Map, moving: Map) -> bool:
    return bool((fixed == label).any() and (moving == label).any())
