"""The same field has the same row to the bit, whatever the chunks, threads, memory or order; streamed as whole."""

from __future__ import annotations

import json
import warnings

import dask
import numpy as np
import pytest
import zarr

import blocks
from blocks.graphs import surface
from blocks.transforms import DisplacementField
from fidopt import corpus
from fidopt.images.nifti import write_field
from fidopt.results import read_rows
from fidopt.scoring.submission import score_fields

pytest.importorskip("konfai", reason="KonfAI is not installed")

SHIFT = (3.0, -4.0, 2.0)


def wavy(grid) -> DisplacementField:
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"))
    waves = [SHIFT[c] + 1.5 * np.sin(index[c] / 3.0) * np.cos(index[-1] / 4.0) for c in range(3)]
    return DisplacementField(grid, np.stack(waves).astype(np.float32))


def chunked(path, field, chunks) -> None:
    """Write a field's store and then its voxels anew in chunks of another shape, unsharded."""
    blocks.write_image(path, blocks.image_of(field.vectors, field.grid, unit="mm"), levels=False)
    array = zarr.open_array(str(path / "0"), mode="r")
    names, voxels = array.metadata.dimension_names, np.asarray(field.vectors)
    made = zarr.create_array(
        str(path / "0"), shape=voxels.shape, chunks=chunks, dtype="float32", dimension_names=names, overwrite=True
    )
    made[:] = voxels


@pytest.fixture
def dataset(make_case, roots, grids, truth):
    grid = grids()[0]
    mask = (truth(grid, np.zeros(3)) == 1).astype(np.uint8)
    points = grid.world(np.random.default_rng(0).uniform(0, np.array(grid.shape) - 1, (20, 3)))
    marks = {"fixed_landmarks": points, "moving_landmarks": points + 1.0}
    for name in ("case01", "case02"):
        make_case(shift=SHIFT, masks={"fixed_mask": mask}, points=marks, name=name)
    return corpus.dataset("tiny", roots)


@pytest.fixture
def rows(dataset, roots, grids, tmp_path):
    """Return a function from how a field lies and is scored to its row, as the file has it."""
    field = wavy(grids()[0])

    def _rows(name, *, chunks=None, cases=("case01",)):
        for case in ("case01", "case02"):
            folder = tmp_path / name / case
            folder.mkdir(parents=True)
            if chunks is None:
                write_field(folder / "DVF.nii.gz", field.vectors, field.grid)
            else:
                chunked(folder / "DVF.ome.zarr", field, chunks)
        for case in cases:
            score_fields(name, dataset, [case], fields=tmp_path / name, roots=roots, machine="here")
        found = read_rows(roots.results / "here" / name / "tiny.json")
        assert found is not None
        assert all(row.error is None for row in found.rows.values())
        return {case: row.model_dump_json(exclude={"date"}) for case, row in found.rows.items()}

    return _rows


def test_a_row_is_the_same_to_the_bit_whatever_the_chunks_threads_memory_or_order(rows, monkeypatch):
    usual = rows("usual", cases=("case01", "case02"))
    assert usual["case01"] == usual["case02"]
    assert len(json.loads(usual["case01"])["metrics"]) > 10
    assert rows("backwards", cases=("case02", "case01")) == usual
    with dask.config.set(num_workers=1):
        assert rows("alone")["case01"] == usual["case01"]
    with dask.config.set(num_workers=7):
        assert rows("many", chunks=(3, 4, 21, 5))["case01"] == usual["case01"]
    monkeypatch.setattr("fidopt.images.fields.LAZY_BYTES", 0)
    monkeypatch.setattr("fidopt.scoring.regularity.LAZY_BYTES", 0)
    monkeypatch.setattr(surface, "MEMORY_BYTES", 1)
    assert rows("lazy", chunks=(1, 15, 6, 18))["case01"] == usual["case01"]


def test_a_synthesis_that_konfai_streams_has_the_figures_of_the_whole(tmp_path, monkeypatch):
    from konfai import api
    from konfai.evaluator import Evaluator

    from tests.scoring.test_synthesis import ball, rough

    shape = (150, 130, 140)
    stores = {"OutputImage": rough(1, shape), "TargetImage": rough(2, shape), "Mask": ball(shape).astype(np.uint8)}
    grid = blocks.Grid.of(shape, spacing=(1.0, 1.5, 2.0))
    for name, voxels in stores.items():
        path = tmp_path / "images" / "one" / f"{name}.ome.zarr"
        path.parent.mkdir(parents=True, exist_ok=True)
        blocks.write_image(path, blocks.image_of(voxels, grid, unit="px"), levels=False)
    named = "fidopt:scoring:image_criteria:"
    criteria = {
        f"{named}MAE": {},
        f"{named}PSNR": {"dynamic_range": 100.0},
        f"{named}MaskedSSIM": {"dynamic_range": 100.0},
    }
    streamed, patches = Evaluator._update_streamed, []
    monkeypatch.setattr(Evaluator, "_update_streamed", lambda *a: patches.append(1) or streamed(*a))
    figures = []
    for number, options in enumerate(({}, {"memory_budget": "6MB"})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = api.evaluate(
                f"run{number}",
                [f"{tmp_path / 'images'}:omezarr"],
                {"OutputImage": {"TargetImage;Mask": criteria}},
                dataset_options=options,
                evaluations_dir=tmp_path / f"e{number}",
                quiet=True,
            )
        found = result.metrics["TRAIN"]["case"]
        figures.append({key: values["one"] for key, values in found.items()})
    assert len(patches) > 8
    assert len(figures[0]) == 3
    assert figures[1] == pytest.approx(figures[0], abs=1e-9)
