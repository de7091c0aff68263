"""The out-of-core engine: images as xarray over sharded OME-Zarr stores, computed block by block.

Every name below is loaded when it is first asked for, so that ``import blocks`` costs nothing and a worker that only
needs ``blocks.grid`` imports neither Dask nor Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blocks.execute import compute, write_image
    from blocks.graphs.overlap import overlap
    from blocks.graphs.pyramid import pyramid
    from blocks.graphs.warp import displacement, warp
    from blocks.grid import Grid
    from blocks.image import grid_of, image_of, open_image
    from blocks.region import Region
    from blocks.transforms import Affine, BSpline, Composite, DisplacementField

__all__ = [
    "Affine",
    "BSpline",
    "Composite",
    "DisplacementField",
    "Grid",
    "Region",
    "compute",
    "displacement",
    "grid_of",
    "image_of",
    "open_image",
    "overlap",
    "pyramid",
    "warp",
    "write_image",
]

_MODULES = {
    "Affine": "blocks.transforms",
    "BSpline": "blocks.transforms",
    "Composite": "blocks.transforms",
    "DisplacementField": "blocks.transforms",
    "Grid": "blocks.grid",
    "Region": "blocks.region",
    "compute": "blocks.execute",
    "displacement": "blocks.graphs.warp",
    "grid_of": "blocks.image",
    "image_of": "blocks.image",
    "open_image": "blocks.image",
    "overlap": "blocks.graphs.overlap",
    "pyramid": "blocks.graphs.pyramid",
    "warp": "blocks.graphs.warp",
    "write_image": "blocks.execute",
}


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first used."""
    if name not in _MODULES:
        msg = f"module 'blocks' has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)
