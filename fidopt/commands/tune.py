"""``fidopt tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fidopt.commands.options import Compute, Json, Where
from fidopt.commands.output import progress, say, show, show_json

if TYPE_CHECKING:
    from fidopt.leaderboard.folding import Folded
    from fidopt.tuning import Tuned
    from fidopt.tuning.comparing import DatasetResult, Overall, SettingResult


def tune(
    method: str,
    family: str,
    /,
    *cases: str,
    settings: Path | None = None,
    write: str | None = None,
    tuning: Path = Path("tuning"),
    again: Literal["failed"] | None = None,
    machine: str | None = None,
    where: Where | None = None,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Compare settings of a method on the development cases of a family of datasets.

    Each setting runs on each built development case, as `fidopt run` would run it, and is held against the settings
    that the method has: the mean difference of the dataset's main measure with its 95 % interval, and on how many cases
    it is better or worse. Test cases are refused. The rows lie in `tuning/`, apart from the results; a row that is
    there is not made again. Runs go on side by side as far as the method's threads, its memory and its GPU allow. The
    exit code is 1 where `--write` was given and no setting is better.

    Example: `fidopt tune convexadam_mind lung --settings grid.yml --write lung`, where `grid.yml` says
    `grid: {lambda_weight: [0.65, 1.25], grid_sp: [4, 6]}`.

    Parameters
    ----------
    method
        a method's name, or METHOD@VARIANT, whose settings the others change
    family
        a name of families.json
    cases
        some of its development cases, DATASET/CASE; by default all that are built
    settings
        YAML: `grid`, setting -> values, of which every combination is compared; `settings`, name -> settings; by
        default the method's variants are compared
    write
        the best settings become a variant of tier 2 of this name in method.json, which names its cases
    tuning
        where the rows of tuning lie
    again
        run again the cases that failed
    machine
        folder of the rows to write to, instead of this host's [FIDOPT_MACHINE]
    """
    from fidopt.descriptors.deployment import size_bytes
    from fidopt.tuning import tune as run

    chosen = compute or Compute()
    with chosen.place() as place, progress(f"tuning {method} on {family}") as report:
        tuned = run(
            method,
            family,
            cases,
            roots=(where or Where()).roots(),
            tuning=tuning,
            settings=settings,
            write=write,
            again=again == "failed",
            machine=machine,
            client=place.client,
            memory_bytes=size_bytes(chosen.memory) if chosen.memory else None,
            say=say,
            progress=report,
        )
    if json:
        show_json(_document(tuned))
    else:
        _show(tuned, write)
    return int(write is not None and tuned.variant is None)


def _document(tuned: Tuned) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "method": tuned.method,
        "family": tuned.family,
        "folder": str(tuned.folder),
        "ran": tuned.ran,
        "kept": tuned.kept,
        "failed": tuned.failed,
        "settings": {one.name: dict(one.values) for one in tuned.settings},
        "cases": list(tuned.cases),
        "datasets": {one.dataset: asdict(one) for one in tuned.comparison.datasets},
        "overall": [asdict(one) for one in tuned.comparison.overall],
        "best": tuned.comparison.best.name if tuned.comparison.overall else None,
        "variant": str(tuned.variant) if tuned.variant else None,
    }


def _show(tuned: Tuned, write: str | None) -> None:
    for result in tuned.comparison.datasets:
        show(_of_dataset(tuned, result))
    overall = tuned.comparison.overall
    if not overall:
        say("nothing that was scored can be compared: no case has a main measure")
    elif len(tuned.comparison.datasets) > 1:
        show(_of_family(tuned))
    for name in (one.name for one in overall if one.same):
        say(
            f"{name} gives what the defaults give, to the last digit: it is the default, or the method does not read it"
        )
    show(f"{tuned.ran} run, {tuned.kept} had a row already, {tuned.failed} failed; rows in {tuned.folder}")
    if overall:
        best = tuned.comparison.best
        said = f"best by mean rank: {best.name}, of {len(overall)} settings"
        held = best.name != tuned.settings[0].name and not best.same
        show(said + ("; other cases will show less of the difference" if held else ""))
    if tuned.variant:
        show(f"written as {tuned.method.partition('@')[0]}@{write} into {tuned.variant}")
    elif write is not None:
        say("no setting is better than the defaults: no variant was written")


def _of_dataset(tuned: Tuned, result: DatasetResult) -> Folded:
    from fidopt.leaderboard.folding import Folded
    from fidopt.leaderboard.lines import COLUMNS, is_higher_better
    from fidopt.leaderboard.titles import title as titled

    others = [m for m in COLUMNS if m != result.metric and any(m in one.means for one in result.settings)]
    wanted = "higher" if is_higher_better(result.metric) else "lower"
    measure, *beside = (titled(metric, result.unit) for metric in (result.metric, *others))
    heads = ["setting", measure, "difference", "95 %", "better", "worse", "p", *beside, "time s", "failed"]
    ranks = {one.name: one.rank for one in tuned.comparison.overall}
    ordered = sorted(result.settings, key=lambda one: ranks[one.name])
    count = len(result.cases)
    title = f"{tuned.method} on {count} development case{'s' * (count != 1)} of {result.dataset}"
    caption = f"{wanted} {measure} is better; difference and 95 % t interval against the defaults, case by case"
    if any(one.failed for one in result.settings):
        caption += "; a case that failed counts as if nothing had been done"
    return Folded(title, heads, [_row(one, result.metric, others) for one in ordered], caption=caption)


def _row(one: SettingResult, metric: str, others: list[str]) -> list[str]:
    from fidopt.leaderboard.titles import PERCENT

    held, times = one.against, 100 if metric in PERCENT else 1
    if held is None:
        compared = ["-"] * 5
    else:
        ends = None if held.low is None or held.high is None else (times * held.low, times * held.high)
        interval = "-" if ends is None else f"{ends[0]:+.3g} to {ends[1]:+.3g}"
        mean = "-" if held.difference is None else f"{times * held.difference:+.3g}"
        compared = [mean, interval, str(held.better), str(held.worse), f"{held.p:.3g}"]
    scaled = {m: value * (100 if m in PERCENT else 1) for m, value in one.means.items()}
    numbers = [f"{scaled[m]:.4g}" if m in scaled else "-" for m in (metric, *others)]
    time = "-" if one.time_s is None else f"{one.time_s:.3g}"
    return [one.name, numbers[0], *compared, *numbers[1:], time, str(one.failed)]


def _of_family(tuned: Tuned) -> Folded:
    from fidopt.leaderboard.folding import Folded

    def row(one: Overall) -> list[str]:
        return [one.name, f"{one.rank:.2f}", str(one.better), str(one.worse), str(one.equal), str(one.failed)]

    names = ", ".join(result.dataset for result in tuned.comparison.datasets)
    heads = ["setting", "mean rank", "better", "worse", "equal", "failed"]
    rows = [row(one) for one in tuned.comparison.overall]
    return Folded(f"{tuned.method} on the family {tuned.family}", heads, rows, caption=f"datasets: {names}")
