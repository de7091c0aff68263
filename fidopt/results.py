"""Rows on disk, and the folders of the machines they were measured on.

``<results>/<machine>/machine.json``, ``<results>/<machine>/<method>/<dataset>.json`` and, beside the rows,
``<dataset>.evaluation.yml`` and ``<dataset>.previews/<case>/``.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from fidopt import __version__, resources
from fidopt.corpus import case_dir, checksums
from fidopt.descriptors.base import Descriptor, load, shown
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.machine import Machine
from fidopt.descriptors.rows import Failure, Row, Rows
from fidopt.errors import UsageError
from fidopt.images.atomic import written_whole
from fidopt.images.digest import digest
from fidopt.resources import Roots

_MACHINE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
#: Takes a message meant for a person.
Say = Callable[[str], None]


def _silent(message: str) -> None:
    del message


@dataclass(frozen=True)
class Line:
    """Where one line of a dataset's leaderboard is kept.

    Parameters
    ----------
    results
        The results root.
    machine, method, dataset
        Names; ``method`` may be ``METHOD@VARIANT``.
    """

    results: Path
    machine: str
    method: str
    dataset: str

    @property
    def rows(self) -> Path:
        """The file of its rows."""
        return self.results / self.machine / self.method / f"{self.dataset}.json"

    @property
    def evaluation(self) -> Path:
        """The evaluation as KonfAI resolved it."""
        return self.rows.with_name(f"{self.dataset}.evaluation.yml")

    def previews(self, case: str) -> Path:
        """Return the folder of a case's pictures."""
        return self.rows.with_name(f"{self.dataset}.previews") / case


def read_rows(path: Path) -> Rows | None:
    """Return a file of rows, or None where there is none.

    Raises
    ------
    DescriptorError
        With every problem of the file.
    """
    return load(Rows, path) if path.is_file() else None


def new_row(
    metrics: Mapping[str, float | None],
    *,
    labels: Mapping[str, Mapping[str, float | None]] | None = None,
    landmarks: Mapping[str, Sequence[float]] | None = None,
    regions: Mapping[str, Mapping[str, float]] | None = None,
    reasons: Mapping[str, str] | None = None,
    time_s: float | None = None,
    peak_ram_mib: int | None = None,
    peak_gpu_mib: int | None = None,
    threads: int | None = None,
    method_version: str | None = None,
    error: Failure | None = None,
) -> Row:
    """Return a row of today, scored by this fidopt; see :class:`fidopt.descriptors.rows.Row`."""
    return Row(
        metrics=dict(metrics),
        labels={metric: dict(values) for metric, values in (labels or {}).items()},
        landmarks={metric: tuple(map(_finite, errors)) for metric, errors in (landmarks or {}).items()},
        regions={what: dict(values) for what, values in (regions or {}).items()},
        reasons=dict(reasons or {}),
        time_s=None if time_s is None else round(time_s, 3),
        peak_ram_mib=peak_ram_mib,
        peak_gpu_mib=peak_gpu_mib,
        threads=threads,
        method_version=method_version,
        fidopt_version=__version__,
        date=datetime.now(tz=UTC).date().isoformat(),
        error=error,
    )


def add_row(line: Line, case: str, row: Row, *, checksums: str, say: Say = _silent) -> None:
    """Write one case's row into its line's file; the rows of the other cases stay, whoever wrote them.

    Rows scored on other files do not compare with this one: such a file is set aside, and a message says so.

    Parameters
    ----------
    line, case, row
        What to write where.
    checksums
        Digest of the files the row was scored on (:func:`corpus_digest`).
    """
    with _alone(line.rows.parent):
        before = _others_aside(line, checksums, say)
        known = dict(before.rows) if before else {}
        known[case] = row
        rows = Rows(method=line.method, dataset=line.dataset, machine=line.machine, checksums=checksums, rows=known)
        with written_whole(line.rows) as part:
            part.write_text(dump_rows(rows), encoding="utf-8")


def set_aside_others(line: Line, *, checksums: str, say: Say = _silent) -> Rows | None:
    """Return a line's rows where they were scored on the same files; else put them aside and return None."""
    if not line.rows.exists():
        return None
    with _alone(line.rows.parent):
        return _others_aside(line, checksums, say)


def _others_aside(line: Line, checksums: str, say: Say) -> Rows | None:
    before = read_rows(line.rows)
    if before is not None:
        _refuse_moved(before, line.rows)
    if before is None or before.checksums == checksums:
        return before
    aside = line.rows.with_name(f"{line.dataset}.{before.checksums.removeprefix('sha256:')[:8]}.json.old")
    line.rows.replace(aside)
    say(f"{line.method} on {line.dataset}: its rows were scored on other files; they are kept in {aside.name}")
    return None


def dump_rows(rows: Rows) -> str:
    """Return a file of rows as fidopt writes it: keys sorted, two spaces of indent, no optional key that is empty."""
    document = rows.model_dump(mode="json", by_alias=True)
    for row in document["rows"].values():
        for key in ("error", "landmarks", "reasons", "regions"):
            if not row[key]:
                del row[key]
    return _json(document)


