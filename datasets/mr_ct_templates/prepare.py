"""prepare.py SOURCE TARGET CASE ...: a T1 template, and a CT template in Hounsfield units.

The CT keeps its own grid and every voxel; only its unit is changed. The T1, which is the source, lies half a millimetre
beside that grid along each axis and is read at its voxels, linearly. The mask is the head of the CT: what is above
-500 HU, and the air inside it.
"""

import sys
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name
from scipy import ndimage

#: Above it, in HU, there is something: air is -1000 and fat about -100.
BODY = -500


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write the T1, the head and the CT of the one case."""
    for case in cases:
        (target / case / "truth").mkdir(parents=True)
        template = sitk.ReadImage(str(source / "scct.nii"), sitk.sitkFloat64)
        t1 = sitk.ReadImage(str(source / "tpl-MNI152NLin2009cAsym_res-02_T1w.nii.gz"), sitk.sitkFloat64)
        read = sitk.Resample(t1, template, sitk.Transform(), sitk.sitkLinear)
        hounsfield = hounsfield_of(sitk.GetArrayViewFromImage(template))
        images = {
            "source": sitk.GetArrayViewFromImage(read).astype(np.float32),
            "mask": head(hounsfield).astype(np.uint8),
            "truth/target": hounsfield.astype(np.float32),
        }
        for name, voxels in images.items():
            image = sitk.GetImageFromArray(voxels)
            image.CopyInformation(template)
            sitk.WriteImage(image, str(target / case / f"{name}.nii.gz"))


def hounsfield_of(cormack: np.ndarray) -> np.ndarray:
    """Return Hounsfield units (float64) of a CT in Cormack units, of any shape.

    Cormack units begin at 0 in air, follow Hounsfield's by ones up to 900 (-100 HU), give soft tissue eleven steps a
    unit up to 3100 (100 HU), and go on by ones: Rorden, Bonilha, Fridriksson, Bender and Karnath, Age-specific CT and
    MRI templates for spatial normalization, NeuroImage 61(4), 2012; the inverse as in their Clinical Toolbox
    (clinical_c2h.m), but for its air, which is -1024 HU there, so that all its values are 24 HU lower. Which of the two
    the template was made with is not stated; no difference between two voxels depends on it.
    """
    soft = (cormack - 900) / 11 - 100
    return np.where(cormack <= 900, cormack - 1000, np.where(cormack <= 3100, soft, cormack - 3000))


def head(hounsfield: np.ndarray) -> np.ndarray:
    """Return the head (z, y, x; bool): the largest part above air, its holes filled in space and in each axial slice.

    Filled slice by slice too, since the nose and the neck, cut by the template's lower face, open its cavities.
    """
    parts, count = ndimage.label(hounsfield > BODY)
    sizes = ndimage.sum_labels(np.ones_like(parts), parts, np.arange(1, count + 1))
    filled = ndimage.binary_fill_holes(parts == 1 + int(np.argmax(sizes)))
    return np.stack([ndimage.binary_fill_holes(plane) for plane in filled])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
