"""Whether an image is read from the store that it would be written to."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import xarray as xr
from dask.highlevelgraph import MaterializedLayer

from blocks.image.opening import layer_prefix
from blocks.storage import StoredArray


def refuse_itself(image: xr.DataArray, where: str) -> None:
    """Refuse an image that is read from the place it would be written to."""
    if _reads(image.data, where):
        msg = f"the image is read from {where}, which it would replace; write it elsewhere, or call compute() first"
        raise ValueError(msg)


def _reads(value: object, where: str) -> bool:
    """Whether a lazy array, or something a task is given, reads from a store."""
    if isinstance(value, StoredArray):
        return value.path.startswith(f"{where}/")
    if isinstance(value, tuple | list):
        return any(_reads(item, where) for item in value)
    if is_dataclass(value):
        return any(_reads(getattr(value, item.name), where) for item in fields(value))
    for name, layer in getattr(getattr(value, "dask", None), "layers", {}).items():
        if str(name).startswith(layer_prefix(where)):
            return True
        # What tasks have in common is a value in the graph; only layers that are spelled out hold such.
        if isinstance(layer, MaterializedLayer) and any(
            _reads(getattr(t, "value", None), where) for t in layer.values()
        ):
            return True
    return False
