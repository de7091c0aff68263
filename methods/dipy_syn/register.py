"""Register a pair by DIPY's symmetric diffeomorphic registration and write its forward field."""

import os
import sys

import nibabel
import numpy as np
from dipy.align.imwarp import SymmetricDiffeomorphicRegistration
from dipy.align.metrics import CCMetric

#: NIfTI's intent of a vector whose components readers leave as they are.
VECTOR = 1007
#: DIPY's defaults: iterations, coarse to fine, each level half as fine as the next; the radius of the window.
ITERATIONS, RADIUS = (100, 100, 25), 4


def read(path: str, dimension: int) -> tuple[np.ndarray, np.ndarray, nibabel.Nifti1Image]:
    """Return one value a voxel (a vector image's mean), the index -> world matrix in LPS, and the image.

    NIfTI's own matrix is RAS; of a 2D image it holds the plane alone.
    """
    image = nibabel.load(path)
    values = np.asarray(image.dataobj, dtype=np.float64)
    if values.ndim == 5:
        values = values.mean(axis=4)
    values = values.reshape(values.shape[:dimension])
    lps = np.diag([-1.0, -1.0, 1.0, 1.0]) @ image.affine
    keep = [*range(dimension), 3]
    return values, lps[np.ix_(keep, keep)], image


def iterations(shape: tuple[int, ...], to_world: np.ndarray) -> list[int]:
    """Return the iterations of each level, without the coarse ones that the metric's window does not fit into.

    DIPY refuses an image with an axis shorter than the window, at any level; the sizes of levels are DIPY's own.
    """
    spacing = np.linalg.norm(to_world[:-1, :-1], axis=0)
    finest = len(ITERATIONS) - 1
    voxels = [np.floor(shape * spacing / (2**k * spacing.min()) + 0.5) for k in range(finest, 0, -1)]
    return [
        *(n for n, size in zip(ITERATIONS[:finest], voxels, strict=True) if min(size) > 2 * RADIUS),
        ITERATIONS[finest],
    ]


def write(out: str, field: np.ndarray, like: nibabel.Nifti1Image) -> None:
    """Write displacements ([x, y[, z]], components), LPS, with the geometry of the fixed image's header."""
    dimension = field.shape[-1]
    shape = (*field.shape[:-1], *[1] * (4 - dimension), dimension)
    header = like.header.copy()
    header.set_data_dtype(np.float32)
    header.set_intent(VECTOR)
    header.set_slope_inter(1, 0)
    nibabel.save(nibabel.Nifti1Image(field.reshape(shape).astype(np.float32), None, header), out)


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    dimension = int(os.environ["FIDOPT_DIMENSION"])
    fixed, fixed_to_world, like = read(fixed_path, dimension)
    moving, moving_to_world, _ = read(moving_path, dimension)
    levels = iterations(fixed.shape, fixed_to_world)
    registration = SymmetricDiffeomorphicRegistration(CCMetric(dimension, radius=RADIUS), level_iters=levels)
    mapping = registration.optimize(fixed, moving, static_grid2world=fixed_to_world, moving_grid2world=moving_to_world)
    write(out, np.asarray(mapping.get_forward_field()), like)


if __name__ == "__main__":
    main(*sys.argv[1:4])
