"""Stores warped onto a fixed grid, and transforms written as one displacement field; both can be run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

import blocks
from blocks.execute import Outcome, Progress, compute, write_image
from blocks.graphs.warp import MEMORY_BYTES
from blocks.grid import Grid
from blocks.image import grid_of, kind_of, open_image, unit_of
from blocks.image.opening import read_root
from blocks.plan import Interpolation
from blocks.region import Region
from blocks.storage import StoreError, is_url, local_path
from blocks.transforms import AffineBox, DisplacementField, Transform, fold
from fidopt.errors import InputError, OutputExistsError, UsageError
from fidopt.images import elastix
from fidopt.images.atomic import refuse_inside_store
from fidopt.images.conventions import CONTRACT
from fidopt.images.identity import header, identity
from fidopt.images.readers import NIFTI, is_store, read_image, refusing
from fidopt.images.transforms import named, read_transforms
from fidopt.images.volumes import WRITTEN_ENDINGS
from fidopt.images.writers import differences, write_file

#: A field of at most so many bytes is held whole while its file is written.
HELD_BYTES = 1 << 30
#: Endings of the files and stores a displacement field is written to.
FIELD_ENDINGS = (*NIFTI, *WRITTEN_ENDINGS, ".zarr")
State = Literal["written", "taken up", "there already"]


@dataclass(frozen=True)
class Written:
    """What was made.

    Parameters
    ----------
    image
        The warped image or the field, lazy where it lies in a store.
    state
        Written now, taken up where an earlier attempt stopped, or there already, made from the same.
    outcome
        What an earlier attempt had left of a store; None where no store was written.
    """

    image: xr.DataArray
    state: State
    outcome: Outcome | None = None


def warp(
    moving: str,
    transforms: Sequence[str],
    out: str,
    *,
    like: str,
    interpolation: Interpolation | None = None,
    memory_bytes: int = MEMORY_BYTES,
    overwrite: bool = False,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    progress: Progress | None = None,
) -> Written:
    """Write a moving image as it looks through transforms on a fixed image's grid, with all levels.

    Parameters
    ----------
    moving
        A store, or any image that is read whole.
    transforms
        Files (:mod:`fidopt.images.transforms`); the first is applied to the fixed point first.
    out
        The store to write.
    like
        The fixed image.
    interpolation
        By default linear, nearest for a label map.
    memory_bytes
        What one task may use.
    overwrite
        Whether another store that is there is replaced.
    client
        A Dask client; by default threads on this machine's cores.
    progress
        Called as shards are written.

    Raises
    ------
    OutputExistsError
        When a store that was made from something else is there.
    UsageError
        When a label map is to be interpolated, or the units differ.
    """
    with refusing(out):
        _refuse_input(out, (moving, like, *transforms))
    if not is_store(out):
        msg = f"{out}: a warped image is written as a store, NAME.ome.zarr; `fidopt convert` makes a file of it"
        raise UsageError(msg)
    image, fixed = read_image(moving), read_image(like)
    chosen = _interpolation(image, moving, interpolation)
    if unit_of(image) != unit_of(fixed):
        msg = f"{moving} is in {unit_of(image)} and {like} in {unit_of(fixed)}; both must be in one unit"
        raise UsageError(msg)
    made_from = _header(moving, transforms, grid_of(fixed), chosen)
    if _is_done(out, made_from, overwrite=overwrite):
        return Written(open_image(out), "there already")
    transform = read_transforms(transforms, fixed=grid_of(fixed))
    with refusing(out):
        warped = blocks.warp(image, transform, fixed, interpolation=chosen, memory_bytes=memory_bytes)
        outcome = write_image(
            out,
            warped,
            overwrite=overwrite,
            attributes={"fidopt": {"header": made_from}},
            made_from=made_from,
            progress=progress,
            client=client,
        )
        return Written(open_image(out), outcome.state, outcome)


def write_displacement(
    transforms: Sequence[str],
    out: str,
    *,
    like: str,
    overwrite: bool = False,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    progress: Progress | None = None,
) -> Written:
    """Write transforms as one displacement field on a fixed image's grid: float32, world (LPS), the image's unit.

    Parameters
    ----------
    transforms, like, overwrite, client, progress
        As for :func:`warp`.
    out
        A file or store with one of :data:`FIELD_ENDINGS`.

    Raises
    ------
    OutputExistsError
        When something else is there.
    InputError
        When a displacement is too large for a float32.
    """
    with refusing(out):
        _refuse_input(out, (like, *transforms))
    if not out.rstrip("/").endswith(FIELD_ENDINGS):
        msg = f"{out}: a field is written as .nii.gz, .nii, .mha, .nrrd or .ome.zarr"
        raise UsageError(msg)
    fixed = read_image(like)
    transform = read_transforms(transforms, fixed=grid_of(fixed))
    with refusing(out):
        field = blocks.displacement(transform, fixed)
        _refuse_too_far(transform, grid_of(fixed), transforms)
        if not is_store(out) and field.nbytes <= HELD_BYTES:
            # A file takes one component after the other: computed once here rather than once for each.
            field = compute(field, client=client)
        if (
            (is_url(out) or Path(out.removeprefix("file://")).exists())
            and not overwrite
            and _field_is_there(out, field)
        ):
            return Written(field, "there already")
        if is_store(out):
            made_from = header({"displacement": 1} | _places(transforms, grid_of(fixed)))
            outcome = write_image(
                out, field, overwrite=overwrite, made_from=made_from, progress=progress, client=client
            )
            return Written(field, outcome.state, outcome)
        write_file(out, field)
    return Written(field, "written")


def _refuse_too_far(transform: Transform, fixed: Grid, sources: Sequence[str]) -> None:
    """Refuse displacements that no float32 holds before one is written; a lazy field's are float32 themselves."""
    start = moved = AffineBox.of(fixed, Region((0,) * fixed.ndim, fixed.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for stage in fold(transform):
            if not isinstance(stage, DisplacementField) or stage.in_memory:
                moved = stage.bound(moved)
        (lower, upper), (least, most) = moved.hull(), start.hull()
        farthest = float(max(np.abs(upper - least).max(), np.abs(lower - most).max()))
    if not farthest <= float(np.finfo(np.float32).max):
        msg = f"{', '.join(sources)}: displacements of up to {farthest:.3g} are more than the float32 of a field holds"
        raise InputError(f"{msg}; check the transform")


def _refuse_input(out: str, sources: Sequence[str]) -> None:
    """Refuse to write over, or into, what the result is made from, or into another store."""
    for source in sources:
        pair = (Path(name.removeprefix("file://")).resolve() for name in (named(source).file, out))
        if len(set(pair)) == 1:
            msg = f"{out} is both read and to be written; write the result elsewhere"
            raise UsageError(msg)
    refuse_inside_store(out)


def _interpolation(image: xr.DataArray, name: str, asked: Interpolation | None) -> Interpolation:
    if kind_of(image) != "labels":
        return asked or "linear"
    if asked not in (None, "nearest"):
        msg = f"{name} is a label map, which {asked} interpolation would mix; leave --interpolation out, or nearest"
        raise UsageError(msg)
    return "nearest"


def _header(moving: str, transforms: Sequence[str], fixed: Grid, interpolation: str) -> str:
    """Return what stands for all that a warped store is made from."""
    facts = {"moving": identity(moving), "interpolation": interpolation}
    return header(facts | _places(transforms, fixed))


def _places(transforms: Sequence[str], fixed: Grid) -> dict[str, Any]:
    """Return what stands for transforms on a grid."""
    return {
        "transforms": [_transform_identity(source) for source in transforms],
        "fixed": [fixed.shape, fixed.spacing, fixed.origin, fixed.direction],
    }


def _transform_identity(source: str) -> Any:  # noqa: ANN401 - anything JSON holds
    meant = named(source)
    path = Path(meant.file)
    parts = [path]
    if (
        path.suffix == ".txt"
        and path.is_file()
        and elastix.is_elastix(path.read_text(encoding="utf-8", errors="replace"))
    ):
        parts = elastix.files(path)
    stated = [] if meant.convention is CONTRACT else [meant.convention.name]
    return [meant.inverse, [identity(part) for part in parts], *stated]


def _is_done(out: str, made_from: str, *, overwrite: bool) -> bool:
    """Tell whether a finished store made from the same is there; refuse one made from something else."""
    try:
        root = read_root(local_path(out))
    except StoreError:
        return False
    if (root.get("fidopt") or {}).get("header") == made_from:
        return True
    if overwrite:
        return False
    msg = f"{out} is there and was made from something else; give --overwrite to replace it"
    raise OutputExistsError(msg)


def _field_is_there(out: str, field: xr.DataArray) -> bool:
    """Tell whether what is there is the field; refuse anything else, a store that was not finished excepted."""
    try:
        found = open_image(out) if is_store(out) else read_image(out)
        differs = differences(found, field, tolerance=0 if is_store(out) else 1e-6)
    except StoreError:
        return False
    except InputError as error:
        differs = [str(error)]
    if differs:
        msg = f"{out} is there and is another field ({differs[0]}); give --overwrite to replace it"
        raise OutputExistsError(msg)
    return True
