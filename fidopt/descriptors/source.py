"""The ``source`` of dataset.json: where the provider's files come from, and what they must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from fidopt.descriptors.base import Descriptor, Digest, Name, Text
from fidopt.descriptors.contradictions import check


def _inside(value: object) -> object:
    """Refuse a file name that leads out of the folder it is looked for in."""
    if isinstance(value, str) and (not value or "\\" in value or {"", ".", ".."} & set(value.split("/"))):
        msg = "must be a path inside its folder, its parts separated by '/'"
        raise ValueError(msg)
    return value


_PART = r"(?!\.{1,2}(?:/|$))[^/\\]+"
RelativePath = Annotated[
    str, BeforeValidator(_inside), WithJsonSchema({"type": "string", "pattern": f"^{_PART}(?:/{_PART})*$"})
]


class Package(Descriptor):
    """A file that an installed Python distribution carries.

    Parameters
    ----------
    distribution
        The name to install it by.
    path
        Where it lies, from the folder that holds the distribution's top package: ``skimage/data/retina.jpg``.
    """

    distribution: Name
    path: RelativePath


class Source(Descriptor):
    """Where the provider's files come from and what they must be.

    Parameters
    ----------
    url
        The page a person gets them from.
    files
        Path in the archive folder -> digest.
    packages
        Those of ``files`` that an installed Python distribution carries, used where the archive folder has none.
    """

    url: Text | None = None
    files: dict[RelativePath, Digest] = Field(default_factory=dict)
    packages: dict[RelativePath, Package] = Field(default_factory=dict)

    @check
    def _packages_are_files(self) -> Iterator[str]:
        for name in sorted(set(self.packages) - set(self.files)):
            yield f"packages.{name}: is not one of source.files, where its checksum stands"
