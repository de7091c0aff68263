"""From a provider's files to the cases of the corpus, and whether they are still what they were.

``prepare.py`` (run by :mod:`fidopt.building.prepared`) -> images and landmarks in ordinary formats -> checked, moved by
the known deformation where the dataset has one (:mod:`fidopt.building.contents`, :mod:`fidopt.building.deformation`)
-> stores, read back -> checksums (:mod:`fidopt.building.records`).
"""

from fidopt.building.assembly import Built, build
from fidopt.building.records import record
from fidopt.building.verification import Difference, built_cases, verify

__all__ = ["Built", "Difference", "build", "built_cases", "record", "verify"]
