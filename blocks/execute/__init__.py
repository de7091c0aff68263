"""The one place that computes: graphs are made elsewhere, and run here, on threads or on a cluster."""

from blocks.execute.computing import compute
from blocks.execute.counting import Progress
from blocks.execute.rewriting import rewrite_levels
from blocks.execute.running import run_shards
from blocks.execute.targets import Outcome
from blocks.execute.writing import write_image
from blocks.graphs.store import DiskFullError

__all__ = ["DiskFullError", "Outcome", "Progress", "compute", "rewrite_levels", "run_shards", "write_image"]
