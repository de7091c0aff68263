"""Register a pair by the authors' unigradicon-register at its defaults, and write its transform as a field."""

import os
import subprocess
import sys
from pathlib import Path

import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: What the tool calls a modality.
MODALITIES = {"ct": "ct", "cbct": "ct", "mr": "mri"}


def modality(side: str) -> str:
    """Return the tool's name of an image's modality."""
    given = os.environ[f"FIDOPT_{side}_MODALITY"]
    if given not in MODALITIES:
        sys.exit(f"the tool knows ct and mri; the {side.lower()} image is {given}")
    return MODALITIES[given]


def segmentations() -> list[str]:
    """Return the tool's options that multiply each image by its lung mask."""
    words = []
    for side in ("FIXED", "MOVING"):
        mask = os.environ.get(f"FIDOPT_{side}_MASK")
        if not mask:
            sys.exit(f"the lung protocol needs both lung masks; the dataset gives none of the {side.lower()} image")
        words += [f"--{side.lower()}_segmentation", mask]
    return words


def main(model: str, fixed: str, moving: str, out: str, *, lung_masks: bool) -> None:
    """Register two files and write the field on the fixed image's grid."""
    environment = Path(os.environ["FIDOPT_ENV"])
    # The tool looks for its weights under the current folder, and would fetch them otherwise.
    Path("network_weights").symlink_to(environment / "network_weights")
    words = ["--fixed", fixed, "--moving", moving, "--transform_out", "transform.hdf5", "--model", model]
    words += ["--fixed_modality", modality("FIXED"), "--moving_modality", modality("MOVING")]
    words += segmentations() if lung_masks else []
    subprocess.run([environment / "bin" / "unigradicon-register", *words], check=True)
    grid = sitk.ReadImage(fixed)
    field = sitk.TransformToDisplacementField(
        sitk.ReadTransform("transform.hdf5"),
        sitk.sitkVectorFloat32,
        grid.GetSize(),
        grid.GetOrigin(),
        grid.GetSpacing(),
        grid.GetDirection(),
    )
    sitk.WriteImage(field, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], lung_masks=sys.argv[5:] == ["--lung-masks"])
