"""``fidopt align``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fidopt.commands.options import Json, Overwrite, Where
from fidopt.commands.output import progress, say, show, show_json
from fidopt.descriptors.alignment import Mode
from fidopt.errors import UsageError

if TYPE_CHECKING:
    from fidopt.alignment.choice import Tried
    from fidopt.building.aligning import Aligned
    from fidopt.descriptors.dataset import Dataset


def align(
    dataset: str,
    /,
    *cases: str,
    mode: Mode | None = None,
    suggest: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Overwrite = False,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Compute the transform that brings each moving image near its fixed one, from the images alone.

    It is a translation or a rigid motion, stored as `alignment/CASE.tfm` in the dataset's folder beside a record of
    how it was found; `fidopt build` then moves the headers of the moving side by it, and no voxel. A transform that is
    there already from the same images is kept. The modes of elastix need `pip install 'fidopt[align]'`.

    `--suggest` stores nothing: it tries as-delivered, image-centres, elastix-translation and elastix-rigid, and says
    which is the least that works: the first whose score is at least nine tenths of the best of the four. The score is
    the overlap (Dice) of the two bodies times what the normalised mutual information of their common part has above 1.

    Example: `fidopt align lung_ct --suggest --archives ~/archives`, then `fidopt align lung_ct`

    Parameters
    ----------
    dataset
        name of a dataset
    cases
        some of its cases; by default all, development cases too
    mode
        how they are aligned; by default as dataset.json says
    suggest
        try the modes and say which is the least that works; store nothing
    """
    from fidopt import corpus
    from fidopt.building import aligning

    if suggest and mode is not None:
        msg = f"--suggest tries every mode and stores none; leave out --mode {mode}"
        raise UsageError(msg)
    roots = (where or Where()).roots()
    described = corpus.filled(corpus.dataset(dataset, roots), apart_from=_open(settled=mode is None and not suggest))
    if suggest:
        with progress(f"trying modes on {dataset}") as report:
            tried = aligning.suggest(described, cases, roots=roots, progress=report)
        return _suggested(described, tried, json=json)
    chosen = mode or described.alignment.mode
    with progress(f"aligning {dataset}") as report:
        found = aligning.align_cases(described, cases, mode=chosen, roots=roots, overwrite=overwrite, progress=report)
    if chosen != described.alignment.mode:
        say(f"dataset.json says {described.aligned}: fidopt build uses these once its alignment.mode is {chosen}")
    if json:
        show_json({"dataset": dataset, "mode": chosen, "cases": [_document(one) for one in found]})
        return 0
    for one in found:
        show(f"{dataset}/{one.case}: {one.done}; {_told(one)}; {one.path}")
    return 0


def _open(*, settled: bool) -> tuple[str, ...]:
    """Return the keys of to_fill that images can be aligned without: none of them is read here.

    The mode has to be ``settled`` where dataset.json is what gives it.
    """
    return ("citation", "spdx", "truth.grade", "truth.error_mm", *(() if settled else ("alignment.mode",)))


def _document(one: Aligned) -> dict[str, Any]:
    return {"case": one.case, "file": str(one.path), "done": one.done} | one.record.model_dump(mode="json")


def _told(one: Aligned) -> str:
    """Return in a few words how a transform was found."""
    record = one.record
    if record.elastix is None:
        return f"{record.mode}: {_vector(record.offset)}"
    best = next(run for run in record.runs if run.start == record.winner)
    return (
        f"{record.mode} by elastix {record.elastix}: from {record.winner}, the best of {len(record.runs)} starts "
        f"(overlap {best.overlap:.3f}, information {best.information:.3f})"
    )


def _vector(values: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values) + ")"


def _suggested(dataset: Dataset, tried: dict[str, tuple[Tried, ...]], *, json: bool) -> int:
    from rich.table import Table

    from fidopt.alignment.choice import SHARE, apart, least, lesser

    best = least(list(tried.values()))
    if json:
        cases = {case: [_row(one) for one in modes] for case, modes in tried.items()}
        document = {"dataset": dataset.name, "least": best, "mode": dataset.alignment.mode, "now": dataset.aligned}
        show_json(document | {"cases": cases, "apart": dict(apart(list(tried), list(tried.values())))})
        return 0
    table = Table(
        "case", "mode", "overlap", "information", "score", "of the best", f"from the best, {dataset.unit}", "works"
    )
    for case, modes in tried.items():
        for one in modes:
            row = _row(one)
            numbers = [f"{row[key]:.3f}" for key in ("overlap", "information", "score", "share", "distance")]
            table.add_row(case, row["mode"], *numbers, "yes" if row["works"] else "no")
    show(table)
    reached, now = f"reaches {SHARE:.0%} of the best score on every case", dataset.aligned
    said = f"the least mode that {reached} is {best}" if best else f"no mode {reached}"
    advice = "change alignment.mode there" if best else "choose by the table, and say why in alignment.note there"
    show(f"{dataset.name}: {said}; dataset.json says {now}" + ("" if now == best else f": {advice}"))
    for case, overlap in apart(list(tried), list(tried.values())):
        told = f"the bodies of {case} overlap by {overlap:.2f} at best, so that scores tell little: look at the pair"
        show(f"{dataset.name}: {told}; where one image is a part of the other, a mode ending in -centred may do")
    for mode, case, share in lesser(list(tried), list(tried.values()), best):
        show(f"{dataset.name}: {mode} is not enough: {share:.0%} of the best score on {case}")
    return 0


def _row(one: Tried) -> dict[str, Any]:
    found, score = one.found, one.found.score
    return {
        "mode": found.mode,
        "overlap": score.overlap if score else 0.0,
        "information": score.information if score else 1.0,
        "score": score.value if score else 0.0,
        "share": one.share,
        "distance": one.distance,
        "works": one.works,
        "winner": found.winner,
    }
