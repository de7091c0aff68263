"""What a case's pictures are drawn on: the fixed image, or the one that was segmented, as fine as a picture needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from blocks.execute import compute
from blocks.grid import Grid
from fidopt.corpus import Case
from fidopt.images.preview import Picture, View, coloured
from fidopt.scoring.levels import at_level, fixed_grids
from fidopt.scoring.outputs import truth_grid, truth_path

#: Voxels along the longest side of the level that is drawn, 2D and 3D: a picture shows no more.
VOXELS = {2: 1024, 3: 256}


@dataclass(frozen=True)
class Ground:
    """A registration or segmentation case at the level that is drawn.

    Parameters
    ----------
    case
        The case.
    """

    case: Case

    @property
    def registers(self) -> bool:
        """Whether it is a pair; else one image and its truth, which are drawn as they are."""
        return self.case.dataset.task == "registration"

    @cached_property
    def grids(self) -> list[Grid]:
        """The grids of the levels, the finest first."""
        return fixed_grids(self.case) if self.registers else [truth_grid(self.case)]

    @cached_property
    def level(self) -> int:
        """The finest level that is small enough, else the coarsest."""
        most = VOXELS[self.case.dataset.dimension]
        return next((n for n, grid in enumerate(self.grids) if max(grid.shape) <= most), len(self.grids) - 1)

    @cached_property
    def grid(self) -> Grid:
        """The grid at that level."""
        return self.grids[self.level]

    @cached_property
    def image(self) -> xr.DataArray | None:
        """The fixed image, or the one that was segmented, in memory; None where there is none."""
        path = self.case.fixed if self.registers else self.case.folder / "image.ome.zarr"
        return in_memory(at_level(path, self.level)) if path.is_dir() else None

    @cached_property
    def labels(self) -> dict[str, xr.DataArray]:
        """Set -> the fixed label map, or the truth of the only set, in memory."""
        pairs = {name: fixed for name, (fixed, _) in self.case.label_sets().items()}
        stores = pairs if self.registers else {"": truth_path(self.case)}
        return {name: in_memory(at_level(store, self.level)) for name, store in stores.items()}

    def planes(self, where: Sequence[View]) -> list[Picture]:
        """Return planes of the image, black where there is none."""
        if self.image is None:
            return [np.zeros((*view.shape, 3), np.uint8) for view in where]
        return coloured(self.image, where)


def in_memory(image: xr.DataArray) -> xr.DataArray:
    """Return an image whose voxels are an array: each plane of a picture would compute all of it again."""
    return image.copy(data=np.asarray(compute(image)))
