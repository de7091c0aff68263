"""``fidopt warp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fidopt.commands.options import Json, Overwrite
from fidopt.commands.output import progress, say, show, show_json
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client


def warp(
    moving: str,
    /,
    *transforms: str,
    like: str,
    interpolation: Literal["linear", "nearest", "cubic"] | None = None,
    memory: str | None = None,
    cluster: str | None = None,
    dashboard: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Overwrite = False,
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
    memory
        the most memory that a worker may use, such as 2GiB
    cluster
        address of a Dask scheduler, tcp://HOST:PORT; by default this machine's cores
    dashboard
        run on a cluster of this machine's cores, and say where its dashboard is
    """
    from fidopt.cluster import connect
    from fidopt.images import resampling

    sources, out = _checked(transforms, cluster)
    with (
        connect(cluster, dashboard=dashboard, memory=memory, say=say) as client,
        progress(f"warping {moving}") as report,
    ):
        done = resampling.warp(
            moving,
            sources,
            out,
            like=like,
            interpolation=interpolation,
            memory_bytes=_task_bytes(memory, client),
            overwrite=overwrite,
            client=client,
            progress=report,
        )
    shape = [int(n) for n in done.image.shape]
    if json:
        show_json({"path": out, "shape": shape, "dtype": str(done.image.dtype), "state": done.state})
    else:
        show(f"{out}: {' x '.join(map(str, shape))} of {done.image.dtype}, {done.state}")
    return 0


def _checked(words: tuple[str, ...], cluster: str | None) -> tuple[list[str], str]:
    """Return the transforms and the output among the words after MOVING."""
    if len(words) < 2:
        msg = "warp expects MOVING, at least one TRANSFORM, and OUT; see `fidopt warp --help`"
        raise UsageError(msg)
    if cluster is not None and cluster.endswith((".yml", ".yaml")):
        msg = f"--cluster {cluster}: a file is not read yet; start the cluster and give its scheduler's address"
        raise UsageError(msg)
    return list(words[:-1]), words[-1]


def _task_bytes(memory: str | None, client: Client | None) -> int:
    """Return what one task may use: a worker's memory, shared among its threads."""
    from dask.system import CPU_COUNT
    from dask.utils import parse_bytes

    from blocks.graphs.warp import MEMORY_BYTES

    if memory is None:
        return MEMORY_BYTES
    msg = f"--memory expects a size such as 2GiB or 500MB, got {memory!r}"
    try:
        budget = int(parse_bytes(memory)) if memory.strip() else 0
    except (ValueError, OverflowError) as error:
        raise UsageError(msg) from error
    if budget <= 0:
        raise UsageError(msg)
    workers: dict[str, Any] = {} if client is None else client.scheduler_info()["workers"]
    threads = max((int(worker["nthreads"]) for worker in workers.values()), default=1) if client else int(CPU_COUNT)
    return budget // threads
