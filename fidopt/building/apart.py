"""Why a dataset is ranked apart from the main leaderboards, and the ``checks`` that its descriptor keeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from fidopt import corpus
from fidopt.building.main_board import Finding
from fidopt.building.recipe import is_own, is_public, own_path
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.truth import Checks
from fidopt.errors import UsageError
from fidopt.resources import Roots


def reasons(dataset: Dataset, found: Sequence[Finding], roots: Roots) -> list[str]:
    """Return why a dataset is in no main leaderboard, each reason a clause; none where it may be in one.

    Parameters
    ----------
    dataset
        The dataset.
    found
        Its three checks.
    roots
        Where descriptors and archives lie.
    """
    missed = [one.name for one in found if one.passed is False]
    said = [f"it misses {' and '.join(missed)}"] if missed else []
    terms = corpus.data_terms(dataset.spdx)
    if not terms.ranked:
        said.append(f"its licence {terms.reason}")
    if dataset.registration == "rigid":
        said.append("a rigid object is registered, whose images no alignment brings together: a track of its own")
    if dataset.warp and is_public(dataset, roots):
        said.append("its known deformation is drawn from a seed that everybody can read")
    if dataset.warp and own_path(dataset, roots).is_file() and is_own(dataset, roots):
        said.append("its known deformation is drawn from a seed of this machine's own: nobody else's rows compare")
    said += [
        f"the track {name} that holds it stands apart: {track.apart}"
        for name, track in corpus.tracks(roots).root.items()
        if dataset.name in track.datasets and track.apart is not None
    ]
    return said


def main_tracks(dataset: Dataset, roots: Roots) -> list[str]:
    """Return the names of the main tracks that hold a dataset."""
    return [name for name, track in corpus.tracks(roots).root.items() if track.main and dataset.name in track.datasets]


def checks(dataset: Dataset, found: Sequence[Finding]) -> Checks:
    """Return what a descriptor keeps of the three checks.

    The reason that a person wrote stays where the same checks are missed; else the checks that are missed say why.

    Raises
    ------
    UsageError
        When a check cannot be told yet.
    """
    open_ones = [one for one in found if one.passed is None]
    if open_ones:
        told = "; ".join(f"{one.name}: {one.said}" for one in open_ones)
        msg = f"{dataset.name}: nothing is written before every check can be told ({told})"
        raise UsageError(msg)
    passed = {one.name: bool(one.passed) for one in found}
    missed = "; ".join(one.said for one in found if not one.passed) or None
    before = dataset.checks
    same = before is not None and passed == {name: getattr(before, name) for name in passed}
    reason = before.reason if before is not None and same and before.reason else missed
    return Checks(**passed, reason=reason, date=datetime.now(tz=UTC).date().isoformat())
