"""prepare.py SOURCE TARGET CASE ...: a T1 template, and another T1-like contrast made from its tissue maps.

The fixed image is the template averaged to 2 mm. The moving one is put together from the grey and white matter maps
and what the template holds beside them, with tissue intensities of its own, a bias field and noise. The labels are
the voxels that are grey or white matter more than all else; they belong to both images, which lie on one grid.
"""

import sys
from pathlib import Path

import nibabel
import numpy as np

NAMES = {"t1": "t1", "grey": "gm", "white": "wm"}
#: First and one past the last voxel kept, in the template's 1 mm voxels: the head's box and 14 mm around it.
BOX = ((12, 184), (12, 222), (-14, 168))


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write the images and the label maps of each case."""
    template = nibabel.load(source / "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz")
    maps = {
        name: halved(source / f"mni_icbm152_{part}_tal_nlin_sym_09a_converted.nii.gz") for name, part in NAMES.items()
    }
    affine = template.affine @ np.diag([2, 2, 2, 1.0])
    affine[:3, 3] = template.affine[:3, 3] + template.affine[:3, :3] @ [low + 0.5 for low, _ in BOX]
    labels = tissues(maps)
    fixed = ((maps["t1"] + 4) // 8).astype(np.uint8)
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        write(folder / "fixed.nii.gz", fixed, affine)
        write(folder / "moving.nii.gz", contrast(maps, seed=int(case.removeprefix("head"))), affine)
        for side in ("fixed", "moving"):
            write(folder / "truth" / f"{side}_labels.nii.gz", labels, affine)


def halved(path: Path) -> np.ndarray:
    """Return the sums (x, y, z) of each 2 x 2 x 2 voxels inside the box; there is nothing outside the template."""
    voxels = np.asanyarray(nibabel.load(path).dataobj).astype(np.int64)
    before = [(max(0, -low), max(0, high - n)) for (low, high), n in zip(BOX, voxels.shape, strict=True)]
    kept = voxels[tuple(slice(max(0, low), high) for low, high in BOX)]
    padded = np.pad(kept, before)
    shape = [part for n in padded.shape for part in (n // 2, 2)]
    return padded.reshape(shape).sum(axis=(1, 3, 5))


def rest(maps: dict[str, np.ndarray]) -> np.ndarray:
    """Return what of each voxel of the head is neither grey nor white matter: mostly fluid (x, y, z; 0 to 8 x 255)."""
    return np.where(maps["t1"] >= 8 * 40, np.clip(8 * 255 - maps["grey"] - maps["white"], 0, None), 0)


def tissues(maps: dict[str, np.ndarray]) -> np.ndarray:
    """Return the label map: 1 grey matter, 2 white matter, where most of a voxel is that."""
    most = 4 * 255
    return np.where(maps["grey"] > most, 1, np.where(maps["white"] > most, 2, 0)).astype(np.uint8)


def contrast(maps: dict[str, np.ndarray], *, seed: int) -> np.ndarray:
    """Return the head (x, y, z) as another scanner might show it."""
    random = np.random.default_rng(seed)
    grey, white, fluid = np.array([520, 840, 210]) + random.integers(-30, 31, size=3)
    image = (grey * maps["grey"] + white * maps["white"] + fluid * rest(maps)) / (8 * 255)
    axes = np.meshgrid(*[np.linspace(-1, 1, n) for n in image.shape], indexing="ij")
    slopes = random.integers(-12, 13, size=3) / 100
    bias = 1 + sum(slope * axis for slope, axis in zip(slopes, axes, strict=True)) - 0.1 * axes[1] * axes[2]
    noise = random.integers(-9, 10, size=(4, *image.shape)).sum(axis=0)
    return np.clip(np.rint(image * bias + noise), 0, None).astype(np.int16)


def write(path: Path, voxels: np.ndarray, affine: np.ndarray) -> None:
    """Write a NIfTI volume in millimetres, its frame the scanner's."""
    image = nibabel.Nifti1Image(voxels, affine)
    image.set_sform(affine, code=1)
    image.set_qform(affine, code=1)
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
