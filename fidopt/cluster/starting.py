"""Clusters of each kind started from its deploy file; one clear line for whatever is missing."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fidopt.cluster.budget import plan
from fidopt.cluster.kubernetes import spec
from fidopt.descriptors.deployment import Deployment, Kubernetes, Local, Slurm, Ssh, Started, Tls
from fidopt.errors import MissingError, UsageError

if TYPE_CHECKING:
    from distributed.security import Security

#: Loopback: a dashboard shows the data's names and the machine's processes, and is nobody else's business.
HOST = "127.0.0.1"
#: The process that watches a worker, which SLURM counts as the job's memory too; measured: 190 MiB.
_NANNY = 256 << 20


@contextmanager
def start(started: Started) -> Iterator[Any]:
    """Yield a running ``distributed`` cluster of the kind a deploy file describes, and end it.

    Raises
    ------
    MissingError
        When a package, a program or a configuration is not there.
    UsageError
        When a machine or a queue refuses.
    """
    nannies = logging.getLogger("distributed.nanny")
    level = nannies.level
    try:
        with _KINDS[type(started)](started) as cluster:
            try:
                yield cluster
            finally:
                # The work is over: a worker that is slow to go, on a busy machine, is nothing to warn of.
                nannies.setLevel(logging.ERROR)
    finally:
        nannies.setLevel(level)


def security(deployment: Deployment) -> Security | None:
    """Return the certificates of a cluster as Dask takes them; None where nothing is encrypted."""
    from distributed.security import Security

    if deployment.tls is None:
        return None
    files = {name: str(Path(path).expanduser().resolve()) for name, path in deployment.tls.model_dump().items()}
    roles = ("client", "scheduler", "worker")
    shown = {f"tls_{role}_{part}": files[part] for role in roles for part in ("cert", "key")}
    return Security(require_encryption=True, tls_ca_file=files["ca"], **shown)


def has_dashboard() -> bool:
    """Whether bokeh is there, which draws the dashboard; distributed leaves it out in silence."""
    return importlib.util.find_spec("bokeh") is not None


def require(package: str, what: str, extra: str = "cluster") -> None:
    """Refuse to go on without a package.

    Raises
    ------
    MissingError
        With the command that installs it.
    """
    if importlib.util.find_spec(package) is None:
        msg = f"{what} needs {package.replace('_', '-')}: pip install 'fidopt[{extra}]'"
        raise MissingError(msg)


@contextmanager
def _local(local: Local) -> Iterator[Any]:
    from distributed import LocalCluster

    workers = plan(local)
    with _deaf_children():
        cluster = LocalCluster(
            n_workers=workers.workers,
            threads_per_worker=workers.threads,
            host=HOST,
            dashboard_address=local.dashboard,
            memory_limit=workers.memory,
            security=security(local),
        )
    with cluster:
        yield cluster


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Start threads whose child processes never hear Ctrl-C, which a terminal sends to all of them at once.

    It is this process that ends its workers; on their own they would go with a traceback each. A thread hands the
    signals it blocks on to what it starts.
    """
    # Started first, as it would unblock them.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ssh(ssh: Ssh) -> Iterator[Any]:
    require("asyncssh", "a cluster over SSH")
    import dask
    from distributed import SSHCluster

    workers = plan(ssh)
    protocol = "tcp://" if ssh.tls is None else "tls://"
    given = {
        "username": ssh.user,
        "client_keys": None if ssh.key is None else [str(Path(ssh.key).expanduser())],
        "known_hosts": None if ssh.known_hosts is None else str(Path(ssh.known_hosts).expanduser()),
    }
    worker = {"n_workers": workers.workers, "nthreads": workers.threads, "memory_limit": workers.memory}
    # A worker whose scheduler went away while it started does not stay behind.
    alone = {"protocol": protocol, "dashboard": False, "dashboard_address": f"{HOST}:0", "death_timeout": "60s"}
    try:
        # What is configured here is handed to the processes there, the certificates' paths among it.
        with dask.config.set(_tls_config(ssh.tls)):
            cluster = SSHCluster(
                [ssh.scheduler or ssh.hosts[0], *ssh.hosts],
                connect_options={"port": ssh.port} | {key: value for key, value in given.items() if value is not None},
                scheduler_options={"dashboard_address": ssh.dashboard, "protocol": protocol},
                worker_options={**worker, **alone},
                remote_python=ssh.python or sys.executable,
                security=security(ssh),
            )
    except Exception as error:
        # distributed raises bare exceptions here, around those of asyncssh and of the sockets.
        raise UsageError(_ssh_sentence(ssh, error)) from error
    with cluster:
        yield cluster


