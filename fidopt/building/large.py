"""A case of a large dataset, built block by block: no image of it is ever held whole.

Fixed side: read from its file and written as it lies, or brought onto the world's axes by a permutation. Moving side:
its header is moved by the stored alignment, and it is then resampled once, onto the world's axes and through the known
deformation together. What a resampling reads lies in a scratch store, so that every segment of a file is decoded once.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from blocks.execute import compute, write_image
from blocks.grid import Grid
from blocks.image import grid_of, levels_of, open_image, unit_of
from blocks.image.source import stored_source
from blocks.image.view import Kind
from blocks.transforms import Affine
from fidopt.alignment.averaging import coarse
from fidopt.alignment.bodies import SIDE, body_of, border
from fidopt.alignment.headers import aligned, stored_alignment
from fidopt.building.appearance import problems as appearance_problems
from fidopt.building.appearance import seen
from fidopt.building.contents import Contents, is_labels, label_problems, problems, side
from fidopt.building.deformation import Deformation, draw, transform_text
from fidopt.building.folding import refuse_folding
from fidopt.building.moved import drawn_pairs, moved_points
from fidopt.building.prepared import entries
from fidopt.building.recipe import Recipe, read_recipe, recipe_path
from fidopt.building.stores import refuse_different, write_points
from fidopt.building.world import in_unit, is_world, permutation, regridded, world_grid
from fidopt.descriptors.appearance import Appearance
from fidopt.descriptors.base import load
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.reference import ImageReference, direction
from fidopt.errors import InputError
from fidopt.images.landmarks import read_landmarks
from fidopt.images.readers import read_image
from fidopt.images.segments import forget
from fidopt.resources import Roots

Floats = npt.NDArray[np.float64]

#: What one warping task may use; as many run side by side as there are threads.
TASK_BYTES = 1 << 27


@dataclass(frozen=True)
class LargeCase:
    """One case to build.

    Parameters
    ----------
    dataset, name
        Which.
    source, prepared
        The folder of the provider's files, and what prepare.py made.
    folder, scratch
        Where the case goes, and where what is only needed meanwhile does; both may hold what an interrupted build from
        the same left.
    roots
        Where the alignment and the recipe lie.
    made_from
        What stands for all that the case is built from.
    client
        A Dask client that writes the stores; by default threads on this machine's cores.
    """

    dataset: Dataset
    name: str
    source: Path
    prepared: Path
    folder: Path
    scratch: Path
    roots: Roots
    made_from: str
    client: Any = None

    @property
    def key(self) -> str:
        """What its random numbers depend on."""
        return f"{self.dataset.name}:{self.name}"

    @cached_property
    def recipe(self) -> Recipe | None:
        """How its deformation is drawn; None where it has none."""
        return read_recipe(recipe_path(self.dataset, self.roots), self.dataset) if self.dataset.warp else None

    @cached_property
    def appearance(self) -> Appearance | None:
        """What is done to the values of the moving image; None of nothing."""
        path = entries(self.prepared, self.dataset).get("moving")
        return _appearance(path) if path is not None else None


def assemble_large(case: LargeCase) -> None:
    """Build a case of a large dataset into its folder.

    Raises
    ------
    InputError
        When a file is damaged, lies obliquely, or the case is not what the descriptor says.
    MissingError
        When the dataset is aligned by a transform that was not stored.
    """
    contents = _read(case)
    if found := list(problems(contents, case.dataset, voxels=False)):
        raise InputError("\n".join(f"{case.prepared}: {problem}" for problem in found))
    (case.folder / "truth").mkdir(parents=True, exist_ok=True)
    case.scratch.mkdir(exist_ok=True)
    deformation = _deformation(case, contents)
    for entry in contents.images:
        _write(case, entry, contents.images[entry], deformation if side(entry) == "moving" else None)
    points = _points(case, contents, deformation)
    for entry, values in points.items():
        write_points(case.folder / f"{entry}.csv", values)
    if deformation is not None:
        text = transform_text(deformation.transform)
        (case.folder / "truth" / "deformation.tfm").write_text(text, encoding="ascii")


def _read(case: LargeCase) -> Contents:
    """Return a prepared case's images, none of their voxels read, and its points; the moving side aligned."""
    dataset = case.dataset
    stored = stored_alignment(dataset, case.name, case.roots)
    alignment = stored.transform if stored else None
    images: dict[str, xr.DataArray] = {}
    points: dict[str, Floats] = {}
    for entry, path in entries(case.prepared, dataset).items():
        if "_landmarks" in entry:
            points[entry] = read_landmarks(path, ndim=dataset.dimension)
            if alignment is not None and side(entry) == "moving":
                points[entry] = alignment.inverse().points(points[entry])
            continue
        image = opened(path, case.source, labels=is_labels(entry))
        _check_appearance(entry, path, image)
        grid = in_unit(image, grid_of(image), dataset.unit)
        if side(entry) == "moving" and alignment is not None:
            grid = aligned(grid, alignment)
        elif permutation(grid) is None:
            msg = f"{path}: the axes of a large image lie along the world's, got the direction {grid.direction}"
            raise InputError(f"{msg}; align the moving one, and resample the fixed one before it is a provider's file")
        images[entry] = regridded(image, grid, unit=dataset.unit)
    return Contents(images, points)


def _appearance(path: Path) -> Appearance | None:
    return load(ImageReference, path).appearance if path.suffix == ".json" else None


