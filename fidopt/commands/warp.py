"""``fidopt warp``."""

from __future__ import annotations

from typing import Literal

from fidopt.commands.options import Compute, Json, Overwrite
from fidopt.commands.output import progress, show, show_json, taken_up
from fidopt.errors import UsageError


def warp(
    moving: str,
    /,
    *transforms: str,
    like: str,
    interpolation: Literal["linear", "nearest", "cubic"] | None = None,
    overwrite: Overwrite = False,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Resample a store through transforms onto another store's grid.

    Every voxel of FIXED's grid reads MOVING at the place the transforms send it to; OUT gets all levels. Several
    transforms are composed, the first applied to the fixed point first. `inverse:FILE` inverts a rigid or affine one.

    Example: `fidopt warp moving.ome.zarr affine.tfm DVF.nii.gz warped.ome.zarr --like fixed.ome.zarr`

    Parameters
    ----------
    moving
        the moving image, an OME-Zarr store
    transforms
        ITK's transform files (.tfm, .txt, .h5, .mat), elastix's parameter files, displacement fields (NIfTI,
        MetaImage, NRRD, OME-Zarr); and last the store to write
    like
        the fixed image
    interpolation
        linear, nearest or cubic; by default linear, nearest for a label map
    """
    from fidopt.images import resampling

    if len(transforms) < 2:
        msg = "warp expects MOVING, at least one TRANSFORM, and OUT; see `fidopt warp --help`"
        raise UsageError(msg)
    *sources, out = transforms
    with (compute or Compute()).place() as place, progress(f"warping {moving}") as report:
        done = resampling.warp(
            moving,
            sources,
            out,
            like=like,
            interpolation=interpolation,
            memory_bytes=place.task_bytes,
            overwrite=overwrite,
            client=place.client,
            progress=report,
        )
    taken_up(done.outcome)
    shape = [int(n) for n in done.image.shape]
    if json:
        show_json({"path": out, "shape": shape, "dtype": str(done.image.dtype), "state": done.state})
    else:
        show(f"{out}: {' x '.join(map(str, shape))} of {done.image.dtype}, {done.state}")
    return 0
