"""``alignment/<case>.json``: how a case's transform was found."""

from __future__ import annotations

from pathlib import Path

from fidopt.descriptors.alignment import Mode
from fidopt.descriptors.base import Descriptor, Digest, File, Text


class Run(Descriptor):
    """What came of one start.

    Parameters
    ----------
    start
        What it puts together.
    translation
        World vector (x, y[, z]) it begins with.
    overlap, information, score
        Dice of the bodies, normalised mutual information over their common part, and the first times what the second
        has above 1; of the transform that was found. None where elastix failed.
    error
        What elastix said where it failed.
    """

    start: Text
    translation: tuple[float, ...]
    overlap: float | None = None
    information: float | None = None
    score: float | None = None
    error: Text | None = None


class AlignmentRecord(File):
    """Written beside a transform.

    Parameters
    ----------
    mode
        How the pair was aligned.
    made_from
        Digest of all that the transform depends on; another one means that it is out of date.
    elastix
        Version of elastix, and of the package it came in; None where it was not used.
    runs
        What was tried, in order.
    winner
        The start whose transform was kept.
    matrix, offset
        T: y = matrix x + offset, row-major, from fixed to moving world points.
    """

    mode: Mode
    made_from: Digest
    elastix: Text | None
    runs: tuple[Run, ...]
    winner: Text
    matrix: tuple[float, ...]
    offset: tuple[float, ...]


def record_beside(transform: Path) -> Path:
    """Return where the record of a stored transform lies."""
    return transform.with_suffix(".json")
