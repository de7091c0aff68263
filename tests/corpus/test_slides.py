"""A slide of any size in two stains: made tile by tile, built, aligned, warped and scored, none of it held whole.

``FIDOPT_SLIDE=40000x60000`` makes the slow proof one of a whole slide (7 GB a side); by default it is 4,000 x 6,000.
``FIDOPT_SLIDE_FOLDER`` names slides that ``tests/slides.py`` made before.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blocks import Grid, open_image
from blocks.execute import compute
from blocks.image import grid_of, levels_of
from fidopt import building, corpus, resources
from fidopt.images.nifti import write_field
from fidopt.images.preview import coarse_level
from fidopt.scoring.evaluation import score_case
from fidopt.scoring.field import read_scored_field
from tests.slides import PIXEL, Pair, write_pair

PREPARE = """
import json, shutil, sys
from pathlib import Path
source, target, *cases = sys.argv[1:]
for case in cases:
    folder = Path(target) / case
    (folder / "truth").mkdir(parents=True)
    for side in ("fixed", "moving"):
        (folder / f"{side}.json").write_text(json.dumps({"file": f"{side}.ome.tif"}))
        shutil.copy(Path(source) / f"{side}.csv", folder / "truth" / f"{side}_landmarks.csv")
"""
#: Most memory of the process that builds or warps, whatever the slide: one worker's.
BUDGET = 1 << 30
#: What the command `fidopt` runs.
ENTRY = "from fidopt.cli import main; raise SystemExit(main())"
#: Voxels of the grid that the true field is written on.
FIELD_VOXELS = 1 << 20


def describe(made: Path, root: Path) -> resources.Roots:
    """Make a dataset of the slides in a folder."""
    folder = root / "share" / "datasets" / "slides"
    (folder / "alignment").mkdir(parents=True)
    (root / "archives").mkdir()
    (root / "archives" / "slides").symlink_to(made)
    files = {}
    for name in ("fixed.ome.tif", "moving.ome.tif", "fixed.csv", "moving.csv"):
        with (made / name).open("rb") as stream:
            files[name] = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    document = {
        "name": "slides",
        "title": "One section in two stains",
        "dimension": 2,
        "unit": "um",
        "large": True,
        "modalities": {"fixed": "histology", "moving": "histology"},
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "nowhere", "files": files},
        "cases": {"pair": {"source": "tests", "learn2reg": None, "subjects": ["a", "a"]}},
        "alignment": {"mode": "elastix-rigid"},
        "truth": {"grade": "synthetic", "by": "the tests", "checked": "by nobody", "limits": "all"},
    }
    (folder / "dataset.json").write_text(json.dumps(document))
    (folder / "prepare.py").write_text(PREPARE)
    shutil.copy(made / "rigid.tfm", folder / "alignment" / "pair.tfm")
    return resources.roots(share=root / "share", corpus=root / "corpus", archives=root / "archives")


def true_field(pair: Pair, case: corpus.Case, path: Path) -> None:
    """Write the field that takes the fixed slide's points to the aligned moving one's, on a level it fits on."""
    grids = [level.grid for level in levels_of(case.fixed)]
    grid = next((g for g in grids if np.prod(g.shape) <= FIELD_VOXELS), grids[-1])
    index = np.stack(np.meshgrid(*(np.arange(n) for n in grid.shape), indexing="ij"), axis=-1).reshape(-1, 2)
    points = grid.world(index)
    write_field(path, (pair.unbend(points) - points).T.reshape(2, *grid.shape), grid)


def likeness(one: Path, other: Path, *, side: int) -> float:
    """Return the correlation of two stores' green where the first shows tissue, at a coarse level of one grid."""
    first, second = (
        compute(open_image(p, level=coarse_level(p, side=side))).values[1].astype(float) for p in (one, other)
    )
    tissue = first < 235
    return float(np.corrcoef(first[tissue], second[tissue])[0, 1])


def prove(pair: Pair, made: Path, root: Path, *, run) -> None:
    """Build, verify, align, warp and score a pair; ``run`` runs a command of fidopt."""
    roots = describe(made, root)
    said = ["--share", str(root / "share"), "--corpus", str(roots.corpus)]
    run(["build", "slides", *said, "--archives", str(roots.archives), "--memory", "1GiB"])
    dataset = corpus.dataset("slides", roots)
    assert building.verify(dataset, roots=roots) == []
    case = corpus.case(dataset, "pair", roots)
    grid = grid_of(open_image(case.fixed))
    assert grid == Grid.of((pair.height, pair.width), spacing=(PIXEL, PIXEL))
    before = score_case(case, None)
    assert before.metrics["tre"] > 0.5 * pair.reach
    true_field(pair, case, root / "DVF.nii.gz")
    field = read_scored_field(root / "DVF.nii.gz", case)
    after = score_case(case, field)
    assert after.metrics["tre"] < 0.2 * PIXEL
    assert after.metrics["folds"] == 0
    warped = root / "warped.ome.zarr"
    run(
        ["warp", str(case.moving), str(root / "DVF.nii.gz"), str(warped), "--like", str(case.fixed), "--memory", "1GiB"]
    )
    assert grid_of(open_image(warped)) == grid
    side = max(grid.shape) // 2 ** max(0, len(levels_of(case.fixed)) - 2) + 1
    assert likeness(case.fixed, warped, side=side) > 0.9


def in_process(arguments: list[str]) -> None:
    from fidopt.cli import main

    assert main(arguments) in (None, 0)


def measured(arguments: list[str]) -> None:
    """Run a command as its own process, and hold it to one worker's memory."""
    process = subprocess.Popen([sys.executable, "-c", ENTRY, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    print(f"{arguments[0]}: {usage.ru_maxrss / 1024:.0f} MiB, {usage.ru_utime + usage.ru_stime:.0f} s CPU")  # noqa: T201
    assert process.returncode == 0
    assert usage.ru_maxrss * 1024 <= BUDGET


def test_a_small_slide_in_two_stains_is_built_aligned_warped_and_scored(tmp_path):
    pair = Pair(600, 900)
    write_pair(tmp_path / "made", pair, tile=128)
    prove(pair, tmp_path / "made", tmp_path / "world", run=in_process)


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
def test_a_whole_slide_in_two_stains_is_built_aligned_warped_and_scored_in_one_worker_s_memory(tmp_path):
    height, width = (int(n) for n in os.environ.get("FIDOPT_SLIDE", "4000x6000").split("x"))
    pair = Pair(height, width)
    room = 6 * height * width * 3
    if shutil.disk_usage(tmp_path).free < room:
        pytest.skip(f"a slide of {height} x {width} needs {room >> 30} GiB of disk under {tmp_path}")
    made = Path(os.environ.get("FIDOPT_SLIDE_FOLDER", tmp_path / "made"))
    if not (made / "moving.csv").exists():
        write_pair(made, pair)
    try:
        prove(pair, made, tmp_path / "world", run=measured)
    finally:
        shutil.rmtree(tmp_path, ignore_errors=True)
