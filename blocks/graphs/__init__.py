"""A plan and a kernel made lazy over xarray: one task a shard; never computes."""
