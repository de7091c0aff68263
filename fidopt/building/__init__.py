"""From a provider's files to the cases of the corpus, and whether they are still what they were.

``prepare.py`` (run by :mod:`fidopt.building.prepared`) -> images and landmarks in ordinary formats -> checked, moved by
the known deformation where the dataset has one (:mod:`fidopt.building.contents`, :mod:`fidopt.building.deformation`)
-> stores, read back -> checksums (:mod:`fidopt.building.records`).

Each name is loaded when it is first used: verifying a corpus reads files, and needs neither Dask nor Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fidopt.building.archives import unpack
    from fidopt.building.assembly import Built, build
    from fidopt.building.records import record, recorded
    from fidopt.building.verification import Difference, built_cases, verify

__all__ = ["Built", "Difference", "build", "built_cases", "record", "recorded", "unpack", "verify"]

_MODULES = {
    "Built": "assembly",
    "Difference": "verification",
    "build": "assembly",
    "built_cases": "verification",
    "record": "records",
    "recorded": "records",
    "unpack": "archives",
    "verify": "verification",
}


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first used."""
    if name not in _MODULES:
        msg = f"module 'fidopt.building' has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(import_module(f"fidopt.building.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
