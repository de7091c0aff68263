"""Register a pair by the command that ANTsPy builds for antsRegistrationSyN[so], and write the field."""

import os
import sys
from pathlib import Path

import ants
from ants.internal import get_lib_fn


def prepared(path: str, name: str) -> str:
    """Return a file of one value a voxel: the image's own, or one of the mean of a vector image's components."""
    image = ants.image_read(path, dimension=int(os.environ["FIDOPT_DIMENSION"]))
    if not image.has_components:
        return path
    channels = [channel.numpy().astype("float64") for channel in ants.split_channels(image)]
    mean = (sum(channels) / len(channels)).astype("float32")
    scalar = ants.from_numpy(mean, origin=image.origin, spacing=image.spacing, direction=image.direction)
    ants.image_write(scalar, name)
    return name


def call(program: str, words: list[str]) -> None:
    """Call one of ANTs' programs with the arguments of its command line."""
    print(program, *words, flush=True)
    code = get_lib_fn(program)(words)
    if code:
        sys.exit(f"{program} ended with {code}")


def main(fixed: str, moving: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    dimension, seed = os.environ["FIDOPT_DIMENSION"], os.environ["FIDOPT_SEED"]
    fixed, moving = prepared(fixed, "fixed_mean.nii.gz"), prepared(moving, "moving_mean.nii.gz")
    # The seed is added: with 0 ANTs takes the clock's.
    registration = f"""
        --dimensionality {dimension} -r Identity --output [syn_]
        --transform SyN[0.2,3,0] --metric CC[{fixed},{moving},1,2]
        --convergence [100x70x50x20,1e-6,10] --shrink-factors 8x4x2x1 --smoothing-sigmas 3x2x1x0vox
        -x [NA,NA] --random-seed {int(seed) + 1} --float 1 --write-composite-transform 0
    """
    call("antsRegistration", registration.split())
    transforms = ["-t", "syn_1Warp.nii.gz" if Path("syn_1Warp.nii.gz").exists() else "syn_0Warp.nii.gz"]
    words = ["-d", dimension, "-i", moving, "-r", fixed, *transforms, "-o", f"[{out},1]", "--float", "1"]
    call("antsApplyTransforms", words)


if __name__ == "__main__":
    main(*sys.argv[1:4])
