"""``fidopt field``."""

from __future__ import annotations

from fidopt.commands.options import Compute, Json, Overwrite
from fidopt.commands.output import progress, show, show_json, taken_up
from fidopt.errors import UsageError


def field(
    transform: str,
    /,
    *out: str,
    like: str,
    overwrite: Overwrite = False,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Write transforms as one displacement field.

    The fixed point x matches x + u(x) in the moving image; u is float32, along the world's axes (LPS), in FIXED's
    unit. Several transforms are composed, the first applied to the fixed point first: of greedy's own files,
    `greedy:warp.nii.gz greedy:affine.mat`.

    Example: `fidopt field Transform.txt DVF.nii.gz --like fixed.ome.zarr`

    Parameters
    ----------
    transform
        ITK's transform file, elastix's parameter file (with the initial transforms it names), a displacement field;
        `TOOL:FILE` for what another tool wrote and means (ants, convexadam, dipy, greedy, konfai, learn2reg, niftyreg);
        `inverse:FILE` for the inverse of a rigid or affine one
    out
        the field to write: .nii.gz, .mha, .nrrd or .ome.zarr; further transforms stand before it
    like
        the fixed image
    """
    from fidopt.images import resampling

    if not out:
        msg = "field expects at least one TRANSFORM, and OUT; see `fidopt field --help`"
        raise UsageError(msg)
    *further, name = out
    with (compute or Compute()).place() as place, progress(f"writing {name}") as report:
        done = resampling.write_displacement(
            [transform, *further], name, like=like, overwrite=overwrite, client=place.client, progress=report
        )
    taken_up(done.outcome)
    shape = [int(n) for n in done.image.shape]
    if json:
        show_json({"path": name, "shape": shape, "dtype": str(done.image.dtype), "state": done.state})
    else:
        show(f"{name}: a field of {' x '.join(map(str, shape))}, {done.state}")
    return 0
