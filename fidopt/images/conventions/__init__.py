"""What each tool means by the transforms and fields it writes: one table, read by `score`, `warp`, `field` and `check`.

:mod:`~fidopt.images.conventions.readings` says in how many ways numbers can be meant,
:mod:`~fidopt.images.conventions.table` which of them each tool means, and
:mod:`~fidopt.images.conventions.files` reads a tool's file by its entry.
"""

from fidopt.images.conventions.readings import FRAMES, UNITS, Floats, Frame, Pair, Reading
from fidopt.images.conventions.table import CONTRACT, CONVENTIONS, Convention, convention, known_as

__all__ = [
    "CONTRACT",
    "CONVENTIONS",
    "FRAMES",
    "UNITS",
    "Convention",
    "Floats",
    "Frame",
    "Pair",
    "Reading",
    "convention",
    "known_as",
]
