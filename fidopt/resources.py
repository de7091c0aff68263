"""Where things lie on disk, and the only reader of FIDOPT_* variables."""

from __future__ import annotations

import difflib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from fidopt.errors import UsageError

#: Folders of descriptors, beside ``fidopt/`` in a checkout and under ``fidopt/_share`` in an installed package.
KINDS = ("datasets", "methods", "evaluation", "deploy")


def packaged_share() -> Path:
    """Return the folder of the descriptors that come with fidopt: the checkout's, else the installed package's."""
    package = Path(__file__).resolve().parent
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "datasets").is_dir():
        return checkout
    return package / "_share"


@dataclass(frozen=True)
class Roots:
    """The folders one invocation works in.

    Parameters
    ----------
    share
        Folders of descriptors in the order they are searched; the packaged one is last.
    corpus, archives, results
        Built cases; providers' archives; rows.
    environments
        The methods' own environments.
    private
        Seeds of known deformations that were drawn on this machine, of datasets whose archive keeps none.
    """

    share: tuple[Path, ...]
    corpus: Path
    archives: Path
    results: Path
    environments: Path
    private: Path = field(default_factory=lambda: _path("FIDOPT_PRIVATE", _own_data() / "private"))

    def find(self, kind: str, name: str) -> Path:
        """Return the folder or file ``<share>/<kind>/<name>`` of the first share that has it.

        Raises
        ------
        UsageError
            When no share has it; the message lists what there is.
        """
        for root in self.share:
            candidate = root / kind / name
            if name == candidate.name != ".." and candidate.exists():
                return candidate
        known = sorted({p.name for p in self.each(kind)})
        looked = ", ".join(str(root / kind) for root in self.share)
        spelled = {one.lower(): one for one in known}
        close = difflib.get_close_matches(name.lower(), spelled, n=1)
        meant = f"; did you mean {spelled[close[0]]!r}?" if close else ""
        msg = f"{kind}: there is no {name!r} in {looked}{meant}; there are: {', '.join(known) or 'none'}"
        raise UsageError(msg)

    def each(self, kind: str, pattern: str = "*/") -> Iterator[Path]:
        """Yield every folder of a kind, or its files of a pattern, a name once, the first share's first."""
        seen: set[str] = set()
        for root in self.share:
            for path in sorted((root / kind).glob(pattern)):
                if path.name not in seen and not path.name.startswith((".", "_")):
                    seen.add(path.name)
                    yield path


def roots(
    *,
    share: Path | None = None,
    corpus: Path | None = None,
    archives: Path | None = None,
    results: Path | None = None,
) -> Roots:
    """Return the folders to work in: an option, else its FIDOPT_* variable, else the default."""
    own = share or _path("FIDOPT_SHARE", None)
    if own is not None and not own.is_dir():
        msg = f"--share (or FIDOPT_SHARE) names {own}, which is not a folder"
        raise UsageError(msg)
    packaged = packaged_share()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fidopt" / "envs"
    return Roots(
        share=(packaged,) if own is None or own.resolve() == packaged.resolve() else (own, packaged),
        corpus=corpus or _path("FIDOPT_CORPUS", Path("corpus")),
        archives=archives or _path("FIDOPT_ARCHIVES", Path("archives")),
        results=results or _path("FIDOPT_RESULTS", Path("results")),
        environments=_path("FIDOPT_ENVS", cache),
    )


def _own_data() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "fidopt"


def machine_name() -> str | None:
    """Return the machine named by FIDOPT_MACHINE, or None."""
    return os.environ.get("FIDOPT_MACHINE") or None


def hostname() -> str:
    """Return this host's name, as machine.json lists it."""
    return socket.gethostname()


@overload
def _path(variable: str, default: Path) -> Path: ...


@overload
def _path(variable: str, default: None) -> Path | None: ...


def _path(variable: str, default: Path | None) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else default
