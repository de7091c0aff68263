"""A client of the cluster that graphs run on, by an address or a deploy file."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fidopt import resources
from fidopt.cluster.budget import checked_memory, task_bytes, threads_here
from fidopt.cluster.starting import HOST, has_dashboard, require, security, start
from fidopt.descriptors.deployment import Address, Deployment, Kubernetes, Local, Slurm, Ssh, Started, read_deployment
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

Say = Callable[[str], None]
#: How long a scheduler is asked for before it is said not to answer.
ANSWER_WITHIN = "10s"
_LOOPBACK = ("127.0.0.1", "localhost")


def _silent(_message: str) -> None:
    pass


@dataclass(frozen=True)
class Running:
    """A cluster that runs.

    Parameters
    ----------
    client
        A client of it.
    address
        The scheduler's.
    dashboard
        Where a browser finds its dashboard; None where bokeh, which draws it, is not installed.
    """

    client: Client
    address: str
    dashboard: str | None


@dataclass(frozen=True)
class Place:
    """Where a command computes.

    Parameters
    ----------
    client
        A cluster's, None for this process's threads.
    task_bytes
        What one task may hold.
    """

    client: Client | None
    task_bytes: int


@contextmanager
def computing(
    cluster: str | None = None, *, memory: str | None = None, dashboard: bool = False, say: Say = _silent
) -> Iterator[Place]:
    """Yield where a command computes, as its options ``--cluster``, ``--memory`` and ``--dashboard`` say.

    Raises
    ------
    UsageError, MissingError, DescriptorError
        As :func:`connect` does, and when the memory is too little for a task.
    """
    with connect(cluster, dashboard=dashboard, memory=memory, say=say) as client:
        if client is not None or memory is None:
            yield Place(client, task_bytes(client, memory, say=say))
            return
        import dask

        # Fewer threads than cores where the memory has no room for as many tasks.
        with dask.config.set(num_workers=threads_here(memory)):
            yield Place(None, task_bytes(None, memory))


@contextmanager
def connect(
    where: str | None = None,
    *,
    dashboard: bool = False,
    workers: int | None = None,
    memory: str | None = None,
    say: Say = _silent,
) -> Iterator[Client | None]:
    """Yield a client of the cluster that graphs are to run on, or None for this process's own threads.

    Parameters
    ----------
    where
        A Dask scheduler's address, or a deploy file, whose cluster is started and ended again.
    dashboard
        Say where the dashboard is; without ``where``, start worker processes on this machine.
    workers
        Worker processes of such a cluster; by default one a core.
    memory
        The most memory of a worker that is started, such as ``2GiB``.
    say
        Told the dashboard's address.

    Raises
    ------
    UsageError
        When the address or the file is none, or nothing answers there.
    DescriptorError
        With all that is wrong with a deploy file.
    MissingError
        When something is not installed here that such a cluster needs.
    """
    if dashboard:
        require("bokeh", "the dashboard")
    if where is None and not dashboard:
        yield None
        return
    wanted = Local(workers=workers) if where is None else deployment(where)
    with run(wanted, memory=memory, say=say) as running:
        if dashboard:
            say(f"dashboard: {running.dashboard}")
        yield running.client


@contextmanager
def run(wanted: Deployment, *, memory: str | None = None, say: Say = _silent) -> Iterator[Running]:
    """Yield a cluster of a deploy file, started for as long as the context lasts unless it runs already.

    Parameters
    ----------
    wanted
        What :func:`deployment` returned.
    memory
        The most memory of a worker, in place of the file's.
    say
        Told where a dashboard listens that is not this machine's.

    Raises
    ------
    UsageError, MissingError
        As for :func:`connect`.
    """
    from distributed import Client

    if isinstance(wanted, Address):
        with _answering(wanted) as client:
            yield Running(client, wanted.address, client.dashboard_link if has_dashboard() else None)
        return
    assert isinstance(wanted, Started)
    if memory is not None:
        checked_memory(memory)
        wanted = wanted.model_copy(update={"memory": memory})
    with start(wanted) as cluster, Client(cluster, set_as_default=False) as client, _silent_client():
        _warn(wanted, cluster.scheduler_address, say)
        yield Running(client, cluster.scheduler_address, _dashboard(wanted, client, say))


def deployment(where: str) -> Deployment:
    """Return what a word of the command line means: an address, a deploy file, or the name of one that comes along.

    Raises
    ------
    UsageError
        When it is none of them; the message lists the names.
    DescriptorError
        With all that is wrong with the file.
    """
    if "://" in where:
        return Address.model_construct(kind="address", address=where)
    path = Path(where).expanduser()
    if path.is_file():
        return read_deployment(path)
    # Docker's compose.yml lies beside them.
    shipped = {f.stem: f for f in resources.roots().each("deploy", "*.yml") if f.name != "compose.yml"}
    name = where.removeprefix("deploy/").removesuffix(".yml")
    if name not in shipped:
        msg = (
            "a cluster is a scheduler's address such as tcp://127.0.0.1:8786, a deploy file, or the name of one "
            f"({', '.join(shipped)}); got {where!r}"
        )
        raise UsageError(msg)
    return read_deployment(shipped[name])


@contextmanager
def _answering(wanted: Address) -> Iterator[Client]:
    from distributed import Client

    certificates = security(wanted)
    try:
        # A client that is refused tries again for half a minute while it is thrown away, and prints why.
        asyncio.run(_ask(wanted.address, certificates))
        client = Client(wanted.address, timeout=ANSWER_WITHIN, set_as_default=False, security=certificates)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        said = " ".join(str(error).split()) or f"nothing was said within {ANSWER_WITHIN}"
        msg = f"no Dask scheduler answers at {wanted.address}: {said}; start one and give the address it prints"
        raise UsageError(msg) from error
    with client, _silent_client():
        yield client


async def _ask(address: str, certificates: Security | None) -> None:
    """See that a scheduler answers at an address."""
    from dask.utils import parse_timedelta
    from distributed import rpc

    within = parse_timedelta(ANSWER_WITHIN)
    arguments = None if certificates is None else certificates.get_connection_args("client")
    async with rpc(address, timeout=within, connection_args=arguments) as there:
        kind = (await asyncio.wait_for(there.identity(), within))["type"]
    if kind != "Scheduler":
        msg = f"a {kind.lower()} is there"
        raise ValueError(msg)


@contextmanager
def _silent_client() -> Iterator[None]:
    """Leave it to the error that follows to say that a scheduler is gone; the library prints how it found out."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _warn(wanted: Started, address: str, say: Say) -> None:
    """Say what a person at a cluster of several machines should know."""
    if isinstance(wanted, Ssh | Slurm) and wanted.tls is None:
        say(f"whoever reaches {address} can run code as you; `tls:` in the deploy file keeps others out")
    if isinstance(wanted, Slurm):
        logs = f", what they print is in {wanted.logs}" if wanted.logs else ""
        say(f"{wanted.workers} jobs are submitted: work begins with the first that runs; squeue shows them{logs}")


def _dashboard(wanted: Started, client: Client, say: Say) -> str | None:
    """Return where a browser finds the dashboard, and say how to get there from here."""
    if not has_dashboard():
        return None
    link: str = client.dashboard_link
    listens = wanted.dashboard.rpartition(":")[0]
    if isinstance(wanted, Kubernetes) or listens not in _LOOPBACK:
        return link
    port = urlsplit(link).port
    host = wanted.scheduler or wanted.hosts[0] if isinstance(wanted, Ssh) else HOST
    if host not in (*_LOOPBACK, socket.gethostname()):
        say(f"the dashboard listens on {host} alone; to see it here: ssh -N -L {port}:{listens}:{port} {host}")
    return f"http://{listens}:{port}/status"
