"""Options that several commands share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidopt import resources
from fidopt.commands.output import say

if TYPE_CHECKING:
    from fidopt.cluster import Place

#: ``--json``: one JSON document on stdout and nothing else there.
Json = Annotated[bool, Parameter(name="--json", negative=(), help="print one JSON document on stdout")]
#: ``--overwrite``: replace an output made from something else.
Overwrite = Annotated[bool, Parameter(negative=(), help="replace an output that was made from something else")]
#: ``--memory``: the budget of one worker.
Memory = Annotated[
    str | None, Parameter(allow_leading_hyphen=True, help="the most memory that a worker may use, such as 2GiB")
]
#: ``--share`` of commands that use no other folder.
Share = Annotated[
    Path | None,
    Parameter(
        help="your own folder of datasets/, methods/ and evaluation/, searched before the packaged one [FIDOPT_SHARE]"
    ),
]
#: ``--results`` of commands that use no other folder.
Results = Annotated[Path | None, Parameter(help="where rows lie [FIDOPT_RESULTS, ./results]")]


@Parameter(name="*")
@dataclass(frozen=True)
class Compute:
    """Where it computes.

    Parameters
    ----------
    cluster
        a Dask scheduler's address, tcp://HOST:PORT, or a deploy file, whose cluster is started for as long as this
        runs; by default this machine's cores
    memory
        the most memory that a worker may use, such as 2GiB
    dashboard
        say where the dashboard is; without --cluster, start worker processes on this machine
    """

    cluster: str | None = None
    # A hyphen is let through so that a negative size is refused as one.
    memory: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    dashboard: Annotated[bool, Parameter(negative=())] = False

    def place(self) -> AbstractContextManager[Place]:
        """Return a context with the cluster these options name, and with what one task may hold."""
        from fidopt.cluster import computing

        return computing(self.cluster, memory=self.memory, dashboard=self.dashboard, say=say)


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where things lie.

    Parameters
    ----------
    share
        your own folder of datasets/, methods/ and evaluation/, searched before the packaged one [FIDOPT_SHARE]
    corpus
        where built cases lie [FIDOPT_CORPUS, ./corpus]
    archives
        where providers' files lie [FIDOPT_ARCHIVES, ./archives]
    results
        where rows lie [FIDOPT_RESULTS, ./results]
    """

    share: Path | None = None
    corpus: Path | None = None
    archives: Path | None = None
    results: Path | None = None

    def roots(self) -> resources.Roots:
        """Return the folders these options and the FIDOPT_* variables name."""
        return resources.roots(share=self.share, corpus=self.corpus, archives=self.archives, results=self.results)
