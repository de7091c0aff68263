"""Why a sound build has other bytes than were recorded: the voxels, the versions, the inputs."""

from __future__ import annotations

from fidopt import __version__
from fidopt.building.records import BuildRecord, inputs_digest
from fidopt.corpus import case_dir
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import FidoptError
from fidopt.resources import Roots


def explanation(
    dataset: Dataset, case: str, entry: str, *, local: BuildRecord, known: Checksums | None, roots: Roots
) -> str:
    """Return what is known of an entry that was built to other bytes than were recorded, as the end of a sentence.

    Parameters
    ----------
    dataset, case, entry
        Which.
    local
        What was noted when it was built here.
    known
        What was recorded with the dataset.
    """
    if known is None:
        return "nothing is recorded"
    because = _because(dataset, case, local, known, roots)
    theirs = known.contents.get(case, {}).get(entry)
    mine = local.contents.get(entry) if theirs else None
    if theirs and mine == theirs:
        return f"its voxels are those recorded, to the last bit; {because}"
    folder = case_dir(roots, dataset, case)
    if theirs and mine:
        return f"its voxels are not those recorded; {because}; rows scored on {folder} do not compare with others'"
    return because


def _because(dataset: Dataset, case: str, local: BuildRecord, known: Checksums, roots: Roots) -> str:
    """Return what was not the same when a case was recorded and when it was built here."""
    if other := stale(dataset, case, local, roots):
        return f"it was {other} than the dataset's folder now has; build it again with --overwrite"
    then, now = known.libraries(case), dict(local.libraries)
    changed = [
        f"{name} {now.get(name, 'none')} (recorded with {then.get(name, 'none')})"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
    if known.fidopt != local.fidopt:
        changed.append(f"fidopt {local.fidopt} (recorded with {known.fidopt})")
    if not then or not now:
        return f"the libraries that wrote them were not noted; record or build it again with fidopt {__version__}"
    if changed:
        return f"it was built with {', '.join(changed)}"
    return "every library is of the recorded version, so that its inputs were others, or a library is not deterministic"


def stale(dataset: Dataset, case: str, local: BuildRecord, roots: Roots) -> str | None:
    """Return what a case was built from that is another now, as far as it can be told; None of nothing."""
    from fidopt.alignment.headers import stored_alignment  # reads transforms, and loads what that needs

    try:
        stored = stored_alignment(dataset, case, roots)
        if (stored.digest if stored else None) != local.alignment:
            return "aligned by another transform"
        return "built from other inputs" if inputs_digest(dataset, roots) != local.inputs else None
    except FidoptError:
        return None
