"""The out-of-core engine: images as xarray over sharded OME-Zarr stores, computed block by block."""
