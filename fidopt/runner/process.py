"""One command in a process group, a session and a folder of its own, with all its processes ended when it ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from fidopt.runner import supervisor

#: Names the run in the environment of every process it starts.
RUN_VARIABLE = "FIDOPT_RUN"
#: The most a log may hold, and the most of its end that a row keeps.
LOG_BYTES, TAIL_CHARACTERS = 1 << 24, 2000
#: The longest that processes a run left behind are waited for.
STRAYS_S = 0.8
#: Variables that would lead a method's own Python to fidopt's, or that say where the caller stood.
_NOT_PASSED = ("PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "OLDPWD", "PWD", "__PYVENV")
#: What common libraries read their number of threads from.
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS",
)


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Parameters
    ----------
    returncode
        Its exit code, minus the number of the signal that ended it.
    timed_out
        Whether its time ran out; it and all its processes were then killed.
    time_s, peak_ram_mib, peak_gpu_mib
        Wall time until it ended, and the most memory all its processes held at once, here and on the GPU it was given;
        None where it was given none, or its driver tells nothing of them.
    log
        The end of what it printed.
    """

    returncode: int
    timed_out: bool
    time_s: float
    peak_ram_mib: int
    log: str
    peak_gpu_mib: int | None = None


class CannotStartError(OSError):
    """The command could not be started at all."""


def environment(variables: Mapping[str, str], *, threads: int | None, hidden: Sequence[Path] = ()) -> dict[str, str]:
    """Return the environment of a command: the caller's, without what concerns fidopt alone, and ``variables``.

    Parameters
    ----------
    variables
        What the command is told.
    threads
        How many threads the libraries it uses may start; None leaves that to them.
    hidden
        Folders it is not told of: every variable but PATH that mentions one is left out.
    """
    secret = [str(path.resolve()) for path in hidden]
    folders = ("SHARE", "CORPUS", "ARCHIVES", "RESULTS", "ENVS", "PRIVATE", "MACHINE")
    own = {f"FIDOPT_{name}" for name in folders}
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_PASSED)
        and name not in own
        and (name == "PATH" or not any(folder in value for folder in secret))
    }
    kept |= dict.fromkeys(_THREADS, str(threads)) if threads else {}
    return {**kept, **variables}


def supervise(
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    folder: Path,
    log: Path,
    timeout_s: float,
    gpu: str | None = None,
) -> Outcome:
    """Run a command until it ends or its time is up; when this returns, nothing it started is alive.

    Parameters
    ----------
    command
        The program and its arguments.
    variables
        Its whole environment, as :func:`environment` makes it.
    folder
        Its working folder.
    log
        Where what it prints goes, bounded to the last part of it where it prints a lot.
    gpu
        The index or the UUID of the GPU whose memory is watched.

    Raises
    ------
    CannotStartError
        When the program cannot be started.
    """
    run = uuid.uuid4().hex
    order = {
        "command": [str(word) for word in command],
        "log": str(log),
        "log_bytes": LOG_BYTES,
        "timeout_s": timeout_s,
        "parent": os.getpid(),
        "gpu": gpu,
    }
    answer = _ordered(order, {**variables, RUN_VARIABLE: run}, folder)
    end_strays(run)
    if "failed" in answer:
        raise CannotStartError(str(answer["failed"]))
    return Outcome(
        returncode=answer["returncode"],
        timed_out=answer["timed_out"],
        time_s=answer["time_s"],
        peak_ram_mib=answer["peak_ram_mib"],
        peak_gpu_mib=answer["peak_gpu_mib"],
        log=tail(log),
    )


def end_strays(run: str) -> None:
    """Kill whatever still carries a run's name in its environment, wherever it went, and see it gone.

    Looked for until nothing is found: a killed process is there a moment longer, and may have started another.
    """
    until = time.monotonic() + STRAYS_S
    while (found := _strays(f"{RUN_VARIABLE}={run}".encode())) and time.monotonic() < until:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.005)


def _strays(mark: bytes) -> list[psutil.Process]:
    """Return the processes with this entry in their environment; that of a dead one is empty."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if mark in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                found.append(process)
    return found


def tail(log: Path) -> str:
    """Return the end of a log as text, whole lines, for a row or a message."""
    if not log.is_file():
        return ""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4 * TAIL_CHARACTERS))
        text = stream.read().decode("utf-8", errors="replace").replace("\0", "").replace("\r", "\n")
    kept = text[-TAIL_CHARACTERS:]
    if len(kept) < len(text) and "\n" in kept:
        kept = kept.split("\n", 1)[1]
    return kept.strip()


def _ordered(order: Mapping[str, object], variables: Mapping[str, str], folder: Path) -> dict[str, Any]:
    watch = subprocess.Popen(
        [sys.executable, "-I", str(Path(supervisor.__file__))],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        said, complained = watch.communicate(json.dumps(order))
    except BaseException:
        # Interrupted: the supervisor ends what it runs, then itself.
        watch.terminate()
        watch.wait()
        raise
    try:
        return dict(json.loads(said))
    except ValueError:
        return {"failed": f"its supervisor ended with {watch.returncode}: {complained.strip()[-200:]}"}
