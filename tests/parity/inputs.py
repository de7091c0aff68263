"""What ours and theirs are given: pairs with a field, and segmentations, built as cases and scored as a person does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import blocks
from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt import corpus, resources
from fidopt.corpus import Case
from fidopt.images.landmarks import write_landmarks
from fidopt.scoring.evaluation import Scores, score_case
from fidopt.scoring.output_submission import Outputs
from tests.runs.conftest import dataset_document
from tests.scoring.made import describe, store, write_output

SHAPE = (22, 26, 24)
#: Turned about z, so that the axes of the array are not the world's.
OBLIQUE = (np.cos(0.4), -np.sin(0.4), 0.0, np.sin(0.4), np.cos(0.4), 0.0, 0.0, 0.0, 1.0)


def grid(spacing: tuple[float, ...] = (1.0, 1.0, 1.0), *, oblique: bool = False) -> Grid:
    """Return the grid of a pair, both images on it."""
    return Grid.of(SHAPE, spacing=spacing, origin=(5.0, -3.0, 8.0), direction=OBLIQUE if oblique else None)


def bodies(shift: tuple[int, int, int] = (0, 0, 0), *, without: int = 0) -> npt.NDArray[np.uint8]:
    """Return a map (z, y, x) of a ball (1), a box (2) and a thin plate (3), moved by voxels, or ``without`` one."""
    z, y, x = np.indices(SHAPE) - np.array(shift).reshape(3, 1, 1, 1)
    labels = np.zeros(SHAPE, np.uint8)
    labels[(z - 8) ** 2 + (y - 9) ** 2 + (x - 8) ** 2 < 26] = 1
    labels[(z > 12) & (z < 18) & (y > 13) & (y < 21) & (x > 12) & (x < 20)] = 2
    labels[(z == 4) & (y > 14) & (y < 22) & (x > 4) & (x < 20)] = 3
    labels[labels == without] = 0
    return labels


def waves(size: float = 1.0) -> npt.NDArray[np.float64]:
    """Return a smooth field in voxels, components and axes x first (3, x, y, z): Learn2Reg's way."""
    x, y, z = np.indices(SHAPE[::-1])
    parts = [np.sin(y / 4) * np.cos(z / 5), np.sin(z / 4) * np.cos(x / 5), np.sin(x / 4) * np.cos(y / 5)]
    return size * np.stack(parts)


@dataclass(frozen=True)
class Pair:
    """A registration and a field of it.

    Parameters
    ----------
    grid
        Both images' grid.
    fixed, moving
        Label maps (z, y, x).
    voxels
        The field in voxels, (ndim, x, y[, z]).
    points
        Fixed and moving landmarks in voxels, (n, ndim), x first; or none.
    mask
        The fixed mask, (z, y, x).
    """

    grid: Grid
    fixed: npt.NDArray[np.uint8]
    moving: npt.NDArray[np.uint8]
    voxels: npt.NDArray[np.float64]
    points: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None
    mask: npt.NDArray[np.uint8] | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: {"1": "ball", "2": "box", "3": "plate"})

    @property
    def field(self) -> DisplacementField:
        """The field as fidopt has it: u(x) along the world's axes, in the unit."""
        steps = self.voxels.transpose(0, *range(self.grid.ndim, 0, -1))
        return DisplacementField(self.grid, np.tensordot(self.grid.matrix, steps, axes=1))

    def score(self, folder: Path) -> Scores:
        """Return what fidopt says of the field."""
        return score_case(self.build(folder), self.field)

    def build(self, folder: Path) -> Case:
        """Build the pair as a case in a folder."""
        share, root = folder / "share", folder / "corpus"
        masks = [] if self.mask is None else ["fixed_mask"]
        document = dataset_document(dimension=self.grid.ndim, masks=masks)
        document["truth"] |= {"labels": dict(self.labels)}
        path = share / "datasets" / "toy" / "dataset.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(document))
        stores: dict[str, Any] = {"fixed": self.fixed, "moving": self.moving}
        stores |= {"truth/fixed_labels": self.fixed, "truth/moving_labels": self.moving, "fixed_mask": self.mask}
        for name, voxels in stores.items():
            if voxels is not None:
                kind = "image" if name in {"fixed", "moving"} else "labels"
                image = blocks.image_of(voxels, self.grid, unit="mm", kind=kind)
                (root / "toy" / "one" / "truth").mkdir(parents=True, exist_ok=True)
                blocks.write_image(root / "toy" / "one" / f"{name}.ome.zarr", image)
        for side, points in zip(("fixed", "moving"), self.points or (), strict=False):
            world = self.grid.world(points[:, ::-1])
            write_landmarks(root / "toy" / "one" / "truth" / f"{side}_landmarks.csv", world)
        roots = resources.roots(share=share, corpus=root, results=folder / "results")
        return corpus.case(corpus.dataset("toy", roots), "one", roots)


@dataclass(frozen=True)
class Segmented:
    """A segmentation: the truth's map and the output's, (z, y, x), and the tolerance of its surface Dice."""

    truth: npt.NDArray[np.uint8]
    output: npt.NDArray[np.uint8]
    grid: Grid = field(default_factory=grid)
    tolerance: float = 1.0
    names: Mapping[str, str] = field(default_factory=lambda: {"1": "ball", "2": "box", "3": "plate"})

    def score(self, folder: Path) -> Scores:
        """Return what fidopt says of the output."""
        describe(folder / "share", "segmentation", labels=dict(self.names), tolerance_mm=self.tolerance)
        truth = folder / "corpus" / "made" / "one" / "truth" / "labels.ome.zarr"
        store(truth, self.truth, labels=True, grid=self.grid)
        return _scored(folder, write_output(folder / "outputs" / "one", self.output, self.names, grid=self.grid))


@dataclass(frozen=True)
class Synthesised:
    """A synthesis: the real image, the synthetic one and the mask, (z, y, x)."""

    target: npt.NDArray[np.float32]
    image: npt.NDArray[np.float32]
    mask: npt.NDArray[np.uint8]

    def score(self, folder: Path) -> Scores:
        """Return what fidopt says of the image."""
        describe(folder / "share", "synthesis", masks=["mask"])
        case = folder / "corpus" / "made" / "one"
        own = grid()
        for name, voxels in (("truth/target", self.target), ("source", self.target), ("mask", self.mask)):
            store(case / f"{name}.ome.zarr", voxels, labels=name == "mask", grid=own)
        return _scored(folder, write_output(folder / "outputs" / "one", self.image, grid=own))


def _scored(folder: Path, output: Path) -> Scores:
    roots = resources.roots(share=folder / "share", corpus=folder / "corpus", results=folder / "results")
    scorer = Outputs(corpus.dataset("made", roots), roots)
    case = corpus.case(scorer.dataset, "one", roots)
    read, failure = scorer.read_or_fail(case, output)
    assert failure is None, failure
    return scorer.measure(case, read)


@dataclass
class Scored:
    """Inputs with what fidopt says of them, each scored once, in folders of their own."""

    folder: Path
    known: dict[str, Scores] = field(default_factory=dict)

    def __call__(self, name: str, given: Pair | Segmented | Synthesised) -> Scores:
        """Return the scores of an input, by its name."""
        if name not in self.known:
            own = self.folder / name
            own.mkdir(parents=True)
            self.known[name] = given.score(own)
        return self.known[name]
