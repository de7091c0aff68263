"""Fields made elsewhere, scored as rows: a case without a usable field is a row too, with the unregistered pair's."""

from __future__ import annotations

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
from fidopt.images.conventions import CONTRACT, Convention
from fidopt.resources import Roots
from fidopt.results import Line, corpus_digest, machine_here, new_row, set_aside_others
from fidopt.scoring.evaluation import Scores, evaluation_file, refuse_other_tasks, score_case
from fidopt.scoring.evaluator import require_konfai
from fidopt.scoring.field import find_files, read_scored_field
from fidopt.scoring.foreign import meant
from fidopt.scoring.keeping import Item, Measured, Submission, kept_rows, nothing
from fidopt.scoring.side_by_side import processes_for
from fidopt.scoring.unregistered import Unregistered


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
    memory_bytes: int | None = None,
    draw: Callable[..., None] = nothing,
    progress: Callable[[int, int], None] = nothing,
    say: Callable[[str], None] = nothing,
) -> Submission:
    """Score the fields of a folder and write their rows, one as each case is done; several cases side by side.

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
        A Dask client for what is read from stores, a case at a time; by default this machine's cores.
    memory_bytes
        What the cases that are scored at a time may use together; by default most of what is free.
    draw
        Draws a case's pictures into a folder, (case, field, folder, say=); asked where a field was scored. Can be
        pickled.
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
    scoring = _Scoring(name, tool, template, Unregistered(roots.results, dataset.name, digest), draw, client)
    items = [Item(case, found[case.name], line.previews(case.name)) for case in built]

    def keep(case: Case, measured: Measured) -> Row:
        if measured.failure is not None:
            say(f"{dataset.name}/{case.name}: {measured.failure.reason}; it counts as the unregistered pair")
        return row_of(measured.scores, measured.failure)

    processes = 1 if client is not None else processes_for(built, memory_bytes=memory_bytes)
    return Submission(
        line, kept_rows(scoring, items, keep, line, digest, processes=processes, progress=progress, say=say)
    )


@dataclass(frozen=True)
class _Scoring:
    """What scores one field of a submission; can be pickled where its parts can.

    Parameters
    ----------
    name, tool, template, before, draw, client
        The line's name, whose fields they are, the evaluation file, the unregistered pairs, and see
        :func:`score_fields`.
    """

    name: str
    tool: Convention
    template: Path
    before: Unregistered
    draw: Callable[..., None]
    client: Any

    def __call__(self, item: Item) -> Measured:
        said: list[str] = []
        case = item.case
        field, failure = read_or_fail(case, item.found, self.tool)
        scores = score_case(case, field, template=self.template, client=self.client)
        if field is not None:
            self.draw(case, field, item.previews, say=said.append)
            unmoved = partial(_unmoved, case, template=self.template, client=self.client)
            if remark := self.before.remark(self.name, case.name, scores.metrics, measure=unmoved):
                said.append(remark)
        return Measured(scores, failure, tuple(said))


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
