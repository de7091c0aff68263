"""One call of `fidopt tune`: what is to be run, what has been, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fidopt import results
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.method import Variant
from fidopt.descriptors.rows import Row
from fidopt.errors import UsageError
from fidopt.resources import Roots
from fidopt.runner import environment, methods
from fidopt.runner.case import Order, said_of
from fidopt.runner.methods import Chosen
from fidopt.runner.session import threads_for
from fidopt.scoring.evaluator import console, require_konfai
from fidopt.tuning.cases import development_cases
from fidopt.tuning.comparing import Comparison, compare
from fidopt.tuning.rows import Place, code_of, files_of
from fidopt.tuning.running import Job, run_all, workers
from fidopt.tuning.settings import Setting, settings_of
from fidopt.tuning.variant import refuse_name, write_variant

#: The name under which settings are handed to a run.
_VARIANT = "tuned"


@dataclass
class Tuned:
    """What a call of :func:`tune` did.

    Parameters
    ----------
    method, family, folder
        Names, and where the rows lie.
    settings, cases
        What was compared, the defaults first, and on what: ``DATASET/CASE``.
    comparison
        How they compare.
    ran, kept, failed
        Rows made now, rows that stood, and rows of them all that say why the case failed.
    variant
        The method.json that the best settings were written to, or None.
    """

    method: str
    family: str
    folder: Path
    settings: tuple[Setting, ...]
    cases: tuple[str, ...]
    comparison: Comparison = field(default_factory=lambda: Comparison(()))
    ran: int = 0
    kept: int = 0
    failed: int = 0
    variant: Path | None = None


def tune(
    name: str,
    family: str,
    cases: Sequence[str] = (),
    *,
    roots: Roots,
    tuning: Path,
    settings: Path | None = None,
    write: str | None = None,
    again: bool = False,
    machine: str | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    memory_bytes: int | None = None,
    say: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> Tuned:
    """Compare settings of a method on the development cases of a family.

    Parameters
    ----------
    name, family, cases
        ``METHOD`` or ``METHOD@VARIANT``; a name of families.json; some of its ``DATASET/CASE``, by default all.
    tuning
        Where the rows lie, apart from the results.
    settings
        The file of settings; None compares the method's variants.
    write
        The name of the variant that the best settings become.
    again
        Whether cases that failed are run again.
    machine
        The folder of ``tuning`` to write to; by default this host's.
    client, memory_bytes
        Where it runs: see :func:`fidopt.tuning.running.workers`.
    say, progress
        Told what a person should know, and how many rows are done.

    Raises
    ------
    UsageError
        When something named is not there, a case is a test case, or there is nothing to compare.
    MissingError
        When the method's environment cannot be made, or KonfAI is absent.
    """
    chosen = methods.find(name, roots)
    if write is not None:
        refuse_name(chosen, write)
    compared = settings_of(chosen, settings)
    found = development_cases(family, cases, chosen, roots, say=say)
    require_konfai()
    _refuse_inside(tuning, roots)
    own = replace(_absolute(roots), results=tuning.resolve())
    here = results.machine_here(own, name=machine, say=say)
    places = _places(chosen, compared, found, own.results / here.name / chosen.name, roots=own)
    tuned = Tuned(chosen.name, family, places[0].folder, compared, tuple(_said(case) for case in found))
    rows = {place.key: row for place in places if (row := place.read()) is not None and not (again and row.error)}
    tuned.kept = len(rows)
    todo = [place for place in places if place.key not in rows]
    if todo:
        order = _order(chosen, own, threads=threads_for(chosen.method, here), gpu=here.gpu, say=say)
        jobs = [Job(place, _with(order, place.setting), own) for place in todo]
        peak = max((row.peak_ram_mib or 1 for row in rows.values()), default=None)

        def done(job: Job, row: Row) -> None:
            rows[job.place.key] = row
            tuned.ran += 1
            with console():
                if row.error:
                    why = f"failed ({row.error.stage}): {said_of(row.error)}"
                    say(f"{_said(job.place.case)}: {job.place.setting.name}: {why}")
                progress(tuned.ran, len(todo))

        with workers(client, memory_bytes=memory_bytes) as at:
            run_all(jobs, at, peak_mib=peak, done=done)
    tuned.failed = sum(row.error is not None for row in rows.values())
    tuned.comparison = compare([one.name for one in compared], _by_dataset(found), rows)
    if write is not None:
        tuned.variant = _write(chosen, write, tuned)
    return tuned


def _write(chosen: Chosen, name: str, tuned: Tuned) -> Path | None:
    """Write the best settings as a variant; None where they are the defaults, or no better on any case."""
    best = next((one for one in tuned.comparison.overall), None)
    if best is None or best.name == tuned.settings[0].name or not best.better:
        return None
    setting = next(one for one in tuned.settings if one.name == best.name)
    day = datetime.now(tz=UTC).date().isoformat()
    source = (
        f"fidopt tune {chosen.name} {tuned.family}, {day}: the best of {len(tuned.settings)} settings by mean rank over"
        f" {len(tuned.cases)} development cases; {'; '.join(_gains(tuned.comparison, best.name))}"
    )
    return write_variant(chosen, name, setting, cases=tuned.cases, source=source)


def _gains(comparison: Comparison, name: str) -> Iterator[str]:
    """Yield how a setting compares with the defaults on each dataset, in words."""
    for result in comparison.datasets:
        held = next(one.against for one in result.settings if one.name == name)
        if held is None or held.difference is None:
            continue
        interval = "" if held.low is None else f" (95 % {held.low:+.3g} to {held.high:+.3g})"
        yield f"{result.dataset}: {result.metric} {held.difference:+.3g}{interval} against the defaults"


def _places(
    chosen: Chosen, compared: Sequence[Setting], cases: Sequence[Case], folder: Path, *, roots: Roots
) -> list[Place]:
    """Return where every row goes: a case with all settings before the next, so that early rows compare."""
    code, version = code_of(chosen.folder), chosen.method.version
    files = {_said(case): files_of(case, roots) for case in cases}
    return [
        Place(folder, chosen.name, version, code, setting, case, files[_said(case)])
        for case in cases
        for setting in compared
    ]


def _order(chosen: Chosen, roots: Roots, *, threads: int, gpu: str | None, say: Callable[[str], None]) -> Order:
    return Order(
        chosen.method,
        chosen.folder.resolve(),
        environment.ensure(chosen.method, chosen.folder, roots, say=say),
        threads=threads,
        device="cuda:0" if chosen.method.device == "cuda" and gpu else "cpu",
        hidden=(roots.corpus, roots.archives, roots.results),
    )


def _with(order: Order, setting: Setting) -> Order:
    """Return an order with settings, as a variant that its method has for this run alone."""
    variant = Variant(source="fidopt tune", settings=dict(setting.values))
    method = order.method.model_copy(update={"variants": {**order.method.variants, _VARIANT: variant}})
    return replace(order, method=method, variant=_VARIANT)


def _by_dataset(cases: Sequence[Case]) -> dict[str, tuple[Dataset, list[str]]]:
    found: dict[str, tuple[Dataset, list[str]]] = {}
    for case in cases:
        found.setdefault(case.dataset.name, (case.dataset, []))[1].append(case.name)
    return found


def _said(case: Case) -> str:
    return f"{case.dataset.name}/{case.name}"


def _absolute(roots: Roots) -> Roots:
    """Return the folders by their whole paths, which mean the same to every worker."""
    return replace(
        roots,
        share=tuple(path.resolve() for path in roots.share),
        corpus=roots.corpus.resolve(),
        archives=roots.archives.resolve(),
        environments=roots.environments.expanduser().resolve(),
    )


def _refuse_inside(tuning: Path, roots: Roots) -> None:
    if roots.results.resolve() in (tuning.resolve(), *tuning.resolve().parents):
        msg = f"{tuning} lies in the results ({roots.results}), where no row of tuning may be; name another --tuning"
        raise UsageError(msg)
