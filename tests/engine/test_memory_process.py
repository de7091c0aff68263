"""What a process takes while it warps a store: what it took before, and what its threads' tasks may use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blocks import Grid, image_of, write_image
from fidopt.cluster.budget import BASE

RUN = """
import json, sys
import numpy as np
import blocks
from blocks import Affine, BSpline, Composite, Grid
from dask.system import CPU_COUNT

folder, memory = sys.argv[1], int(sys.argv[2])
grid = Grid.of((256, 512, 512))
lattice = Grid.of((11, 19, 19), spacing=(32, 32, 32), origin=(-32, -32, -32))
spline = BSpline(lattice, np.random.default_rng(0).normal(scale=3, size=(3, 11, 19, 19)))
cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
turn = Affine.rigid([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]], (0, 0, 0), centre=(256, 256, 128))
transform = Composite((spline, turn))

def warp(name, out):
    image = blocks.open_image(f"{folder}/{name}.ome.zarr")
    warped = blocks.warp(image, transform, blocks.grid_of(image), memory_bytes=memory)
    blocks.write_image(f"{folder}/{out}.ome.zarr", warped, levels=False)

def said(what):
    # Not ru_maxrss, which starts at what the parent had.
    (line,) = [line for line in open("/proc/self/status") if line.startswith(what)]
    return int(line.split()[1]) * 1024

warp("large", "warm")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
base = said("VmRSS:")
warp("large", "out")
peak = said("VmHWM:")
print(json.dumps({"base": base, "peak": peak, "allowed": memory * CPU_COUNT}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read where Linux keeps it")
@pytest.mark.parametrize("memory", [64 << 20, 160 << 20])
def test_threads_that_warp_a_store_stay_within_what_their_tasks_may_use(tmp_path: Path, memory: int):
    shape = (256, 512, 512)
    voxels = np.random.default_rng(0).integers(0, 4000, shape, dtype=np.uint16)
    write_image(tmp_path / "large.ome.zarr", image_of(voxels, Grid.of(shape)), levels=False)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), str(memory)], check=True, capture_output=True, text=True
    )
    said = json.loads(done.stdout)
    # What the allocator keeps of memory that came back is nobody's.
    assert said["peak"] - said["base"] <= said["allowed"] + (24 << 20)
    assert said["peak"] - said["base"] >= said["allowed"] // 3
    assert said["peak"] <= BASE + said["allowed"]