def lines(roots: Roots, dataset: str) -> Iterator[Rows]:
    """Yield the rows of every machine and method on one dataset, in the order of their names."""
    for path in sorted(roots.results.glob(f"*/*/{dataset}.json")):
        if not (path.parents[1] / "machine.json").is_file():
            continue  # results/ also holds what is not a machine's, such as studies
        rows = load(Rows, path)
        _refuse_moved(rows, path)
        yield rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _refuse_moved(rows: Rows, path: Path) -> None:
    if (rows.machine, rows.method, rows.dataset) != (path.parts[-3], path.parts[-2], path.stem):
        msg = f"{path}: its machine, method and dataset are not those of its folder; move it back or remove it"
        raise UsageError(msg)


def corpus_digest(dataset: Dataset, roots: Roots) -> str:
    """Return one digest of what a dataset's rows are scored on: its built cases as they lie, the others as recorded.

    The images of a large dataset are too long to read again: they count as recorded where they were. What lies beside
    them is read: it differs where a known deformation was drawn from another seed.
    """
    recorded = checksums(dataset.name, roots)
    cases = dict(recorded.cases) if recorded else {}
    for name in dataset.cases:
        folder = case_dir(roots, dataset, name)
        if folder.is_dir():
            noted = cases.get(name, {}) if dataset.large else {}
            cases[name] = dict(noted) | case_digests(folder, stores=not noted)
    kept = {name: cases[name] for name in dataset.cases if name in cases}
    return Checksums(fidopt=__version__, cases=kept).digest


def recorded_digest(dataset: Dataset, roots: Roots) -> str | None:
    """Return the digest of a dataset's test cases as they were recorded, or None where one was not, or not all of it.

    What a machine's own seed draws is not recorded (:mod:`fidopt.building.recipe`).
    """
    recorded = checksums(dataset.name, roots)
    if recorded is None or any(name not in recorded.cases for name in dataset.cases):
        return None
    if dataset.warp and not all("truth/deformation.tfm" in recorded.cases[name] for name in dataset.cases):
        return None
    return Checksums(fidopt=__version__, cases={name: recorded.cases[name] for name in dataset.cases}).digest


def case_digests(folder: Path, *, stores: bool = True) -> dict[str, str]:
    """Return entry -> digest of a built case, a store being one entry; of the other files alone without ``stores``."""
    entries = [*folder.iterdir(), *(folder / "truth").glob("*")]
    wanted = (path for path in entries if (stores and path.name.endswith(".ome.zarr")) or path.is_file())
    return {path.relative_to(folder).as_posix(): digest(path) for path in sorted(wanted)}


def machine_here(roots: Roots, *, name: str | None = None, say: Say = _silent) -> Machine:
    """Return the machine whose folder this host's rows go to, made where no machine.json lists the host.

    Parameters
    ----------
    name
        The folder's name, ahead of FIDOPT_MACHINE and of what the machine.json files list.
    """
    known = {path.parent.name: load(Machine, path) for path in sorted(roots.results.glob("*/machine.json"))}
    host = resources.hostname()
    listing = [machine for machine in known.values() if host in machine.hostnames]
    wanted = name or resources.machine_name()
    if wanted in known:
        return known[wanted]
    if wanted is None and listing:
        return listing[0]
    free = wanted or _free_name(host, known)
    if not re.fullmatch(_MACHINE_NAME, free):
        msg = f"--machine (or FIDOPT_MACHINE) must be a name of letters, digits, '.', '_' and '-', got {free!r}"
        raise UsageError(msg)
    made = describe(free, hostnames=() if listing else (host,))
    path = roots.results / free / "machine.json"
    with written_whole(path) as part:
        part.write_text(_json(_document(made)), encoding="utf-8")
    say(f"the host {host} is new here: {shown(path)} was made to describe it, and its rows go beside that")
    return made


def describe(name: str, *, hostnames: tuple[str, ...]) -> Machine:
    """Return this computer as a machine.json describes it."""
    return Machine.model_validate(
        {
            "name": name,
            "hostnames": hostnames,
            "cpu": _processor(),
            "cores": psutil.cpu_count(logical=False) or os.cpu_count() or 1,
            "ram_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "gpu": _gpu(),
            "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        }
    )


def _free_name(host: str, known: Mapping[str, Machine]) -> str:
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", host).strip(".-_") or "machine"
    taken = [base, *(f"{base}-{n}" for n in range(2, len(known) + 3))]
    return next(candidate for candidate in taken if candidate not in known)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for row in info.read_text(encoding="utf-8").splitlines():
            key, _, value = row.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def _gpu() -> str | None:
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return ", ".join(answer.stdout.split("\n")).strip(", ") or None


def _document(descriptor: Descriptor) -> dict[str, object]:
    return descriptor.model_dump(mode="json", by_alias=True)


def _json(document: object) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a line's folder while its rows are read, merged and written."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
