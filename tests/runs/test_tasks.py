"""Methods that segment or synthesise: what they are handed, what they may write, and the rows they get."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blocks
from blocks.grid import Grid
from fidopt import corpus
from fidopt.resources import packaged_share
from fidopt.results import read_rows
from fidopt.runner import methods
from fidopt.runner.case import Order, run_case
from fidopt.runner.session import run_dataset

GRID = Grid.of((12, 13, 14), spacing=(1.0, 1.5, 2.0))
LABELS = np.zeros(GRID.shape, np.uint8)
LABELS[2:6, 3:9, 3:9] = 1
LABELS[7:10, 3:9, 3:9] = 2
TASKS = {
    "segmentation": {"modalities": {"image": "ct"}, "masks": [], "labels": {"1": "liver", "2": "spleen"}},
    "synthesis": {"modalities": {"source": "mr", "target": "ct"}, "masks": ["mask"], "labels": {}},
}


@pytest.fixture
def task_world(world, tmp_path):
    """Return a function that gives the world a built dataset of a task."""

    def _made(task: str):
        share = (*world.roots.share, packaged_share())
        world.roots = replace(world.roots, share=share, corpus=tmp_path / "corpus")
        described = TASKS[task]
        truth = {"grade": "expert", "by": "-", "checked": "-", "limits": "-", "labels": described["labels"]}
        truth |= {"dynamic_range": 1000.0} if task == "synthesis" else {}
        changes = {"task": task, "modalities": described["modalities"], "masks": described["masks"], "truth": truth}
        dataset = world.dataset(**changes)
        for name in dataset.cases:
            folder = world.roots.corpus / dataset.name / name
            grey = np.arange(np.prod(GRID.shape), dtype=np.int16).reshape(GRID.shape)
            stores = {"image": grey, "truth/labels": LABELS}
            if task == "synthesis":
                stores = {"source": grey, "mask": (LABELS > 0).astype(np.uint8), "truth/target": grey - 100}
            for stem, array in stores.items():
                kind = "labels" if stem in {"mask", "truth/labels"} else "image"
                (folder / stem).parent.mkdir(parents=True, exist_ok=True)
                blocks.write_image(folder / f"{stem}.ome.zarr", blocks.image_of(array, GRID, kind=kind))
        return dataset

    return _made


def order(world, name: str) -> Order:
    chosen = methods.find(name, world.roots)
    return Order(chosen.method, chosen.folder, world.roots.environments / name, 1, hidden=(world.roots.corpus,))


@pytest.mark.parametrize(
    ("task", "wrote", "told", "never"),
    [
        ("segmentation", "labels", {"FIDOPT_MODALITY=ct"}, {"FIDOPT_MASK", "FIDOPT_FIXED_MODALITY", "target"}),
        ("synthesis", "image", {"FIDOPT_MODALITY=mr", "mask.nii.gz"}, {"FIDOPT_REGISTRATION", "target"}),
    ],
)
def test_a_method_of_another_task_gets_one_image_and_never_the_truth(task_world, world, task, wrote, told, never):
    dataset = task_world(task)
    seen = world.share / "seen"
    run = f'{{ echo "args $#"; env | sort; find "$(dirname "$1")"; }} > {seen}; cp "$1" "$2/{wrote}.nii.gz"\n'
    world.method("m", run, tasks=[task], masks=["mask"])
    with run_case(order(world, "m"), corpus.case(dataset, "one", world.roots)) as result:
        assert result.failure is None
        assert result.field is not None
        assert result.field.name == f"{wrote}.nii.gz"
    text = seen.read_text()
    assert "args 2" in text
    assert all(word in text for word in told), text
    assert not any(word in text for word in never)
    assert "truth/" not in text


def test_a_method_that_writes_nothing_is_told_the_name_it_should_have_used(task_world, world):
    dataset = task_world("segmentation")
    world.method("m", 'touch "$2/DVF.nii.gz"\n', tasks=["segmentation"])
    with run_case(order(world, "m"), corpus.case(dataset, "one", world.roots)) as result:
        assert result.failure is not None
        assert (result.failure.stage, result.failure.reason) == (
            "output",
            "run.sh ended well but wrote no labels.nii.gz",
        )


def run(world, name: str) -> dict:
    finished = run_dataset(name, "toy", ["one"], roots=world.roots, say=world.say, machine="host")
    return read_rows(finished.line.rows).rows["one"], finished


def written(folder: Path, array: np.ndarray) -> Path:
    from fidopt.images.nifti import write_nifti

    write_nifti(folder, blocks.image_of(array, GRID))
    return folder


def test_a_segmentation_is_scored_by_the_names_of_its_structures(task_world, world):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    task_world("segmentation")
    world.share.mkdir(parents=True, exist_ok=True)
    labels = written(world.share / "labels.nii.gz", np.where(LABELS == 1, 7, 0).astype(np.uint8))
    (world.share / "labels.json").write_text(json.dumps({"7": "liver"}))
    world.method("m", f'cp {labels} {world.share}/labels.json "$2/"\n', tasks=["segmentation"])
    row, finished = run(world, "m")
    assert row.error is None
    assert {path.name for path in finished.line.previews("one").iterdir()} == {"contours.png", "wrong.png"}
    # One structure exactly, one not at all.
    assert row.metrics["dice"] == pytest.approx(0.5)
    assert row.time_s is not None
    assert row.method_version == "1"


def test_a_refused_output_is_said_once(task_world, world):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    task_world("segmentation")
    world.share.mkdir(parents=True, exist_ok=True)
    labels = written(world.share / "labels.nii.gz", LABELS.astype(np.float32) + 0.4)
    world.method("m", f'cp {labels} "$2/"\n', tasks=["segmentation"])
    row, _ = run(world, "m")
    assert row.error.stage == "output"
    (message,) = [said for said in world.told if row.error.reason in said]
    assert message == f"toy/one: failed (output): {row.error.reason}"


def test_a_segmentation_that_fails_counts_as_an_empty_map(task_world, world):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    task_world("segmentation")
    world.method("m", "echo the tool says why; exit 3\n", tasks=["segmentation"])
    row, finished = run(world, "m")
    assert finished.failed == ["one"]
    assert row.error.stage == "run"
    assert "the tool says why" in row.error.log_tail
    assert row.metrics["dice"] == 0


def test_a_synthesis_is_scored_inside_its_mask_and_none_stands_in_for_a_failure(task_world, world):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    task_world("synthesis")
    world.method("m", 'cp "$1" "$2/image.nii.gz"\n', tasks=["synthesis"])
    row, finished = run(world, "m")
    assert row.error is None
    assert row.metrics["mae"] == pytest.approx(100)
    assert row.regions["mae"]["inside"] == pytest.approx(100)
    assert [path.name for path in finished.line.previews("one").iterdir()] == ["synthesis.png"]
    world.method("n", "exit 1\n", tasks=["synthesis"])
    row, _ = run(world, "n")
    assert row.error.stage == "run"
    assert row.metrics["mae"] is None
