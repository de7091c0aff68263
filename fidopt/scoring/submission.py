"""Fields made elsewhere, scored as rows: a case without a usable field is a row too, with the unregistered pair's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from blocks.transforms import DisplacementField
from fidopt import corpus, resources
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.rows import Failure, LineName, Row
from fidopt.errors import FieldError, UsageError
from fidopt.images.atomic import written_whole
from fidopt.images.conventions import CONTRACT, Convention
from fidopt.resources import Roots
from fidopt.results import Line, add_row, corpus_digest, machine_here, new_row, set_aside_others
from fidopt.scoring.evaluation import Scores, evaluation_file, refuse_other_tasks, score_case
from fidopt.scoring.evaluator import require_konfai
from fidopt.scoring.field import find_files, read_scored_field
from fidopt.scoring.foreign import meant
from fidopt.scoring.unregistered import Unregistered


@dataclass(frozen=True)
class Scored:
    """One case of a submission.

    Parameters
    ----------
    case
        Its name.
    row
        What was written.
    landmarks
        Metric -> the error of every landmark pair, in the order of the files.
    """

    case: str
    row: Row
    landmarks: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Submission:
    """What was scored, and the line it was written to."""

    line: Line
    cases: tuple[Scored, ...]


def nothing(*_: object) -> None:
    """Take what nobody asked to be told."""


def score_fields(
    name: str,
    dataset: Dataset,
    cases: Sequence[str] = (),
    *,
    fields: Path,
    roots: Roots,
    convention: str | None = None,
    voxels: bool = False,
    machine: str | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    draw: Callable[[Case, DisplacementField, Path], None] = nothing,
    progress: Callable[[int, int], None] = nothing,
    say: Callable[[str], None] = nothing,
) -> Submission:
    """Score the fields of a folder and write their rows, one as each case is done.

    Parameters
    ----------
    name
        The line's name; it need not be a method here.
    dataset
        A registration dataset, its cases built.
    cases
        Some of its cases; by default all.
    fields
        Holds ``<case>/DVF.*``, or Learn2Reg's ``disp_FFFF_MMMM.*``; of another convention, ``<case>/`` with the tool's
        own files.
    convention, voxels
        Which tool's fields they are (:data:`fidopt.images.conventions.CONVENTIONS`); ``voxels`` stands for learn2reg.
    machine
        The folder of ``roots.results`` to write to; by default this host's.
    client
        A Dask client for what is read from stores; by default threads on this machine's cores.
    draw
        Draws a case's pictures into a folder; asked where a field was scored.
    progress, say
        Told how many cases are done, and what a person should know.

    Raises
    ------
    UsageError
        When the name is not one, the dataset is not one of registration, or the folder holds no field of any case.
    DescriptorError
        When the rows that are there cannot be read.
    MissingError
        When a case is not built, or KonfAI is absent.
    """
    refuse_other_tasks(dataset)
    require_konfai()
    check_name(name)
    tool = meant(convention, voxels=voxels)
    built = corpus.cases(dataset, cases, roots)
    found = _fields_of(built, fields, tool)
    line = Line(roots.results, machine_here(roots, name=machine, say=say).name, name, dataset.name)
    digest, template = corpus_digest(dataset, roots), evaluation_file(roots)
    # Rows that cannot be read are refused now, not when the first case has been scored.
    set_aside_others(line, checksums=digest, say=say)
    scored, before = [], Unregistered(roots.results, dataset.name, digest)
    for number, case in enumerate(built):
        progress(number, len(built))
        field, failure = read_or_fail(case, found[case.name], tool)
        scores = score_case(case, field, template=template, client=client)
        if field is not None:
            draw(case, field, line.previews(case.name))
            unmoved = partial(_unmoved, case, template=template, client=client)
            if remark := before.remark(name, case.name, scores.metrics, measure=unmoved):
                say(remark)
        if failure is not None:
            shutil.rmtree(line.previews(case.name), ignore_errors=True)
            say(f"{dataset.name}/{case.name}: {failure.reason}; it counts as the unregistered pair")
        row = row_of(scores, failure)
        add_row(line, case.name, row, checksums=digest, say=say)
        with written_whole(line.evaluation) as part:
            part.write_text(scores.evaluation, encoding="utf-8")
        scored.append(Scored(case.name, row, scores.landmarks))
    progress(len(built), len(built))
    return Submission(line, tuple(scored))


def _unmoved(case: Case, *, template: Path, client: Any) -> Mapping[str, float | None]:  # noqa: ANN401 - as above
    return score_case(case, None, template=template, client=client).metrics


def score(
    dataset: str | Dataset,
    case: str,
    field: str | Path | DisplacementField | None,
    *,
    convention: str | None = None,
    voxels: bool = False,
    roots: Roots | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
) -> Row:
    """Score one result of one built case; nothing is written.

    Parameters
    ----------
    dataset, case
        Names.
    field
        Of a registration, the field: a file or store, u on the fixed grid in memory, or None for the unregistered pair.
        Of a segmentation or a synthesis, the file or store of its label map or image, or None for a failed case.
    convention, voxels
        Which tool's field a file is (:data:`fidopt.images.conventions.CONVENTIONS`); ``voxels`` stands for learn2reg.
    roots
        The folders to work in; by default those of the FIDOPT_* variables and the working folder.
    client
        A Dask client for what is read from stores; by default threads on this machine's cores.

    Returns
    -------
    Row
        Its ``error`` says why where the result cannot be scored; its metrics are then the unregistered pair's, an
        empty map's, or null.
    """
    where = roots or resources.roots()
    described = corpus.filled(corpus.dataset(dataset, where) if isinstance(dataset, str) else dataset)
    built = corpus.case(described, case, where)
    if described.task != "registration":
        return _score_output(built, field, roots=where, client=client)
    found: DisplacementField | None
    failure: Failure | None = None
    if field is None or isinstance(field, DisplacementField):
        found = field
    else:
        found, failure = read_or_fail(built, Path(field), meant(convention, voxels=voxels))
    return row_of(score_case(built, found, template=evaluation_file(where), client=client), failure)


def _score_output(case: Case, result: object, *, roots: Roots, client: Any) -> Row:  # noqa: ANN401 - as score
    from fidopt.scoring.output_submission import Outputs

    if not isinstance(result, str | Path | None):
        msg = f"{case.dataset.name} is a {case.dataset.task} dataset: the path of what was made of the case is needed"
        raise UsageError(msg)
    return Outputs(case.dataset, roots, client=client).score(case, Path(result) if result is not None else None)


def read_or_fail(
    case: Case, field: Path | Sequence[Path] | FieldError | None, convention: Convention = CONTRACT
) -> tuple[DisplacementField, None] | tuple[None, Failure]:
    """Read a case's field, or say why it cannot be scored.

    Parameters
    ----------
    case
        A built case.
    field
        The file, store or folder of it, or several files; None where there is none; the error, where it was refused
        already.
    convention
        Which tool's files they are.
    """
    try:
        if isinstance(field, FieldError):
            raise field
        if not field:
            msg = "there is no field"
            raise FieldError(msg)
        return read_scored_field(field, case, convention=convention), None
    except FieldError as error:
        return None, Failure(stage="field", reason=" ".join(str(error).split()))


def row_of(scores: Scores, failure: Failure | None) -> Row:
    """Return the row of a field made elsewhere: no time, no memory."""
    return new_row(
        scores.metrics,
        labels=scores.labels,
        landmarks=scores.landmarks,
        regions=scores.regions,
        reasons=scores.reasons,
        error=failure,
    )


def _fields_of(
    cases: Sequence[Case], folder: Path, tool: Convention
) -> dict[str, tuple[Path, ...] | FieldError | None]:
    """Return each case's field, or why there is not one; refuse a folder that has none at all."""
    found: dict[str, tuple[Path, ...] | FieldError | None] = {}
    for case in cases:
        try:
            found[case.name] = find_files(folder, case, tool)
        except FieldError as error:
            found[case.name] = error
    if not any(found.values()):
        msg = f"{folder} holds no field of {cases[0].dataset.name}: CASE/DVF.nii.gz is looked for, or"
        own = f", or {tool.tool}'s own files ({tool.writes})," if tool.files else ","
        msg = f"{msg} disp_FFFF_MMMM.nii.gz in Learn2Reg's numbering{own} for the cases {', '.join(found)}"
        raise UsageError(msg)
    return found


def check_name(name: str) -> None:
    """Refuse what cannot name a line, with a UsageError."""
    try:
        TypeAdapter(LineName).validate_python(name)
    except ValidationError as error:
        msg = f"{name!r} cannot name a line: letters, digits, '.', '_' and '-', with an optional @VARIANT"
        raise UsageError(msg) from error
