"""Pictures of a registration: checkerboards, contours, the Jacobian determinant, arrows at the landmarks."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
from blocks.kernels.jacobian import determinant
from blocks.transforms import Affine, DisplacementField, Transform
from fidopt.corpus import Case
from fidopt.images.preview import (
    BOTH,
    FOLD,
    MADE,
    TRUE,
    Key,
    Panel,
    Picture,
    Scale,
    View,
    around,
    busiest,
    coarse_level,
    coloured,
    contours,
    fullest,
    interleaved,
    outline,
    overlaid,
    sheet,
    views,
)
from fidopt.runner.previews.ground import VOXELS, Ground, in_memory
from fidopt.runner.previews.landmarks import landmarks
from fidopt.runner.previews.panels import AROUND, SIDE, panels, titled

#: Most voxels of a field whose determinants are drawn; of a larger one every second voxel is read, or every third.
FIELD_VOXELS = 1 << 24
#: The colours of determinants: white where volume is kept, the ends where it is halved or doubled.
DETERMINANT = Scale(0.5, 2.0, (0.5, 0.7, 1.0, 1.4, 2.0), both_ways=True)


@dataclass(frozen=True)
class Scene(Ground):
    """A registration case at the level that is drawn."""

    @cached_property
    def views(self) -> list[View]:
        """The planes with most to see: most edges of the first labels, else of the fixed image."""
        at = None
        if self.labels:
            at = busiest(next(iter(self.labels.values())).values, labels=True)
        elif self.image is not None and self.image.ndim == self.grid.ndim:
            at = busiest(self.image.values)
        return views(self.grid, at=at, side=SIDE[self.grid.ndim])

    def warped(self, store: Path, transform: Transform, *, labels: bool = False) -> xr.DataArray:
        """Return an image or label map of the moving side on the fixed grid, in memory."""
        moving = blocks.open_image(store, level=coarse_level(store, side=VOXELS[self.grid.ndim]))
        return in_memory(blocks.warp(moving, transform, self.grid, interpolation="nearest" if labels else "linear"))


def pictures(case: Case, field: DisplacementField) -> Iterator[tuple[str, Picture]]:
    """Yield the name and the picture of everything that a registered case has to show."""
    scene = Scene(case)
    if scene.image is not None and case.moving.is_dir():
        yield from _images(scene, field)
    for name in case.label_sets():
        yield _named("contours", name), _contours(scene, name, field)
    yield "jacobian", _jacobian(scene, field)
    for name in case.landmark_sets():
        yield _named("landmarks", name), landmarks(case, name, field, ground=scene)


def _images(scene: Scene, field: DisplacementField) -> Iterator[tuple[str, Picture]]:
    case, where = scene.case, scene.views
    ground = scene.planes(where)
    unmoved = coloured(scene.warped(case.moving, Affine.identity(scene.grid.ndim)), where)
    yield (
        "before",
        sheet(
            f"{titled(case)}: fixed and moving image, unregistered",
            [panels(where, interleaved(ground, unmoved))],
            note=_SQUARES.format("moving"),
        ),
    )
    warped = coloured(scene.warped(case.moving, field), where)
    yield (
        "after",
        sheet(
            f"{titled(case)}: fixed and warped image",
            [panels(where, interleaved(ground, warped))],
            note=_SQUARES.format("warped"),
        ),
    )
    yield "warped", sheet(f"{titled(case)}: warped image", [panels(where, warped)])


_SQUARES = "Squares alternate, the upper left one of the fixed image, the next of the {} one."


def _contours(scene: Scene, name: str, field: DisplacementField) -> Picture:
    case, fixed = scene.case, scene.labels[name]
    warped = scene.warped(case.label_sets()[name][1], field, labels=True)
    named = [int(label) for label in case.dataset.truth.labels] if not name else []
    truth = _kept(fixed.values, named)
    region = around(truth != 0)
    where = views(scene.grid, at=busiest(truth, labels=True), side=SIDE[scene.grid.ndim], region=region)
    drawn = []
    for view, plane in zip(where, scene.planes(where), strict=True):
        one, other = (_kept(view.cut(labels, smooth=False)[..., 0], named) for labels in (fixed, warped))
        drawn.append(contours(plane, one, other))
    keys = [Key(TRUE, "fixed labels"), Key(MADE, "moving labels, warped"), Key(BOTH, "both")]
    note = "" if region == scene.grid.region else AROUND
    return sheet(f"{titled(case, name)}: contours of the labels", [panels(where, drawn)], keys, note=note)


def _kept(labels: npt.NDArray[Any], named: list[int]) -> npt.NDArray[Any]:
    """Return labels without those that are not scored: all are where none is named."""
    return np.where(np.isin(labels, named), labels, 0) if named else labels


def _jacobian(scene: Scene, field: DisplacementField) -> Picture:
    vectors, grid, step = _thinned(field)
    found = determinant(vectors, grid)
    folds = found <= 0
    outlined = next(iter(scene.labels.values()), None) if grid.matches(scene.grid) else None
    weights = folds if folds.any() else np.abs(np.log(np.maximum(found, 1e-3)))
    # Without a fold, what the field does to the background is of no interest beside what it does to the labels.
    if outlined is not None and not folds.any():
        weights = np.where(outlined.values != 0, weights, 0)
    where = views(grid, at=fullest(weights), side=SIDE[grid.ndim])
    row = []
    for view in where:
        plane = DETERMINANT.colours(view.cut(found, smooth=False)[..., 0])
        if outlined is not None:
            plane = overlaid(plane, outline(view.cut(outlined, smooth=False)[..., 0]), (90, 90, 90))
        count = np.count_nonzero(folds if view.axis is None else folds.take(view.index, axis=view.axis))
        said = f"{count} voxels folded"
        row.append(Panel(overlaid(plane, view.marks(folds), FOLD), f"{view.name}: {said}" if view.name else said))
    keys = [Key(DETERMINANT, "determinant: below 1 shrinks, above 1 grows"), Key(FOLD, "folded: 0 or less")]
    count = np.count_nonzero(folds)
    keys += [] if outlined is None else [Key((90, 90, 90), "fixed labels")]
    note = f"{count} of {folds.size} voxels are folded ({100 * count / folds.size:.3g} %)"
    note += "" if step == 1 else f"; read at every {_ordinal(step)} voxel of the field, finer folds are not seen"
    return sheet(f"{titled(scene.case)}: Jacobian determinant of x + u(x)", [row], keys, note=f"{note}.")


def _thinned(field: DisplacementField) -> tuple[npt.NDArray[np.floating], Grid, int]:
    """Return a field in memory, its grid, and every how many voxels it was read: 1 unless it is large."""
    grid, step = field.grid, 1
    while math.prod(-(-n // step) for n in grid.shape) > FIELD_VOXELS:
        step += 1
    strides = (slice(None), *(slice(None, None, step) for _ in grid.shape))
    vectors = field.vectors[strides]
    read = np.asarray(compute(vectors) if hasattr(vectors, "dask") else vectors)
    return read, Grid(read.shape[1:], tuple(s * step for s in grid.spacing), grid.origin, grid.direction), step


def _ordinal(step: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(step, f"{step}th")


def _named(kind: str, name: str) -> str:
    return f"{kind}_{name}" if name else kind
