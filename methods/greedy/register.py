"""Register a pair by greedy's deformable registration and write the field it gives."""

import os
import sys

import picsl_greedy


def main(fixed: str, moving: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid, in single precision."""
    dimension = int(os.environ["FIDOPT_DIMENSION"])
    threads, seed = os.environ["FIDOPT_THREADS"], int(os.environ["FIDOPT_SEED"]) + 1
    greedy = picsl_greedy.Greedy3D() if dimension == 3 else picsl_greedy.Greedy2D()
    radius = "x".join(["2"] * dimension)
    words = f"-i {fixed} {moving} -m NCC {radius} -n 100x50x10 -o {out} -threads {threads} -seed {seed}"
    print("greedy", "-d", dimension, words, flush=True)
    greedy.execute(words)


if __name__ == "__main__":
    main(*sys.argv[1:4])
