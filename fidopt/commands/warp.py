"""``fidopt warp``."""

from __future__ import annotations

from typing import Literal

from fidopt.commands.options import Compute, Json, Overwrite
from fidopt.commands.output import progress, show, show_json, taken_up
from fidopt.errors import UsageError


def warp(
    moving: str,
    transform: str,
    /,
    *out: str,
    like: str,
    interpolation: Literal["linear", "nearest", "cubic"] | None = None,
    overwrite: Overwrite = False,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Resample a store through transforms onto another store's grid.

    Every voxel of FIXED's grid reads MOVING at the place the transforms send it to; OUT gets all levels. Several
    transforms are composed, the first applied to the fixed point first. `inverse:FILE` inverts a rigid or affine one.

    Example: `fidopt warp mr.ome.zarr affine.tfm out.ome.zarr --like ct.ome.zarr`

    Parameters
    ----------
    moving
        the moving image, an OME-Zarr store
    transform
        ITK's transform file (.tfm, .txt, .h5, .mat), elastix's parameter file, or a displacement field (NIfTI,
        MetaImage, NRRD, OME-Zarr); `TOOL:FILE` for what another tool wrote and means, as for `fidopt field`
    out
        the store to write, NAME.ome.zarr; further transforms stand before it
    like
        the fixed image
    interpolation
        linear, nearest or cubic; by default linear, nearest for a label map
    """
    from fidopt.images import resampling

    if not out:
        msg = "warp expects MOVING, at least one TRANSFORM, and OUT; see `fidopt warp --help`"
        raise UsageError(msg)
    *further, store = out
    with (compute or Compute()).place() as place, progress(f"warping {moving}") as report:
        done = resampling.warp(
            moving,
            [transform, *further],
            store,
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
        show_json({"path": store, "shape": shape, "dtype": str(done.image.dtype), "state": done.state})
    else:
        show(f"{store}: {' x '.join(map(str, shape))} of {done.image.dtype}, {done.state}")
    return 0
