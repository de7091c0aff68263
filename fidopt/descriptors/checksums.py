"""checksums.json: the digest of every file of every case, as it was built when the dataset was recorded.

checksums_development.json holds the same of the development cases.
"""

from __future__ import annotations

import hashlib

from pydantic import Field

from fidopt.descriptors.base import Descriptor, Digest, File, Name, Text


class BuiltWith(Descriptor):
    """The versions of the libraries that built some cases: others may write other bytes for the same voxels."""

    libraries: dict[Text, Text]
    cases: tuple[Name, ...] = Field(min_length=1)


class Checksums(File):
    """The files of a dataset's cases and what they hold.

    Parameters
    ----------
    fidopt
        The version that built them.
    cases
        Case -> path in the case's folder -> digest. A store is one entry, the digest of its files.
    contents
        Case -> store -> digest of its voxels and type (:mod:`fidopt.images.voxels`), by which other bytes of the same
        image are told from another image, and an image that two datasets hold is found. An image of one value, or of
        few voxels, has none.
    built_with
        What the cases were built by.
    """

    fidopt: Text
    cases: dict[Name, dict[str, Digest]]
    contents: dict[Name, dict[str, Digest]] = Field(default_factory=dict)
    built_with: tuple[BuiltWith, ...] = ()

    @property
    def digest(self) -> str:
        """One digest for all of it: two rows are comparable when they were scored on the same."""
        lines = sorted(
            f"{value}  {case}/{path}\n" for case, files in self.cases.items() for path, value in files.items()
        )
        return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()

    def libraries(self, case: str) -> dict[str, str]:
        """Return the versions that built a case, none where they were not noted."""
        return next((dict(group.libraries) for group in self.built_with if case in group.cases), {})
