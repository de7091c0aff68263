"""families.json: the datasets whose development cases choose settings together."""

from __future__ import annotations

from typing import Annotated

from fidopt.descriptors.base import Name, Table
from fidopt.descriptors.listed import SOME

#: The datasets of a family.
Family = Annotated[tuple[Name, ...], SOME]


class Families(Table[Family]):
    """Every family: name -> its datasets."""
