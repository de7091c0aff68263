"""A method's own environment: made by its setup.sh, used again, made anew only when its pin changes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fidopt.descriptors.method import Method
from fidopt.errors import MissingError
from fidopt.resources import Roots, packaged_share
from fidopt.runner.process import CannotStartError, environment, supervise

#: Written into an environment when its setup.sh has ended well: the digest of what it was made from.
PIN_FILE = ".fidopt-pin"
#: The longest a setup.sh may take.
SETUP_TIMEOUT_S = 3600.0


def pin(method: Method, folder: Path) -> str:
    """Return the digest of what a method's environment is made from: its version, setup.sh, its lists of packages.

    Parameters
    ----------
    folder
        The method's folder. Every ``requirements*`` file in it counts, and Python's own version.
    """
    parts = [method.version, f"python {sys.version_info.major}.{sys.version_info.minor}"]
    for path in [folder / "setup.sh", *sorted(folder.glob("requirements*"))]:
        parts += [path.name, path.read_text(encoding="utf-8")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def place(method: Method, roots: Roots) -> Path:
    """Return where a method's environment lies, whether it was made or not."""
    return roots.environments.expanduser().resolve() / method.name


def is_ready(method: Method, folder: Path, roots: Roots) -> bool:
    """Whether a method's environment is there, whole, and made from the same pin."""
    where = place(method, roots)
    interpreter = where / "bin" / "python"
    broken = interpreter.is_symlink() and not interpreter.exists()
    mark = where / PIN_FILE
    return mark.is_file() and not broken and mark.read_text(encoding="utf-8").strip() == pin(method, folder)


def ensure(method: Method, folder: Path, roots: Roots, *, say: Callable[[str], None]) -> Path:
    """Return a method's environment, made now unless it is ready.

    Parameters
    ----------
    folder
        The method's folder, which holds setup.sh.
    say
        Told when one is made.

    Raises
    ------
    MissingError
        When setup.sh fails: its last line says what it needs. Nothing is left that a later run would take as made.
    """
    where = place(method, roots)
    where.parent.mkdir(parents=True, exist_ok=True)
    with _alone(where):
        if not is_ready(method, folder, roots):
            say(f"{method.name}: making its environment in {where}")
            _make(method, folder, where)
    return where


def _make(method: Method, folder: Path, where: Path) -> None:
    shutil.rmtree(where, ignore_errors=True)
    log = where.with_name(f"{method.name}.setup.log")
    log.unlink(missing_ok=True)
    told = {
        "FIDOPT_ENV": str(where),
        "FIDOPT_PYTHON": sys.executable,
        "FIDOPT_UV": _uv() or "",
        "FIDOPT_INSTALL": str(packaged_share() / "methods" / "install.sh"),
    }
    variables = environment(told, threads=None)
    try:
        outcome = supervise(
            ["bash", str(folder.resolve() / "setup.sh")],
            variables=variables,
            folder=where.parent,
            log=log,
            timeout_s=SETUP_TIMEOUT_S,
        )
    except CannotStartError as error:
        msg = f"{method.name}: setup.sh cannot be started: {error}"
        raise MissingError(msg) from error
    if outcome.returncode != 0 or outcome.timed_out or not where.is_dir():
        shutil.rmtree(where, ignore_errors=True)
        last = (outcome.log.splitlines() or ["setup.sh said nothing"])[-1].strip()
        msg = f"{method.name}: its environment could not be made: {last} (all of it: {log})"
        raise MissingError(msg)
    (where / PIN_FILE).write_text(pin(method, folder) + "\n", encoding="utf-8")


def _uv() -> str | None:
    """Return the uv beside this Python, else the one on the path, else None."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("uv")


@contextmanager
def _alone(where: Path) -> Iterator[None]:
    """Keep other processes from making the same environment at the same time."""
    with where.with_name(f".{where.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