def _ssh_sentence(ssh: Ssh, error: BaseException) -> str:
    """Say which of the usual things is wrong."""
    while error.__cause__ is not None:
        error = error.__cause__
    hosts = ", ".join(dict.fromkeys([ssh.scheduler or ssh.hosts[0], *ssh.hosts]))
    login = f"ssh -p {ssh.port} {f'{ssh.user}@' if ssh.user else ''}{ssh.hosts[0]} true"
    if "failed to start" in str(error):
        cure = f"`{ssh.python or sys.executable}` there must be an interpreter that has fidopt; name it in `python:`"
    else:
        cure = f"`{login}` must work from here without a password, and say so for every host"
    return f"no Dask over SSH on {hosts}: {' '.join(str(error).split()) or type(error).__name__}; {cure}"


def _tls_config(tls: Tls | None) -> dict[str, Any]:
    """Return certificates as Dask's configuration has them."""
    if tls is None:
        return {}
    place = "distributed.comm.tls"
    files = {name: str(Path(path).expanduser().resolve()) for name, path in tls.model_dump().items()}
    shown = {
        f"{place}.{role}.{part}": files[part] for role in ("client", "scheduler", "worker") for part in ("cert", "key")
    }
    return {"distributed.comm.require-encryption": True, f"{place}.ca-file": files["ca"], **shown}


@contextmanager
def _slurm(slurm: Slurm) -> Iterator[Any]:
    require("dask_jobqueue", "a cluster of SLURM's jobs")
    _require_slurm()
    from dask_jobqueue import SLURMCluster

    workers = plan(slurm)
    scheduler: dict[str, Any] = {"dashboard_address": slurm.dashboard}
    with SLURMCluster(
        cores=workers.threads,
        processes=1,
        memory=f"{workers.memory}B",
        job_mem=f"{-(-(workers.memory + _NANNY) >> 20)}M",
        walltime=slurm.walltime,
        queue=slurm.partition,
        account=slurm.account,
        interface=slurm.interface,
        job_extra_directives=list(slurm.directives),
        job_script_prologue=list(slurm.prologue),
        worker_extra_args=["--no-dashboard", "--dashboard-address", f"{HOST}:0"],
        python=slurm.python or sys.executable,
        log_directory=slurm.logs,
        local_directory=slurm.scratch,
        scheduler_options=scheduler,
        security=security(slurm),
    ) as cluster:
        _require_taken(cluster.job_script())
        cluster.scale(jobs=workers.workers)
        yield cluster


def _require_taken(script: str) -> None:
    """Ask SLURM whether it would take a job: whoever waits for a worker of one that was refused waits for ever."""
    answer = subprocess.run(
        ["sbatch", "--test-only"], input=script, capture_output=True, text=True, timeout=120, check=False
    )
    if answer.returncode:
        said = "; ".join(line.removeprefix("sbatch: error: ") for line in answer.stderr.splitlines())
        msg = f"SLURM refuses the jobs: {said or 'sbatch fails'}; change the deploy file"
        raise UsageError(msg)


def _require_slurm() -> None:
    """Refuse a machine that cannot submit jobs."""
    if shutil.which("sbatch") is None:
        msg = "there is no sbatch here: run this on a machine that submits SLURM's jobs, its login node"
        raise MissingError(msg)
    answer = subprocess.run(["sinfo", "--noheader"], capture_output=True, text=True, timeout=120, check=False)
    if answer.returncode:
        said = " ".join(answer.stderr.split()) or "sinfo fails"
        msg = f"SLURM does not answer: {said}; `sinfo` must work here first"
        raise UsageError(msg)


@contextmanager
def _kubernetes(kubernetes: Kubernetes) -> Iterator[Any]:
    require("dask_kubernetes", "a cluster on Kubernetes", extra="kubernetes")
    place = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if not place.is_file() and "KUBERNETES_SERVICE_HOST" not in os.environ:
        msg = f"there is no kubeconfig at {place}: `kubectl get pods` must work here first; KUBECONFIG names another"
        raise MissingError(msg)
    from dask_kubernetes.operator import KubeCluster

    with KubeCluster(
        custom_cluster_spec=spec(kubernetes, plan(kubernetes)), namespace=kubernetes.namespace, quiet=True
    ) as cluster:
        yield cluster


_KINDS: dict[type[Started], Callable[[Any], Any]] = {Local: _local, Ssh: _ssh, Slurm: _slurm, Kubernetes: _kubernetes}
