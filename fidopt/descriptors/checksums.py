"""checksums.json: the digest of every file of every case, as it was built when the dataset was recorded."""

from __future__ import annotations

import hashlib

from fidopt.descriptors.base import Digest, File, Name, Text


class Checksums(File):
    """The files of a dataset's cases and what they hold.

    Parameters
    ----------
    fidopt
        The version that built them.
    cases
        Case -> path in the case's folder -> digest. A store is one entry, the digest of its files.
    """

    fidopt: Text
    cases: dict[Name, dict[str, Digest]]

    @property
    def digest(self) -> str:
        """One digest for all of it: two rows are comparable when they were scored on the same."""
        lines = sorted(
            f"{value}  {case}/{path}\n" for case, files in self.cases.items() for path, value in files.items()
        )
        return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()
