"""What it costs to score a whole registration, ours beside the definitions of the field's evaluation run as written.

A pair on a cube of 192 voxels a side with 36 labels and 100 landmarks, from a field in memory to Dice, HD95, SDlogJ,
folds and TRE. Ours is all that a case takes: label maps read from their stores, warped and staged, and KonfAI's
evaluator run. The peer is tests/parity's definitions, as Learn2Reg's evaluation has them: the labels read through the
field by SciPy, then a label at a time over the whole map, distances by surface-distance, gradients and determinants of
the whole field, the field read at landmarks by a spline. One turn each, its CPU time summed over threads; both answers
are compared first, with the spline of order 1, as ours reads a field.

    python benchmarks/registration.py
    python benchmarks/registration.py --side 96 --json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scoring import Contender, cells, race, rows, table

from blocks.grid import Grid
from fidopt.scoring.evaluation import score_case
from tests.parity import definitions
from tests.parity.inputs import Pair

LABELS, LANDMARKS = 36, 100


def made(grid: Grid) -> Pair:
    """Return a pair: cells, the same moved by a few voxels, a smooth field and landmarks between voxels.

    The field ends at the faces, beyond which the two disagree on purpose.
    """
    fixed = cells(grid, LABELS)
    x, y, z = np.indices(grid.shape[::-1])
    parts = [np.sin(y / 11) * np.cos(z / 13), np.sin(z / 12) * np.cos(x / 15), np.sin(x / 14) * np.cos(y / 12)]
    fading = [np.sin(np.pi * axis / (grid.shape[0] - 1)) for axis in (x, y, z)]
    voxels = 2 * np.stack(parts) * fading[0] * fading[1] * fading[2]
    random = np.random.default_rng(0)
    points = random.uniform(5, grid.shape[0] - 6, (LANDMARKS, 3))
    names = {str(label): f"cell {label}" for label in range(1, LABELS + 1)}
    moved = points + random.normal(size=points.shape)
    return Pair(grid, fixed, np.roll(fixed, (1, -2, 2), (0, 1, 2)), voxels, (points, moved), labels=names)


def contenders(pair: Pair, folder: Path) -> list[Contender]:
    """Return ours and the definitions: Dice and HD95 of each label, SDlogJ, folds and TRE."""
    case, field = pair.build(folder), pair.field
    fixed, moving, labels = pair.fixed.T, pair.moving.T, range(1, LABELS + 1)

    def ours() -> np.ndarray:
        scores = score_case(case, field)
        each = [scores.labels[metric][str(label)] for metric in ("dice", "hd95") for label in labels]
        return np.array([*each, *(scores.metrics[metric] for metric in ("sdlogj", "folds", "tre"))])

    def peer(order: int = 1) -> np.ndarray:
        warped = definitions.learn2reg_warp(moving, pair.voxels)
        dice = definitions.learn2reg_dice(fixed, moving, warped, labels)
        hd95 = definitions.learn2reg_hd95(fixed, moving, warped, labels)
        spread, folds = definitions.learn2reg_regularity(pair.voxels)
        tre = definitions.learn2reg_tre(*pair.points, pair.voxels, pair.grid.spacing, order=order).mean()
        return np.array([*dice.values(), *hd95.values(), spread, folds, tre])

    return [
        Contender("case", "fidopt", ours, "s", 1.0, turns=1),
        Contender("case", "definitions", peer, "s", 1.0, close=1e-6, turns=1),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=192)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="fidopt-bench-") as folder:
        ways = contenders(made(Grid.of((options.side,) * 3)), Path(folder))
        race(ways, 1)
    if options.json:
        print(json.dumps({"rows": rows(ways)}, indent=2))
    else:
        print(f"{options.side} voxels a side, {LABELS} labels, CPU time of one turn\n")
        print(table(ways))


if __name__ == "__main__":
    main()
