"""``fidopt pyramid``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fidopt.commands.options import Compute, Json
from fidopt.commands.output import progress, show, show_json, taken_up


def pyramid(
    store: str,
    /,
    *,
    labels: Annotated[bool, Parameter(negative=())] = False,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Write a store's coarser levels again from its level 0.

    Each level halves the axes of the one before, rounded up, down to one chunk: the mean of a box of voxels, or of a
    label map the most frequent label. A store that says it holds labels needs no `--labels`.

    Example: `fidopt pyramid slide.ome.zarr`

    Parameters
    ----------
    store
        an OME-Zarr 0.5 store on this file system
    labels
        it holds labels, which is recorded
    """
    from blocks.execute import rewrite_levels
    from blocks.image import levels_of
    from blocks.image.opening import open_store
    from blocks.storage.objects import is_url, refuse_read_only
    from fidopt.images.identity import header, identity
    from fidopt.images.lost import refuse_lost
    from fidopt.images.readers import refusing

    with (compute or Compute()).place() as place, refusing(store), progress(f"levels of {store}") as report:
        if is_url(store):
            refuse_read_only(store)
        finest = open_store(store).arrays[0].path
        refuse_lost(store)
        outcome = rewrite_levels(
            store,
            kind="labels" if labels else None,
            made_from=header({"level": identity(finest)}),
            progress=report,
            client=place.client,
        )
    taken_up(outcome)
    levels = [list(level.shape) for level in levels_of(store)]
    if json:
        show_json({"path": store, "levels": levels})
    else:
        show(f"{store}: levels of " + ", ".join(" x ".join(map(str, shape)) for shape in levels))
    return 0
