"""Register a pair by greedy's deformable registration and write the field it gives."""

import os
import sys

import picsl_greedy
import SimpleITK as sitk  # noqa: N813 - the package's customary name

#: Iterations, coarse to fine, each level half as fine as the next; ITK's filters need so many voxels along an axis.
ITERATIONS, LEAST_SIDE = (100, 50, 10), 4


def iterations(size: tuple[int, ...]) -> list[int]:
    """Return the iterations of each level, without the coarse ones that leave an axis too short for ITK's filters."""
    finest = len(ITERATIONS) - 1
    return [n for k, n in enumerate(ITERATIONS) if k == finest or -(-min(size) // 2 ** (finest - k)) >= LEAST_SIDE]


def main(fixed: str, moving: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid, in single precision."""
    dimension = int(os.environ["FIDOPT_DIMENSION"])
    threads, seed = os.environ["FIDOPT_THREADS"], int(os.environ["FIDOPT_SEED"]) + 1
    greedy = picsl_greedy.Greedy3D() if dimension == 3 else picsl_greedy.Greedy2D()
    radius = "x".join(["2"] * dimension)
    reader = sitk.ImageFileReader()
    reader.SetFileName(fixed)
    reader.ReadImageInformation()
    levels = "x".join(str(n) for n in iterations(reader.GetSize()[:dimension]))
    words = f"-i {fixed} {moving} -m NCC {radius} -n {levels} -o {out} -threads {threads} -seed {seed}"
    print("greedy", "-d", dimension, words, flush=True)
    greedy.execute(words)


if __name__ == "__main__":
    main(*sys.argv[1:4])
