"""Where a graph runs: this process's threads, a cluster that is started for it, or one that is already there."""

from fidopt.cluster.connection import Place, Running, computing, connect, deployment, run

__all__ = ["Place", "Running", "computing", "connect", "deployment", "run"]
