"""What scoring costs: label counts, one label's HD95 and a field's regularity, ours beside the peers, in one run.

On a cube of 256 voxels a side: `label-counts` (250 labels that meet at planes, as grown regions do), each label's
voxels in two maps and in both, against SimpleITK's overlap measures; `hd95`, one label's surfaces, and `surfaces`, HD95
and surface Dice of 100 labels, against DeepMind's surface-distance; `sdlogj`, a displacement field's determinants down
to SDlogJ and folds, against NumPy and against SimpleITK's determinant filter followed by NumPy. Ours goes through the
public, lazy calls that the benchmark scores with.

They take turns; each figure is the median of its turns' CPU time, summed over threads. Before anything is timed, the
answers are compared. `surfaces` takes its peer minutes and has one turn. A whole case is benchmarks/registration.py's.

    python benchmarks/scoring.py
    python benchmarks/scoring.py --side 128 --repeats 3 --json
    python benchmarks/scoring.py --only surfaces
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name
from scipy.spatial import cKDTree

import blocks
from blocks.execute import compute
from blocks.graphs.regularity import regularity
from blocks.graphs.surface import measured
from blocks.grid import Grid
from blocks.kernels import surface
from blocks.kernels.overlap import dice

LABELS = 250
#: Labels whose surfaces are measured, and their tolerance.
MANY, TOLERANCE = 100, 1.0
SPACING = (0.9, 0.8, 1.3)
PERCENT = 95


@dataclass
class Contender:
    """One way to answer, what it answers, and what its turns cost."""

    case: str
    name: str
    run: Callable[[], np.ndarray]
    unit: str
    per: float
    close: float = 1e-12
    turns: int = 1 << 30
    cpu_s: list[float] = field(default_factory=list)

    def turn(self) -> None:
        """Run once and keep what it cost."""
        gc.collect()
        cpu = time.process_time()
        self.run()
        self.cpu_s.append(time.process_time() - cpu)

    @property
    def cost(self) -> float:
        """The median of its turns, in its unit."""
        return statistics.median(self.cpu_s) / self.per


def itk(array: np.ndarray, grid: Grid, *, vector: bool = False) -> sitk.Image:
    image = sitk.GetImageFromArray(np.moveaxis(array, 0, -1) if vector else array, isVector=vector)
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)
    return image


def cells(grid: Grid, count: int) -> np.ndarray:
    """Return a label map (z, y, x) of so many cells around random points, 1 upwards."""
    seeds = np.random.default_rng(0).uniform(0, grid.shape, (count, 3))
    voxels = np.stack(np.meshgrid(*map(np.arange, grid.shape), indexing="ij"), axis=-1).reshape(-1, 3)
    return (cKDTree(seeds).query(voxels, workers=-1)[1] + 1).astype(np.uint8).reshape(grid.shape)


def label_counts(grid: Grid) -> list[Contender]:
    """Count 250 labels, cells around random points, in a map and in the same map moved by a few voxels."""
    fixed = cells(grid, LABELS)
    warped = np.roll(fixed, (3, 2, 5), (0, 1, 2))
    images = [blocks.image_of(labels, grid, kind="labels") for labels in (fixed, warped)]
    theirs = [itk(labels, grid) for labels in (fixed, warped)]
    ids = range(1, LABELS + 1)

    def ours() -> np.ndarray:
        return dice(compute(blocks.overlap(*images)).select(ids))

    def peer() -> np.ndarray:
        measures = sitk.LabelOverlapMeasuresImageFilter()
        measures.Execute(*theirs)
        return np.array([measures.GetDiceCoefficient(label) for label in ids])

    per = fixed.size * 1e-9
    return [
        Contender("label-counts", name, run, "ns/voxel", per) for name, run in (("fidopt", ours), ("SimpleITK", peer))
    ]


def one_label(grid: Grid) -> list[Contender]:
    """Measure a wavy ball against itself moved by a few voxels."""
    z, y, x = np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in grid.shape), indexing="ij", sparse=True)
    radius = 0.4 * grid.shape[0]
    fixed = np.sqrt(z**2 + y**2 + x**2) < radius * (1 + 0.06 * np.sin(z / 9) * np.cos(y / 11))
    warped = np.roll(fixed, (3, 4, -2), (0, 1, 2))
    maps, steps = [side.astype(np.uint8) for side in (fixed, warped)], grid.spacing[::-1]

    def ours() -> np.ndarray:
        (batch,) = measured(*maps, {1: (surface.hausdorff,)}, steps=steps)
        return np.array(compute(batch)[1])

    ways = [Contender("hd95", "fidopt", ours, "s", 1.0)]
    if importlib.util.find_spec("surface_distance"):
        import surface_distance

        def peer() -> np.ndarray:
            distances = surface_distance.compute_surface_distances(fixed, warped, steps)
            return np.array([surface_distance.compute_robust_hausdorff(distances, PERCENT)])

        ways.append(Contender("hd95", "surface-distance", peer, "s", 1.0, close=1e-9))
    return ways


def many_surfaces(grid: Grid) -> list[Contender]:
    """Measure HD95 and surface Dice of 100 cells against themselves moved by a few voxels."""
    fixed = cells(grid, MANY)
    warped, steps = np.roll(fixed, (3, 4, -2), (0, 1, 2)), grid.spacing[::-1]
    asked = (surface.hausdorff, partial(surface.surface_dice, tolerance=TOLERANCE))

    def ours() -> np.ndarray:
        found: dict[int, tuple[float, float]] = {}
        for batch in measured(fixed, warped, dict.fromkeys(range(1, MANY + 1), asked), steps=steps):
            found |= compute(batch)
        return np.array([found[label] for label in range(1, MANY + 1)])

    ways = [Contender("surfaces", "fidopt", ours, "s", 1.0, turns=1)]
    if importlib.util.find_spec("surface_distance"):
        import surface_distance

        def peer() -> np.ndarray:
            found = []
            for label in range(1, MANY + 1):
                distances = surface_distance.compute_surface_distances(fixed == label, warped == label, steps)
                hd95 = surface_distance.compute_robust_hausdorff(distances, PERCENT)
                found.append((hd95, surface_distance.compute_surface_dice_at_tolerance(distances, TOLERANCE)))
            return np.array(found)

        ways.append(Contender("surfaces", "surface-distance", peer, "s", 1.0, close=1e-9, turns=1))
    return ways


def spread(determinant: np.ndarray) -> np.ndarray:
    """Return SDlogJ and the fraction of folds of determinants, as Learn2Reg has them."""
    inner = determinant[2:-2, 2:-2, 2:-2]
    return np.array([np.log(np.clip(inner + 3, 1e-9, 1e9)).std(), (determinant <= 0).mean()])


def field_regularity(grid: Grid) -> list[Contender]:
    """Add up the determinants of a wavy field of float32."""
    z, y, x = np.meshgrid(*(np.arange(n) for n in grid.shape), indexing="ij", sparse=True)
    waves = [9 * np.sin(x / 7 + c) * np.cos(y / 9) + 4 * np.cos(z / 6 - c) for c in range(3)]
    vectors = np.stack(waves).astype(np.float32)
    image, theirs = blocks.image_of(vectors, grid), itk(vectors, grid, vector=True)

    def ours() -> np.ndarray:
        (found,) = compute(regularity(image))
        return np.array([found.spread, found.folded])

    def plain() -> np.ndarray:
        steps = np.tensordot(grid.inverse_matrix, vectors.astype(np.float64), axes=1)
        matrix = np.stack([np.stack(np.gradient(component)[::-1]) for component in steps])
        return spread(np.linalg.det(np.moveaxis(matrix, (0, 1), (-2, -1)) + np.eye(3)))

    def peer() -> np.ndarray:
        # At the outermost voxels it halves the differences: its folds there are its own, and not compared.
        made = sitk.DisplacementFieldJacobianDeterminant(theirs, useImageSpacing=True)
        return spread(sitk.GetArrayViewFromImage(made).astype(np.float64))[:1]

    per = grid.region.size * 1e-9
    return [
        Contender("sdlogj", "fidopt", ours, "ns/voxel", per),
        Contender("sdlogj", "NumPy", plain, "ns/voxel", per),
        Contender("sdlogj", "SimpleITK", peer, "ns/voxel", per, close=1e-6),
    ]


def refuse_unequal(ways: list[Contender]) -> None:
    """Run every way once, which warms it up, and leave where one says something else than ours."""
    ours: dict[str, np.ndarray] = {}
    for way in ways:
        sys.stderr.write(f"\rcompare: {way.case}, {way.name:20}")
        said = way.run()
        apart = float(np.abs(said - ours.setdefault(way.case, said)[: said.size]).max())
        sys.stderr.write(f"\r{way.case}: {way.name} and fidopt are {apart:.1g} apart{'':20}\n")
        if not apart <= way.close:
            sys.exit("that is too much: nothing is measured")


def race(ways: list[Contender], repeats: int) -> None:
    """Compare the answers, and have every way take its turns."""
    refuse_unequal(ways)
    for repeat in range(repeats):
        for way in ways:
            if repeat < way.turns:
                sys.stderr.write(f"\rturn {repeat + 1} of {repeats}: {way.case}, {way.name:20}")
                way.turn()
    sys.stderr.write("\n")


def rows(ways: list[Contender]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for way in ways:
        mine = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        if way is not mine:
            row = {"case": way.case, "ours": mine.cost, "peer": way.name, "peer_value": way.cost}
            found.append(row | {"unit": way.unit, "ratio": way.cost / mine.cost})
    return found


def table(ways: list[Contender]) -> str:
    lines = [f"{'case':14} {'who':18} {'cpu':>8} {'unit':10} {'cost over ours':>15}"]
    for way in ways:
        mine = next(w for w in ways if w.case == way.case and w.name == "fidopt")
        lines.append(f"{way.case:14} {way.name:18} {way.cost:8.2f} {way.unit:10} {way.cost / mine.cost:15.1f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="some of the cases")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    grid = Grid.of((options.side,) * 3, spacing=SPACING)
    makers = {
        "label-counts": label_counts, "hd95": one_label, "surfaces": many_surfaces, "sdlogj": field_regularity,
    }  # fmt: skip
    ways = [way for case, make in makers.items() if case in (options.only or makers) for way in make(grid)]
    race(ways, options.repeats)
    if options.json:
        print(json.dumps({"rows": rows(ways)}, indent=2))
    else:
        print(f"{options.side} voxels a side, median CPU time of {options.repeats} turns\n")
        print(table(ways))


if __name__ == "__main__":
    main()
