"""Pictures of what was made of one image: a segmentation's contours and wrong voxels, a synthesis beside the truth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute
from blocks.image import grid_of, open_image
from fidopt.corpus import Case
from fidopt.images.preview import (
    BOTH,
    MADE,
    TRUE,
    WRONG,
    Key,
    Panel,
    Picture,
    around,
    busiest,
    coloured,
    contours,
    fullest,
    overlaid,
    rising,
    sheet,
    views,
    window_of,
)
from fidopt.runner.previews.ground import Ground, in_memory
from fidopt.runner.previews.panels import AROUND, SIDE, panels, titled
from fidopt.scoring.output_evaluation import body_of
from fidopt.scoring.outputs import Output, truth_path

#: Pixels along a plane's longest side where four stand side by side.
_FOUR = {2: 384, 3: 320}
_DIMMED = 0.45


def segmentation(case: Case, output: Output) -> Iterator[tuple[str, Picture]]:
    """Yield the outlines of truth and output over the image, and the voxels where they differ."""
    truth = np.asarray(compute(open_image(truth_path(case))))
    made = np.asarray(compute(output.image))
    wrong = truth != made
    grid = grid_of(output.image)
    region = around((truth != 0) | (made != 0))
    at = fullest(wrong) if wrong.any() else busiest(truth, labels=True)
    where = views(grid, at=at, side=SIDE[grid.ndim], region=region)
    note = "" if region == grid.region else AROUND
    ground = Ground(case).planes(where)
    drawn = [
        contours(plane, *(view.cut(labels, smooth=False)[..., 0] for labels in (truth, made)))
        for view, plane in zip(where, ground, strict=True)
    ]
    keys = [Key(TRUE, "truth"), Key(MADE, "output"), Key(BOTH, "both")]
    yield "contours", sheet(f"{titled(case)}: contours of truth and output", [panels(where, drawn)], keys, note=note)
    kinds = {
        "missed": (wrong & (made == 0), TRUE),
        "invented": (wrong & (truth == 0), MADE),
        "of another structure": (wrong & (truth != 0) & (made != 0), WRONG),
    }
    row = []
    for view, plane in zip(where, ground, strict=True):
        seen = np.rint(plane * _DIMMED).astype(np.uint8)
        seen = overlaid(seen, view.cut(truth, smooth=False)[..., 0] != 0, BOTH, opacity=0.25)
        for mask, colour in kinds.values():
            seen = overlaid(seen, view.marks(mask), colour)
        count = np.count_nonzero(wrong if view.axis is None else wrong.take(view.index, axis=view.axis))
        row.append(Panel(seen, f"{view.name}: {count} voxels wrong".removeprefix(": ")))
    keys = [Key(colour, f"{name}: {np.count_nonzero(mask)} voxels") for name, (mask, colour) in kinds.items()]
    keys.append(Key((64, 64, 64), "truth"))
    yield "wrong", sheet(f"{titled(case)}: wrong voxels", [row], keys, note=note)


def synthesis(case: Case, output: Output) -> Iterator[tuple[str, Picture]]:
    """Yield source, real and made image side by side, and the absolute difference inside the mask or the body."""
    target = in_memory(open_image(truth_path(case)))
    mask = case.masks().get("mask")
    inside = np.asarray(compute(open_image(mask) if mask else body_of(target))) != 0
    grid = grid_of(target)
    far = _difference(output.image, target)
    far[~inside] = 0
    where = views(grid, at=fullest(far), side=_FOUR[grid.ndim])
    scale = rising(float(np.percentile(far[inside], 99)) if inside.any() else 0.0)
    window = window_of([view.cut(target, smooth=True) for view in where])
    columns = {"real": coloured(target, where, window=window), "made": coloured(output.image, where, window=window)}
    source = case.folder / "source.ome.zarr"
    if source.is_dir():
        columns = {"source": coloured(open_image(source), where)} | columns
    columns["difference"] = [scale.colours(view.cut(far, smooth=False)[..., 0]) for view in where]
    rows = [
        [Panel(planes[n], f"{name}, {view.name}".removesuffix(", ")) for name, planes in columns.items()]
        for n, view in enumerate(where)
    ]
    unit = case.dataset.modalities.get("target", "")
    keys = [
        Key(scale, f"absolute difference{' of the ' + unit if unit else ''}, inside the {'mask' if mask else 'body'}")
    ]
    note = f"The real and the made image are black at {window[0]:.4g} and white at {window[1]:.4g}."
    yield "synthesis", sheet(f"{titled(case)}: the real image and the made one", rows, keys, note=note)


def _difference(made: xr.DataArray, target: xr.DataArray) -> npt.NDArray[np.float32]:
    """Return the absolute difference of every voxel, the mean of its channels."""
    far = np.abs(np.asarray(made, dtype=np.float32) - np.asarray(target, dtype=np.float32))
    return np.asarray(far.mean(axis=0)) if far.ndim > grid_of(target).ndim else far
