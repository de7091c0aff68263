"""``fidopt check-dataset``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidopt.commands.options import Json, Where
from fidopt.commands.output import progress, say, show, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fidopt.building.main_board import Finding
    from fidopt.descriptors.dataset import Dataset
    from fidopt.resources import Roots


def check_dataset(
    dataset: str,
    /,
    *,
    write: Annotated[bool, Parameter(negative=())] = False,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Tell whether a dataset's truth suffices for a main leaderboard, and why it is ranked apart where it does not.

    Three checks, each with its numbers. *people*: they made or verified the truth (graded expert or semi-automatic).
    *dense*: ten test cases, and a median of ten landmark pairs a case or labels whose box covers a third of the body.
    *room*: the unregistered pairs' mean Dice is under 0.8, or their landmark error three times the truth's own (half
    the voxel's diagonal, where that is not known).

    Labels and landmarks are those of the built cases; the unregistered pairs are the rows of `identity`, where there
    are any of the same files, else they are scored now. Before a dataset is built, only what its descriptor says is
    checked. The exit code is 1 when a check is missed or cannot be told yet.

    Example: `fidopt check-dataset lung_ct`; with `--write` once it is built, so that its descriptor keeps the answer.

    Parameters
    ----------
    dataset
        name of a dataset
    write
        put the three answers, the reason and the date into its dataset.json, as checks
    """
    from fidopt import corpus
    from fidopt.building import apart, main_board

    roots = (where or Where()).roots()
    described = corpus.dataset(dataset, roots)
    with progress(f"scoring {dataset} unregistered") as report:
        found = main_board.findings(described, roots, progress=report)
    reasons = apart.reasons(described, found, roots)
    tracks = apart.main_tracks(described, roots)
    passed = all(one.passed for one in found)
    if write:
        _write(described, found, roots)
    if json:
        before = described.checks.model_dump(mode="json") if described.checks else None
        rows = {one.name: {"passed": one.passed, "said": one.said, "figures": dict(one.figures)} for one in found}
        document = {"dataset": dataset, "passed": passed, "checks": rows, "apart": reasons}
        show_json(document | {"main_tracks": tracks, "recorded": before})
        return int(not passed)
    for one in found:
        show(f"{dataset}: {one.name:6} {_WORDS[one.passed]:7} {one.said}")
    if not write:
        _show_stale(described, found)
    for reason in reasons:
        show(f"{dataset}: ranked apart: {reason}")
    if tracks and any(one.passed is False for one in found):
        kept = described.checks.reason if described.checks else None
        advice = "take it out, or write why it keeps its place into checks.reason"
        said = f"it keeps its place: {kept}" if kept else advice
        show(f"{dataset}: in the main track{'s' * (len(tracks) != 1)} {', '.join(tracks)} all the same; {said}")
    return int(not passed)


def _show_stale(described: Dataset, found: Sequence[Finding]) -> None:
    """Say which answers the descriptor has otherwise."""
    before = described.checks
    stale = [one.name for one in found if before and one.passed not in {None, getattr(before, one.name)}]
    if before and stale:
        said = f"its dataset.json of {before.date} says otherwise of {' and '.join(stale)}"
        show(f"{described.name}: {said}; --write mends it")


def _write(described: Dataset, found: Sequence[Finding], roots: Roots) -> None:
    from fidopt.building.apart import checks
    from fidopt.corpus.pools import descriptor_path, write
    from fidopt.descriptors.dataset import Dataset
    from fidopt.descriptors.editing import edited

    answer = checks(described, found).model_dump(mode="json")
    text = descriptor_path(described, roots).read_bytes().decode("utf-8")
    path = write(described, edited(text, {"checks": answer}, order=list(Dataset.model_fields)), roots)
    say(f"checks written into {path}")


_WORDS = {True: "passes", False: "misses", None: "open"}
