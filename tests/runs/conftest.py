"""A world of three small pairs and of methods that are shell scripts, in folders of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocks
from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt import corpus
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.images.fields import read_field
from fidopt.resources import Roots

CASES = ("one", "two", "three")
SETUP = 'mkdir -p "$FIDOPT_ENV"\n'


def dataset_document(**changes: Any) -> dict[str, Any]:
    return {
        "name": "toy",
        "title": "Three toys",
        "task": "registration",
        "dimension": 3,
        "unit": "mm",
        "modalities": {"fixed": "ct", "moving": "mr"},
        "masks": ["fixed_mask"],
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "nowhere", "files": {"a": "sha256:" + "0" * 64}},
        "cases": {name: {"source": "tests", "learn2reg": None, "subjects": [name, name]} for name in CASES},
        "truth": {"grade": "synthetic", "by": "the tests", "checked": "by nobody", "limits": "all", "labels": {}},
    } | changes


def method_document(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1",
        "licence": {"code": "MIT", "weights": None},
        "tasks": ["registration"],
        "dimensions": [2, 3],
        "modalities": ["*"],
        "masks": [],
        "device": "cpu",
        "threads": 1,
        "reads": "nifti",
        "max_voxels": 16777216,
        "max_side": None,
        "timeout_s": 20,
        "rigid": False,
        "seed": False,
        "network": None,
        "board": True,
        "reference": "the tests",
        "variants": {},
    } | changes


@dataclass
class World:
    """Where everything of a test lies, and how to add to it."""

    roots: Roots
    told: list[str] = field(default_factory=list)

    @property
    def share(self) -> Path:
        return self.roots.share[0]

    def dataset(self, **changes: Any) -> Dataset:
        document = dataset_document(**changes)
        folder = self.share / "datasets" / document["name"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dataset.json").write_text(json.dumps(document))
        return corpus.dataset(document["name"], self.roots)

    def case(self, name: str, dataset: str = "toy") -> Case:
        return corpus.case(corpus.dataset(dataset, self.roots), name, self.roots)

    def method(self, name: str, run: str, *, setup: str = SETUP, **changes: Any) -> Path:
        folder = self.share / "methods" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "method.json").write_text(json.dumps(method_document(name, **changes)))
        (folder / "setup.sh").write_text("set -eu\n" + setup)
        (folder / "run.sh").write_text("set -eu\n" + run)
        return folder

    def say(self, message: str) -> None:
        self.told.append(message)


def build(roots: Roots, dataset: Dataset) -> None:
    """Write the stores of every case: a ramp, another one, a mask, and a truth that no method may see."""
    for number, name in enumerate(dataset.cases):
        grid = Grid.of((5, 6, 7)[-dataset.dimension :], spacing=(1.0, 1.5, 2.0)[: dataset.dimension])
        folder = roots.corpus / dataset.name / name
        ramp = np.arange(np.prod(grid.shape), dtype=np.int16).reshape(grid.shape) + number
        images = {"fixed": ramp, "moving": ramp[::-1], "fixed_mask": (ramp > 9).astype(np.uint8)}
        images["truth/fixed_labels"] = images["truth/moving_labels"] = images["fixed_mask"]
        for stem, array in images.items():
            store = folder / f"{stem}.ome.zarr"
            store.parent.mkdir(parents=True, exist_ok=True)
            kind = "image" if stem in {"fixed", "moving"} else "labels"
            blocks.write_image(store, blocks.image_of(array, grid, unit=dataset.unit, kind=kind))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a corpus with the toys, built once; tests only read it."""
    root = tmp_path_factory.mktemp("corpus")
    roots = Roots((root,), root / "corpus", root / "archives", root / "results", root / "envs")
    build(roots, World(roots).dataset())
    return root / "corpus"


@pytest.fixture
def world(tmp_path: Path, built: Path) -> World:
    """Return a world whose corpus holds the toys."""
    roots = Roots((tmp_path / "share",), built, tmp_path / "archives", tmp_path / "results", tmp_path / "envs")
    made = World(roots)
    made.dataset()
    return made


@pytest.fixture
def own_corpus(world: World, tmp_path: Path) -> Callable[..., Dataset]:
    """Return a function that gives the world a corpus of its own, with another dataset."""

    def _own(**changes: Any) -> Dataset:
        world.roots = replace(world.roots, corpus=tmp_path / "corpus")
        dataset = world.dataset(**changes)
        build(world.roots, dataset)
        return dataset

    return _own


@dataclass(frozen=True)
class FakeScores:
    metrics: dict[str, float | None]
    labels: dict[str, dict[str, float | None]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    evaluation: str = "Evaluator: {}\n"
    landmarks: dict[str, tuple[float, ...]] = field(default_factory=dict)
    regions: dict[str, dict[str, float]] = field(default_factory=dict)


class FakeScorer:
    """Scores a field by its mean x displacement, and the unregistered pair as 9."""

    def __init__(self, *, broken: str = "") -> None:
        self.broken = broken
        self.scored: list[tuple[str, bool]] = []

    def read(self, path: Path, case: Case) -> DisplacementField:
        return read_field(path, fixed=case.fixed_grid())

    def score(self, case: Case, field: DisplacementField | None, *, workdir: Path) -> FakeScores:
        assert workdir.is_dir()
        self.scored.append((case.name, field is not None))
        if self.broken and field is not None:
            raise RuntimeError(self.broken)
        tre = 9.0 if field is None else float(np.asarray(field.vectors)[0].mean())
        return FakeScores({"tre": tre, "dice": None}, {"dice": {"1": None}}, {"dice": "there are no labels"})


@pytest.fixture
def scorer() -> FakeScorer:
    return FakeScorer()