def _check_appearance(entry: str, path: Path, image: xr.DataArray) -> None:
    """Refuse an appearance of another image than the moving one, or one that does not fit it."""
    appearance = _appearance(path)
    if appearance is None:
        return
    if entry != "moving":
        msg = f"{path}: appearance: is the moving image's alone; the fixed side is as its provider delivers it"
        raise InputError(msg)
    if found := list(appearance_problems(appearance, image)):
        raise InputError("\n".join(f"{path}: appearance.{problem}" for problem in found))


def opened(path: Path, source: Path, *, labels: bool) -> xr.DataArray:
    """Return a prepared image, none of its voxels read; it may be a reference to one of the files in ``source``."""
    if path.suffix != ".json":
        return read_image(path, labels=labels, lazy_bytes=0)
    said = load(ImageReference, path)
    where = source / said.file
    image = read_image(where, labels=labels, unit=said.unit, spacing=said.spacing, lazy_bytes=0)
    if said.axes is None:
        return image
    grid = grid_of(image)
    if grid.ndim != 3:
        msg = f"{path}: axes: are those of a volume, {said.file} has {grid.ndim} dimensions"
        raise InputError(msg)
    turned = Grid.of(grid.shape, spacing=grid.spacing, origin=grid.origin, direction=direction(said.axes))
    return regridded(image, turned, unit=unit_of(image))


def _deformation(case: LargeCase, contents: Contents) -> Deformation | None:
    if case.recipe is None:
        return None
    if not {"fixed", "moving"} <= set(contents.images):
        msg = f"{case.dataset.name}/{case.name}: a known deformation needs both images"
        raise InputError(msg)
    grid = world_grid(grid_of(contents.images["moving"]))
    deformation = draw(case.recipe, grid, name=case.key)
    refuse_folding(deformation.transform, grid)
    return deformation


def _write(case: LargeCase, entry: str, image: xr.DataArray, deformation: Deformation | None) -> None:
    """Write one image's store, compare it with what it was made from, and check its labels."""
    path, kind = case.folder / f"{entry}.ome.zarr", "labels" if is_labels(entry) else "image"
    spool = case.scratch / f"{entry.replace('/', '-')}.ome.zarr"
    checked = spool.with_suffix(".checked")
    if checked.exists():
        return
    placed = image
    if deformation is not None or not is_world(grid_of(image)):
        placed = _placed(case, image, spool, deformation, labels=kind == "labels")
    if entry == "moving" and case.appearance is not None:
        placed = seen(placed, case.appearance, name=case.key)
    _write_store(case, path, placed, kind="labels" if kind == "labels" else "image")
    refuse_different(placed, path)
    forget()
    if kind == "labels" and (found := list(label_problems(entry, _values(path), case.dataset))):
        raise InputError("\n".join(f"{case.prepared}: {problem}" for problem in found))
    checked.touch()
    shutil.rmtree(spool, ignore_errors=True)


def _write_store(case: LargeCase, path: Path, image: xr.DataArray, *, kind: Kind | None = None) -> None:
    """Write a store, take up what is left of it, or leave it where it is whole: the folder is this case's alone."""
    if not (path / "zarr.json").is_file():
        write_image(path, image, kind=kind, made_from=case.made_from, client=case.client)


def _placed(
    case: LargeCase, image: xr.DataArray, spool: Path, deformation: Deformation | None, *, labels: bool
) -> xr.DataArray:
    """Return a lazy image on the world's axes, read through the deformation where there is one."""
    from blocks import warp  # compiles its kernels: only where something is warped

    grid = grid_of(image)
    if isinstance(image.data, np.ndarray) or stored_source(image) is None:
        _write_store(case, spool, image)
        forget()
        image = regridded(open_image(spool), grid, unit=unit_of(image))
    exact = deformation is None and permutation(grid) is not None
    transform = Affine.identity(grid.ndim) if deformation is None else deformation.transform
    nearest = labels or exact
    return warp(
        image,
        transform,
        world_grid(grid),
        interpolation="nearest" if nearest else "linear",
        background=0 if nearest else _background(image),
        memory_bytes=TASK_BYTES,
    )


def _background(image: xr.DataArray) -> float:
    """Return what an image shows where there is nothing: the median of its border, at its coarsest level."""
    path = image.encoding["fidopt_source"][0]
    values = np.asarray(open_image(path, level=len(levels_of(path)) - 1).values, dtype=np.float64)
    shown = float(np.median(border(values.mean(axis=0) if "c" in image.dims else values)))
    return shown if image.dtype.kind == "f" else float(round(shown))


def _values(path: Path) -> npt.NDArray[np.generic]:
    """Return the labels of a store, its blocks gone through one by one."""
    from dask import delayed

    blocks = open_image(path).data.to_delayed().ravel()
    return np.unique(np.concatenate([compute(delayed(np.unique)(block)) for block in blocks]))


def _points(case: LargeCase, contents: Contents, deformation: Deformation | None) -> Mapping[str, Floats]:
    """Return a case's points, those of the moving side through the inverse, and pairs drawn in the fixed body."""
    if deformation is None or case.recipe is None:
        return contents.points
    moving = world_grid(grid_of(contents.images["moving"]))
    points = moved_points(contents.points, deformation, moving)
    store = case.folder / "fixed.ome.zarr"
    body = body_of(coarse(store, side=SIDE), modality=case.dataset.modalities["fixed"])
    inside = grid_of(open_image(store))
    fixed, pairs = drawn_pairs(body, deformation, case.recipe, fixed=inside, moving=moving, name=case.key)
    for entry, drawn in (("truth/fixed_landmarks", fixed), ("truth/moving_landmarks", pairs)):
        points[entry] = np.concatenate([points[entry], drawn]) if entry in points else drawn
    return points
