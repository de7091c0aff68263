"""Register a pair by DIPY's symmetric diffeomorphic registration and write its forward field."""

import os
import sys

import nibabel
import numpy as np
from dipy.align.imwarp import SymmetricDiffeomorphicRegistration
from dipy.align.metrics import CCMetric

#: NIfTI's intent of a vector whose components readers leave as they are.
VECTOR = 1007


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
    registration = SymmetricDiffeomorphicRegistration(CCMetric(dimension))
    mapping = registration.optimize(fixed, moving, static_grid2world=fixed_to_world, moving_grid2world=moving_to_world)
    write(out, np.asarray(mapping.get_forward_field()), like)


if __name__ == "__main__":
    main(*sys.argv[1:4])
