"""A method on a dataset: environment, runs, scores and rows; what is done already is not done again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fidopt import corpus, results
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.machine import Machine
from fidopt.descriptors.method import Method
from fidopt.descriptors.rows import Failure, Row
from fidopt.errors import FidoptError
from fidopt.resources import Roots
from fidopt.results import Line
from fidopt.runner import environment, methods, previews
from fidopt.runner.case import Order, RunResult, run_case, said_of
from fidopt.runner.scorers import Scorer, Scores, scorer_of
from fidopt.scoring.unregistered import Unregistered

if TYPE_CHECKING:
    from blocks.transforms import DisplacementField
    from fidopt.scoring.outputs import Output

Again = Literal["failed", "all"]


@dataclass
class Finished:
    """What a call of :func:`run_dataset` did.

    Parameters
    ----------
    line
        Where its rows are.
    done, failed
        Cases run now, and those of them that have a row that says why they failed.
    kept
        Cases that had a row before.
    """

    line: Line
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Session:
    """All that one call of :func:`run_dataset` works with.

    ``keeps`` says whether the evaluation and the pictures of a case are kept beside its line's rows.
    """

    order: Order
    dataset: Dataset
    line: Line
    checksums: str
    scorer: Scorer
    say: Callable[[str], None]
    keeps: bool = True


def run_dataset(
    name: str,
    dataset_name: str,
    cases: Sequence[str],
    *,
    roots: Roots,
    say: Callable[[str], None],
    again: Again | None = None,
    machine: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    scorer: Scorer | None = None,
) -> Finished:
    """Run a method on a dataset's cases, score them and write their rows.

    Parameters
    ----------
    name
        ``METHOD`` or ``METHOD@VARIANT``.
    dataset_name, cases
        The dataset and the cases; none named means all.
    again
        Run also what has a row: the cases that ``failed``, or ``all``. A row of another version of the method or of
        other files is run again in any case.
    machine
        The machine's folder, ahead of the one that lists this host.
    progress
        Told how many of the cases to run are done.

    Raises
    ------
    UsageError
        When the method does not take the dataset, or the dataset has no images.
    MissingError
        When a case is not built, or the method's environment cannot be made.
    """
    chosen = methods.find(name, roots)
    dataset = corpus.filled(corpus.dataset(dataset_name, roots))
    methods.refuse_unfit(chosen, dataset)
    wanted = corpus.cases(dataset, cases, roots)
    for case in wanted:
        case.require_images()
    here = results.machine_here(roots, name=machine, say=say)
    line = Line(roots.results, here.name, chosen.name, dataset.name)
    checksums = results.corpus_digest(dataset, roots)
    before = results.set_aside_others(line, checksums=checksums, say=say)
    rows = before.rows if before else {}
    todo = [case for case in wanted if _is_due(rows.get(case.name), chosen.method, again)]
    finished = Finished(line, kept=[case.name for case in wanted if case not in todo])
    if todo:
        order = _order(chosen, here, roots, say)
        session = Session(order, dataset, line, checksums, scorer or scorer_of(dataset, roots, say=say), say)
        _run_each(session, todo, finished, progress or (lambda done, total: None))
    return finished


def _order(chosen: methods.Chosen, here: Machine, roots: Roots, say: Callable[[str], None]) -> Order:
    return Order(
        chosen.method,
        chosen.folder,
        environment.ensure(chosen.method, chosen.folder, roots, say=say),
        threads=threads_for(chosen.method, here),
        device="cuda:0" if chosen.method.device == "cuda" and here.gpu else "cpu",
        variant=chosen.variant,
        hidden=(roots.corpus, roots.archives, roots.results),
    )


def _run_each(
    session: Session, cases: Sequence[Case], finished: Finished, progress: Callable[[int, int], None]
) -> None:
    before = Unregistered(session.line.results, session.dataset.name, session.checksums)
    for count, case in enumerate(cases):
        progress(count, len(cases))
        row = run_and_score(session, case)
        results.add_row(session.line, case.name, row, checksums=session.checksums, say=session.say)
        finished.done.append(case.name)
        if row.error:
            finished.failed.append(case.name)
            session.say(f"{session.dataset.name}/{case.name}: failed ({row.error.stage}): {said_of(row.error)}")
        elif session.dataset.task == "registration":
            unmoved = partial(_unmoved, session, case)
            if remark := before.remark(session.line.method, case.name, row.metrics, measure=unmoved):
                session.say(remark)
    progress(len(cases), len(cases))


def _unmoved(session: Session, case: Case) -> Mapping[str, float | None]:
    with tempfile.TemporaryDirectory(prefix="fidopt-score-") as folder:
        return session.scorer.score(case, None, workdir=Path(folder)).metrics


def threads_for(method: Method, machine: Machine) -> int:
    """Return how many threads a method is given: its own number, but no more than the machine states."""
    return min(method.threads or machine.threads, machine.threads)


def _is_due(row: Row | None, method: Method, again: Again | None) -> bool:
    if row is None or again == "all" or row.method_version != method.version:
        return True
    return again == "failed" and row.error is not None


def run_and_score(session: Session, case: Case) -> Row:
    """Run a session's method on a case and return its row; whatever goes wrong is a row that says so."""
    with (
        run_case(session.order, case, say=session.say) as result,
        tempfile.TemporaryDirectory(prefix="fidopt-score-") as folder,
    ):
        if result.failure or result.field is None:
            return _failed(session, case, result, result.failure, folder=Path(folder))
        registers = case.dataset.task == "registration"
        stage: Literal["field", "output", "score"] = "field" if registers else "output"
        try:
            found = session.scorer.read(result.field, case)
            stage = "score"
            scores = session.scorer.score(case, found, workdir=Path(folder))
        except Exception as error:  # noqa: BLE001 - whatever a method wrote, its case fails and the next one runs
            failure = Failure(stage=stage, reason=_sentence(error), log_tail=result.log_tail)
            return _failed(session, case, result, failure, folder=Path(folder))
        _keep(session, case, scores, found)
        return _row(session, result, scores, None)


