"""Small built cases to score: a pair on hard grids, its labels, landmarks and masks, under a share of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import blocks
from blocks.grid import Grid
from fidopt import corpus, resources
from fidopt.corpus import Case
from fidopt.images.landmarks import write_landmarks

TURN = 0.3
#: Two labels, one of them longer than any table should be.
LABELS = {"1": "ball", "614454277": "box"}


def oblique(ndim: int) -> npt.NDArray[np.float64]:
    """Return a direction turned about the last axis, its first axis flipped."""
    matrix = np.eye(ndim)
    matrix[:2, :2] = [[-np.cos(TURN), -np.sin(TURN)], [-np.sin(TURN), np.cos(TURN)]]
    return matrix


def fixed_grid(ndim: int = 3, fine: int = 1) -> Grid:
    """Return the fixed grid, or one of about its place with ``fine`` times as many voxels an axis."""
    grid = Grid.of(
        (15, 21, 18)[-ndim:], spacing=(1.1, 0.9, 2.3)[:ndim], origin=(4.0, -7.0, 11.0)[:ndim], direction=oblique(ndim)
    )
    return finer(grid, fine)


def moving_grid(ndim: int = 3, fine: int = 1) -> Grid:
    """Return another grid, that covers more than the fixed one."""
    grid = Grid.of((29, 55, 61)[-ndim:], spacing=(0.8, 0.7, 1.9)[:ndim], origin=(-25.0, -20.0, 0.0)[:ndim])
    return finer(grid, fine)


def finer(grid: Grid, times: int) -> Grid:
    """Return a grid with so many times the voxels an axis, one less of an even number: odd sizes are harder."""
    shape = tuple(n * times - (times > 1 and n * times % 2 == 0) for n in grid.shape)
    return Grid(shape, tuple(s / times for s in grid.spacing), grid.origin, grid.direction)


def scene(grid: Grid, shift: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return two labelled bodies in the world, moved by ``shift``, as voxels of a grid."""
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"), axis=-1)
    middle = fixed_grid(grid.ndim).world((np.array(fixed_grid(grid.ndim).shape) - 1) / 2) + shift
    offset = grid.world(index) - middle
    labels = np.where((offset**2).sum(axis=-1) < 36.0, 1, 0).astype(np.int32)
    box = (np.abs(offset - np.r_[-4.0, 4.0, np.zeros(grid.ndim - 2)]) < 3.0).all(axis=-1)
    labels[box] = 614454277
    return labels


def picture(labels: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    return np.where(labels == 0, 20, np.where(labels == 1, 200, 120)).astype(np.uint8)


MakeCase = Callable[..., Case]


@pytest.fixture
def make_case(tmp_path: Path) -> MakeCase:
    """Return a function that builds a case: ``shift`` is where the moving side went, in the world."""

    def _make(
        ndim: int = 3,
        *,
        shift: tuple[float, ...] = (0.0, 0.0, 0.0),
        images: bool = True,
        maps: Mapping[str, npt.NDArray[Any]] | None = None,
        points: Mapping[str, npt.NDArray[np.float64]] | None = None,
        masks: Mapping[str, npt.NDArray[Any]] | None = None,
        unit: str = "mm",
        name: str = "case01",
        fine: int = 1,
        **changes: Any,
    ) -> Case:
        share, root = tmp_path / "share", tmp_path / "corpus"
        document = _describe(ndim, unit=unit, **changes) | {"masks": [m for m in masks or {} if m.endswith("_mask")]}
        path = share / "datasets" / "tiny" / "dataset.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        folder = root / "tiny" / name
        (folder / "truth").mkdir(parents=True)
        here, there = fixed_grid(ndim, fine), moving_grid(ndim, fine)
        still, moved = scene(here, np.zeros(ndim)), scene(there, np.array(shift[:ndim]))
        maps = {"fixed_labels": still, "moving_labels": moved} if maps is None else maps
        stores: dict[str, npt.NDArray[Any]] = {}
        if images:
            stores |= {"fixed": picture(still), "moving": picture(moved)}
        stores |= {f"truth/{k}": v for k, v in maps.items()}
        stores |= {k if k.endswith("_mask") else f"truth/{k}": v for k, v in (masks or {}).items()}
        for place, voxels in stores.items():
            grid = here if "fixed" in place else there
            kind = "image" if place in {"fixed", "moving"} else "labels"
            image = blocks.image_of(voxels, grid, unit=unit, kind=kind)
            blocks.write_image(folder / f"{place}.ome.zarr", image)
        for place, array in (points or {}).items():
            write_landmarks(folder / "truth" / f"{place}.csv", array)
        roots = resources.roots(share=share, corpus=root, results=tmp_path / "results")
        return corpus.case(corpus.dataset("tiny", roots), name, roots)

    return _make


def _describe(ndim: int, *, unit: str, **changes: Any) -> dict[str, Any]:
    case = {"source": "tests", "learn2reg": "0001_0002", "subjects": ["a", "a"]}
    truth = {"grade": "synthetic", "by": "the tests", "checked": "by them", "limits": "all", "labels": LABELS}
    return {
        "name": "tiny",
        "title": "A small pair",
        "task": "registration",
        "dimension": ndim,
        "unit": unit,
        "modalities": {"fixed": "ct", "moving": "ct"},
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "https://example.org", "files": {"x": "sha256:" + "0" * 64}},
        "cases": {"case01": case, "case02": case | {"learn2reg": "0003_0004"}},
        "truth": truth | changes.pop("truth", {}),
        **changes,
    }


@pytest.fixture
def roots(tmp_path: Path) -> resources.Roots:
    """Return the folders that :func:`make_case` built in."""
    (tmp_path / "share").mkdir(exist_ok=True)
    return resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")


@pytest.fixture
def grids() -> Callable[..., tuple[Grid, Grid]]:
    """Return a function from a number of axes to the cases' fixed and moving grid, as fine as asked."""
    return lambda ndim=3, fine=1: (fixed_grid(ndim, fine), moving_grid(ndim, fine))


@pytest.fixture
def truth() -> Callable[..., npt.NDArray[np.int32]]:
    """Return the function that draws the labels of a side."""
    return scene
