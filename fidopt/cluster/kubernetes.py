"""The description of a cluster that the Dask operator of Kubernetes makes."""

from __future__ import annotations

from typing import Any

from fidopt.cluster.budget import Plan
from fidopt.descriptors.deployment import Kubernetes

#: Memory of a pod beyond its worker's limit: the process that watches it, and what the kernel counts for files.
_BESIDE = 512 << 20


def spec(kubernetes: Kubernetes, plan: Plan) -> dict[str, Any]:
    """Return the DaskCluster resource of a deploy file.

    Parameters
    ----------
    kubernetes
        The deploy file.
    plan
        Workers, and the threads and the memory of each.
    """
    from dask_kubernetes.operator import make_cluster_spec

    worker = ["dask", "worker", "--nthreads", str(plan.threads), "--memory-limit", str(plan.memory)]
    made: dict[str, Any] = make_cluster_spec(
        name=kubernetes.name, image=kubernetes.image, n_workers=plan.workers, worker_command=worker
    )
    pod = made["spec"]["worker"]["spec"]
    share = {"cpu": str(plan.threads), "memory": str(plan.memory + _BESIDE)}
    pod["containers"][0]["resources"] = {"requests": share, "limits": share}
    if kubernetes.claim is not None:
        pod["volumes"] = [{"name": "stores", "persistentVolumeClaim": {"claimName": kubernetes.claim}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "stores", "mountPath": kubernetes.mount}]
    return made
