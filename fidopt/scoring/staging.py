"""What KonfAI compares, laid out for one case: images in one root, points in another, nothing with a unit.

KonfAI turns a store's unit into millimetres and leaves a field's numbers alone; without a unit every distance stays in
the dataset's own. A root that holds a store hides its other files, hence the two roots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xarray as xr

import blocks
from blocks.grid import Grid
from blocks.image import grid_of, unit_of
from blocks.transforms import DisplacementField
from fidopt.corpus import Case
from fidopt.errors import InputError
from fidopt.images.landmarks import read_landmark_pair

Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Staging:
    """One case and one field, as the groups that an evaluation file names.

    Parameters
    ----------
    case
        What is scored.
    field
        u on the fixed grid.
    """

    case: Case
    field: DisplacementField

    @property
    def grid(self) -> Grid:
        """The fixed grid."""
        return self.field.grid

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
            points = kind in {"MovingLandmarks", "DisplacedLandmarks"}
            root, ending = ("points", "npy") if points else ("images", "ome.zarr")
            path = folder / root / self.case.name / f"{group}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if points:
                fixed, moving = self.landmarks[name]
                np.save(path, moving if kind == "MovingLandmarks" else self.field.points(fixed))
            else:
                self._write_image(path, kind, name)
            roots.append(f"{folder / root}:{'npy' if points else 'omezarr'}")
        return list(dict.fromkeys(roots))

    def _write_image(self, path: Path, kind: str, name: str) -> None:
        store = self._stores(name).get(kind)
        image = blocks.open_image(store) if store is not None else self._made[kind](name)
        if not kind.startswith("Moving") and not grid_of(image).matches(self.grid):
            msg = f"{store or kind}: does not lie on the fixed grid of {self.case.dataset.name}/{self.case.name}; build"
            raise InputError(f"{msg} the case again")
        if store is not None and unit_of(image) in {"px", "mm"}:
            path.symlink_to(store.resolve(), target_is_directory=True)
        else:
            blocks.write_image(path, image.assign_attrs(unit="px"), levels=False)

    def _stores(self, name: str) -> dict[str, Path]:
        """Return the groups that lie in the corpus as they are compared."""
        stores = {"FixedImage": self.case.fixed}
        masks = self.case.masks()
        if "fixed_mask" in masks:
            stores["FixedMask"] = masks["fixed_mask"]
        if name in self.case.label_sets() and not self.case.ignore():
            stores["FixedLabels"], stores["MovingLabels"] = self.case.label_sets()[name]
        return stores

    @property
    def _made(self) -> dict[str, Callable[[str], xr.DataArray]]:
        return {
            "Field": lambda _: blocks.image_of(self.field.window(self.grid.region), self.grid, unit="px"),
            "FixedLabels": lambda name: self._without_ignored(self._labels(name, 0)),
            "MovingLabels": lambda name: self._cleared(self._labels(name, 1), "moving"),
            "WarpedLabels": lambda name: self._without_ignored(self._warped(self._labels(name, 1))),
        }

    def _labels(self, name: str, side: int) -> xr.DataArray:
        return blocks.open_image(self.case.label_sets()[name][side])

    def _warped(self, image: xr.DataArray) -> xr.DataArray:
        return blocks.warp(image, self.field, self.grid, interpolation="nearest")

    def _without_ignored(self, labels: xr.DataArray) -> xr.DataArray:
        """Return a map on the fixed grid without the voxels that either side's provider asked to leave out."""
        cleared = self._cleared(labels, "fixed")
        store = self.case.ignore().get("moving")
        if store is None:
            return cleared
        return cleared.copy(data=cleared.data * (self._warped(blocks.open_image(store)).data == 0))

    def _cleared(self, labels: xr.DataArray, side: str) -> xr.DataArray:
        store = self.case.ignore().get(side)
        return labels if store is None else labels.copy(data=labels.data * (blocks.open_image(store).data == 0))
