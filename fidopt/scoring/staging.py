"""What KonfAI compares, laid out for one case: label maps in one root, tables in another, nothing with a unit.

KonfAI turns a store's unit into millimetres; without a unit every distance stays in the dataset's own. A root that
holds a store hides its other files, hence the two roots. The label maps of a large dataset are those of one level; a
field is handed on as what its determinants add up to, and as the landmarks it displaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

import blocks
from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import grid_of, unit_of
from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.errors import InputError
from fidopt.images.landmarks import read_landmark_pair
from fidopt.images.lost import refuse_lost
from fidopt.scoring.levels import at_level, labels_level
from fidopt.scoring.regularity import Question, table

Points = npt.NDArray[np.float64]

#: Units that KonfAI leaves alone.
UNITS = frozenset({"px", "mm"})


def refuse_unwhole(labels: xr.DataArray, store: Path) -> None:
    """Refuse a store of a case's label map that lost a shard or holds no integers. Raises InputError."""
    refuse_lost(str(store))
    if labels.dtype.kind not in "bui":
        msg = f"{store}: a label map of a case holds integers, got {labels.dtype}; build the case again"
        raise InputError(msg)


@dataclass(frozen=True)
class Staging:
    """One case and one field, as the groups that an evaluation file names.

    Parameters
    ----------
    case
        What is scored.
    field
        u on the fixed grid; of a large dataset on any grid that covers it.
    questions
        What is asked of the field.
    client
        A Dask client for what is read from stores; by default threads on this machine's cores.
    """

    case: Case
    field: DisplacementField
    questions: tuple[Question, ...] = ()
    client: Any = None

    @cached_property
    def grid(self) -> Grid:
        """The fixed grid."""
        return self.case.fixed_grid()

    @cached_property
    def level(self) -> int | None:
        """The level at which the label maps of a large dataset are compared; None where they are as they are."""
        return labels_level(self.case)

    @cached_property
    def landmarks(self) -> Mapping[str, tuple[Points, Points]]:
        """Set -> fixed points and moving points, (n, ndim) each, world."""
        pairs = self.case.landmark_sets().items()
        return {name: read_landmark_pair(*paths, ndim=self.grid.ndim) for name, paths in pairs}

    def write(self, folder: Path, groups: frozenset[str]) -> list[str]:
        """Write the groups under a folder.

        Returns
        -------
        list of str
            The roots as KonfAI names them: path, colon, format.
        """
        roots = []
        for group in sorted(groups):
            kind, _, name = group.partition("_")
            root, ending = ("images", "ome.zarr") if kind.endswith("Labels") else ("tables", "npy")
            path = folder / root / self.case.name / f"{group}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if root == "tables":
                np.save(path, self._table(kind, name))
            else:
                self._write_labels(path, kind, name)
            roots.append(f"{folder / root}:{'npy' if root == 'tables' else 'omezarr'}")
        return list(dict.fromkeys(roots))

    def _table(self, kind: str, name: str) -> Points:
        """Return landmarks, or what the field adds up to: the images it is held against are in its sums already."""
        if kind in {"MovingLandmarks", "DisplacedLandmarks"}:
            fixed, moving = self.landmarks[name]
            return moving if kind == "MovingLandmarks" else self.field.points(fixed)
        return self._regularity

    @cached_property
    def _regularity(self) -> Points:
        return table(self.case, self.field, self.questions, client=self.client)

    def _write_labels(self, path: Path, kind: str, name: str) -> None:
        sides = dict(zip(("FixedLabels", "MovingLabels"), self.case.label_sets()[name], strict=True))
        if kind == "FixedLabels" and not grid_of(blocks.open_image(sides[kind])).matches(self.grid):
            msg = f"{sides[kind]}: does not lie on the fixed grid of {self.case.dataset.name}/{self.case.name}; build"
            raise InputError(f"{msg} the case again")
        if kind in sides and not self.level and not self.case.ignore() and unit_of(self._open(sides[kind])) in UNITS:
            path.symlink_to(sides[kind].resolve(), target_is_directory=True)
            return
        fixed, moving = (self._open(store) for store in sides.values())
        if kind == "MovingLabels":
            image = self._cleared(moving, "moving")
        else:
            image = self._without_ignored(fixed if kind == "FixedLabels" else self._warped(moving, grid_of(fixed)))
        if self.client is not None:
            # A worker may be on another machine, and this folder is on this one.
            image = image.copy(data=compute(image, client=self.client).data)
        blocks.write_image(path, image.assign_attrs(unit="px"), levels=False)

    def _open(self, store: Path) -> xr.DataArray:
        labels = at_level(store, self.level or 0)
        refuse_unwhole(labels, store)
        return labels

    def _warped(self, moving: xr.DataArray, grid: Grid) -> xr.DataArray:
        return blocks.warp(moving, self.field, grid, interpolation="nearest")

    def _without_ignored(self, labels: xr.DataArray) -> xr.DataArray:
        """Return a map on the fixed grid without the voxels that either side's provider asked to leave out."""
        cleared = self._cleared(labels, "fixed")
        store = self.case.ignore().get("moving")
        if store is None:
            return cleared
        left_out = self._warped(self._open(store), grid_of(labels))
        return cleared.copy(data=cleared.data * (left_out.data == 0))

    def _cleared(self, labels: xr.DataArray, side: str) -> xr.DataArray:
        store = self.case.ignore().get(side)
        return labels if store is None else labels.copy(data=labels.data * (self._open(store).data == 0))