def _failed(session: Session, case: Case, result: RunResult, failure: Failure | None, *, folder: Path) -> Row:
    """Return the row of a failure: its metrics are those of the unregistered pair or an empty map; no pictures."""
    shutil.rmtree(session.line.previews(case.name), ignore_errors=True)
    try:
        scores = session.scorer.score(case, None, workdir=folder)
    except Exception as error:  # noqa: BLE001 - the row must be written all the same
        session.say(f"{session.dataset.name}/{case.name}: what stands for it cannot be scored: {_sentence(error)}")
        return _row(session, result, None, failure)
    _keep(session, case, scores, None)
    return _row(session, result, scores, failure)


def _row(session: Session, result: RunResult, scores: Scores | None, failure: Failure | None) -> Row:
    return results.new_row(
        scores.metrics if scores else {},
        labels=scores.labels if scores else {},
        landmarks=scores.landmarks if scores else {},
        regions=scores.regions if scores else {},
        reasons=scores.reasons if scores else {},
        time_s=result.time_s,
        peak_ram_mib=result.peak_ram_mib,
        peak_gpu_mib=result.peak_gpu_mib,
        threads=result.threads,
        method_version=session.order.method.version,
        error=failure,
    )


def _keep(session: Session, case: Case, scores: Scores, found: DisplacementField | Output | None) -> None:
    """Keep a case's evaluation, and draw what was found, beside the rows of a session that keeps such things."""
    from fidopt.images.atomic import written_whole

    if not session.keeps:
        return
    if scores.evaluation:
        with written_whole(session.line.evaluation) as part:
            part.write_text(scores.evaluation, encoding="utf-8")
    if found is not None:
        previews.draw_or_say(case, found, session.line.previews(case.name), say=session.say)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, FidoptError) else f"{type(error).__name__}: {text}"
