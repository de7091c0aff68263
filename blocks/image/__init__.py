"""Images as xarray over OME-Zarr 0.5 stores: the view, its geometry, and where its voxels are read from."""

from blocks.image.opening import Level, levels_of, open_image
from blocks.image.source import ArraySource, Source, StoreSource, source_of
from blocks.image.units import canonical_unit, ngff_unit
from blocks.image.view import Kind, channels_of, grid_of, image_of, kind_of, spatial_dims, unit_of

__all__ = [
    "ArraySource",
    "Kind",
    "Level",
    "Source",
    "StoreSource",
    "canonical_unit",
    "channels_of",
    "grid_of",
    "image_of",
    "kind_of",
    "levels_of",
    "ngff_unit",
    "open_image",
    "source_of",
    "spatial_dims",
    "unit_of",
]
