"""deploy/*.yml: where a graph's workers run, how many there are, and what each may use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt, WithJsonSchema

from fidopt.descriptors.base import Descriptor, Name, Text, shown
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.listed import FILLED
from fidopt.descriptors.strict_yaml import parse_yaml, read_yaml
from fidopt.descriptors.wording import pattern
from fidopt.errors import DescriptorError

_UNITS = (
    {"b": 1}
    | {f"{p}b": 1000**n for n, p in enumerate("kmgt", 1)}
    | {f"{p}ib": 1024**n for n, p in enumerate("kmgt", 1)}
)
_SIZE = r"^(?i:([0-9]+(?:\.[0-9]+)?) ?([kmgt]i?b|b))$"
#: An amount of memory.
Size = Annotated[
    str,
    pattern(_SIZE, "a size such as 2GiB or 500MB"),
    # Editors' patterns have no flags.
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?([kKmMgGtT][iI]?)?[bB]$"}),
]
#: Where an HTTP server listens; port 0 is any that is free.
Listen = Annotated[str, pattern(r"^[A-Za-z0-9.-]+:[0-9]{1,5}$", "HOST:PORT such as 127.0.0.1:8787")]
#: A file or folder; a relative one lies in the working folder.
Place = Annotated[str, pattern(r"^\S(?:.*\S)?$", "a path")]

#: The least a worker can do with: the interpreter, the engine's kernels, and a task.
LEAST_MEMORY = 640 << 20


def size_bytes(text: str) -> int | None:
    """Return the bytes of a size such as ``2GiB`` or ``500MB``; None for what is no size."""
    found = re.match(_SIZE, text.strip())
    size = float(found[1]) * _UNITS[found[2].lower()] if found else math.nan
    return int(size) if math.isfinite(size) else None


def _absent(key: str, path: str | None) -> Iterator[str]:
    if path is not None and not Path(path).expanduser().is_file():
        yield f"{key}: there is no file {path}"


class Tls(Descriptor):
    """Certificates by which scheduler, workers and client know each other; every machine has them at the same paths.

    Parameters
    ----------
    ca
        Certificate of the authority that signed the other.
    cert, key
        The certificate that all three of them show, and its key.
    """

    ca: Place
    cert: Place
    key: Place

    @check
    def _ca_is_there(self) -> Iterator[str]:
        yield from _absent("ca", self.ca)

    @check
    def _cert_is_there(self) -> Iterator[str]:
        yield from _absent("cert", self.cert)

    @check
    def _key_is_there(self) -> Iterator[str]:
        yield from _absent("key", self.key)


def _folder(value: object) -> object:
    if not isinstance(value, str):
        return value
    folder = Path(value).expanduser()
    return {"ca": f"{folder}/ca.pem", "cert": f"{folder}/cert.pem", "key": f"{folder}/key.pem"}


class Deployment(Descriptor):
    """What every kind of cluster has.

    Parameters
    ----------
    kind
        Which kind it is.
    tls
        Certificates, or the folder of ``ca.pem``, ``cert.pem`` and ``key.pem``; without, nothing is encrypted.
    """

    kind: Text
    tls: Annotated[Tls | None, BeforeValidator(_folder, json_schema_input_type=Tls | Place | None)] = None


class Started(Deployment):
    """What every cluster has that is started here.

    Parameters
    ----------
    workers
        Worker processes.
    cores, memory
        The most that one of them may use.
    task
        What a task is reckoned with: a worker gets as many threads as its cores and its memory allow.
    dashboard
        Where the scheduler's dashboard listens. Loopback: it shows the data's names and the machine's processes.
    """

    workers: PositiveInt | None = None
    cores: PositiveInt | None = None
    memory: Size | None = None
    task: Size = "256MiB"
    dashboard: Listen = "127.0.0.1:0"

    @check
    def _room_for_a_worker(self) -> Iterator[str]:
        if self.memory is not None and (size_bytes(self.memory) or 0) < LEAST_MEMORY:
            yield f"memory: must be at least {LEAST_MEMORY >> 20}MiB, got {self.memory!r}"


class Local(Started):
    """Worker processes of this machine: by default one a core, and together all of its memory."""

    kind: Literal["local"] = "local"


class Ssh(Started):
    """Worker processes of machines that are reached by SSH without a password, and that see the same files.

    Parameters
    ----------
    hosts
        The machines; each gets ``workers`` of them, one by default.
    scheduler
        The machine of the scheduler; by default the first.
    user, port, key, known_hosts
        As ``ssh`` takes them; by default what it does by itself.
    python
        The interpreter there that has fidopt; by default this one's path.
    """

    kind: Literal["ssh"] = "ssh"
    hosts: Annotated[tuple[Text, ...], FILLED]
    workers: PositiveInt = 1
    scheduler: Text | None = None
    user: Text | None = None
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    key: Place | None = None
    known_hosts: Place | None = None
    python: Place | None = None
    cores: PositiveInt
    memory: Size

    @check
    def _key_is_there(self) -> Iterator[str]:
        yield from _absent("key", self.key)

    @check
    def _known_hosts_are_there(self) -> Iterator[str]:
        yield from _absent("known_hosts", self.known_hosts)


class Slurm(Started):
    """Jobs of SLURM, each of one worker; the scheduler runs here, where jobs are submitted.

    Parameters
    ----------
    walltime
        Longest time of a job, ``HH:MM:SS`` or ``D-HH:MM:SS``.
    partition, account
        What jobs are submitted to and charged to; by default SLURM's own.
    interface
        Network interface that workers reach the scheduler by, such as ``ib0``; by default that of this host's name.
    directives, prologue
        Further ``#SBATCH`` lines, and shell lines before the worker starts.
    python
        The interpreter there that has fidopt; by default this one's path.
    logs, scratch
        Folders of the jobs' outputs and of the workers' own files.
    """

    kind: Literal["slurm"] = "slurm"
    workers: PositiveInt
    cores: PositiveInt
    memory: Size
    walltime: Annotated[str, pattern(r"^(?:[0-9]+-)?[0-9]{1,3}:[0-9]{2}:[0-9]{2}$", "a time such as 02:00:00")]
    partition: Text | None = None
    account: Text | None = None
    interface: Name | None = None
    directives: tuple[Text, ...] = ()
    prologue: tuple[Text, ...] = ()
    python: Place | None = None
    logs: Place | None = None
    scratch: Place | None = None


class Kubernetes(Started):
    """Pods of a Kubernetes cluster in which the Dask operator is installed.

    Parameters
    ----------
    name, namespace
        Of the cluster in Kubernetes.
    image
        The container image, in which fidopt is installed (deploy/Dockerfile).
    claim, mount
        The persistent volume claim that holds the stores, and where workers see it: at the path it has here.
    """

    kind: Literal["kubernetes"] = "kubernetes"
    name: Name = "fidopt"
    namespace: Name = "default"
    image: Text
    workers: PositiveInt
    cores: PositiveInt
    memory: Size
    claim: Name | None = None
    mount: Place = "/data"

    @check
    def _no_tls_between_pods(self) -> Iterator[str]:
        if self.tls is not None:
            yield "tls: is not set up inside Kubernetes, whose pods talk over the cluster's own network; remove it"


class Address(Deployment):
    """A scheduler that is running.

    Parameters
    ----------
    address
        ``tcp://HOST:PORT``, or ``tls://`` with certificates.
    """

    kind: Literal["address"] = "address"
    address: Annotated[
        str, pattern(r"^(?:tcp|tls)://\S+:[0-9]{1,5}$", "a scheduler's address such as tcp://127.0.0.1:8786")
    ]

    @check
    def _tls_as_addressed(self) -> Iterator[str]:
        if (self.tls is not None) != self.address.startswith("tls://"):
            yield f"tls: goes with an address of tls://HOST:PORT and with no other, got {self.address}"


#: Every kind of cluster, by the word that a file has for it.
KINDS: dict[str, type[Deployment]] = {
    "local": Local,
    "ssh": Ssh,
    "slurm": Slurm,
    "kubernetes": Kubernetes,
    "address": Address,
}


def read_deployment(path: Path) -> Deployment:
    """Read a deploy file.

    Parameters
    ----------
    path
        A YAML file that says ``kind:`` and what that kind takes.

    Raises
    ------
    DescriptorError
        With every problem of the file, each as ``FILE: KEY: must be ..., got ...``.
    """
    document, twice = read_yaml(path)
    where = shown(path)
    kind: Any = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        said = "is missing" if "kind" not in document else f"is {kind!r}"
        raise DescriptorError([*twice, f"{where}: kind: {said}; must be one of {', '.join(KINDS)}"])
    return parse_yaml(KINDS[kind], document, twice, where=where)
