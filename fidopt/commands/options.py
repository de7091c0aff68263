"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fidopt import resources

#: ``--json``: one JSON document on stdout and nothing else there.
Json = Annotated[bool, Parameter(name="--json", negative=(), help="print one JSON document on stdout")]
#: ``--overwrite``: replace an output made from something else.
Overwrite = Annotated[bool, Parameter(negative=(), help="replace an output that was made from something else")]


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
