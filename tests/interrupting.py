"""Writers that stop in the middle, within the process of the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from blocks.graphs import store as tasks
from blocks.grid import Grid
from blocks.image import image_of


def some_image() -> xr.DataArray:
    """Return an image of four shards, whose two coarser levels have two and one."""
    voxels = (np.random.default_rng(5).random((300, 300, 20)) * 1000).astype("uint16")
    return image_of(voxels, Grid.of(voxels.shape))


class Interrupted(BaseException):
    """What a signal raises."""


class Writer:
    """Counts the shards that are written, and stops after some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrote: Counter[str] = Counter()
        self.most, self.error = 1 << 30, Interrupted()
        write = tasks.write_shard

        def limited(array: Any, index: tuple[int, ...], voxels: Any) -> int:
            if sum(self.wrote.values()) >= self.most:
                raise self.error
            self.wrote[f"{Path(array.path).name}/{index}"] += 1
            return write(array, index, voxels)

        monkeypatch.setattr(tasks, "write_shard", limited)


def ended_before(name: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]) -> None:
    """End a writer just before a file takes its name."""
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if Path(target) == name:
            raise Interrupted
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with pytest.raises(Interrupted):
            write()
