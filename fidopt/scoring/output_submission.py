"""Outputs of segmentations and syntheses made elsewhere, scored as rows, those that cannot be scored among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fidopt import corpus
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.rows import Failure, Row
from fidopt.errors import FidoptError, OutputError, UsageError
from fidopt.resources import Roots
from fidopt.results import Line, corpus_digest, machine_here, set_aside_others
from fidopt.scoring.anatomy import Anatomist, Anatomy, anatomist, anatomy_or_reason
from fidopt.scoring.evaluation import Scores, evaluation_file
from fidopt.scoring.evaluator import require_konfai
from fidopt.scoring.keeping import Item, Measured, Submission, kept_rows, nothing
from fidopt.scoring.output_evaluation import refuse_registration, score_output
from fidopt.scoring.outputs import STEMS, Output, find_output, read_output
from fidopt.scoring.side_by_side import processes_for
from fidopt.scoring.structures import Names
from fidopt.scoring.submission import check_name, row_of

#: What stands for a case that failed.
STANDS_FOR = {
    "segmentation": "it counts as an empty map",
    "synthesis": "no image stands in for it, and the line is incomplete",
}


class Outputs:
    """All that reading and scoring the outputs of one dataset rests on, read once.

    Parameters
    ----------
    dataset
        A segmentation or synthesis dataset.
    roots
        The folders to work in.
    client
        A Dask client for what is read from stores; by default threads on this machine's cores.
    say
        Told what a person should know, each thing once.

    Raises
    ------
    UsageError
        When the dataset is one of registration, or too large.
    MissingError
        Where KonfAI is absent.
    """

    def __init__(
        self,
        dataset: Dataset,
        roots: Roots,
        *,
        client: Any = None,  # noqa: ANN401 - distributed is not typed
        say: Callable[[str], None] = nothing,
    ) -> None:
        refuse_registration(dataset)
        require_konfai()
        self.dataset = dataset
        self.template = evaluation_file(roots, dataset.task)
        self._roots, self._client, self._say = roots, client, say
        self._structures = Names(corpus.structures(roots))
        self._said: set[str] = set()
        self._anatomist: Anatomist | FidoptError | None = None
        self.evaluation = ""

    def __reduce__(self) -> tuple[type[Outputs], tuple[Dataset, Roots]]:
        """Another process reads it all again; a client and whoever is told stay here."""
        return Outputs, (self.dataset, self._roots)

    @contextmanager
    def telling(self, say: Callable[[str], None]) -> Iterator[None]:
        """Tell another for a while."""
        before, self._say = self._say, say
        try:
            yield
        finally:
            self._say = before

    def score(self, case: Case, output: Path | OutputError | None, *, workdir: Path | None = None) -> Row:
        """Return the row of a case's output; of one that cannot be scored, why, and what stands for it.

        Parameters
        ----------
        output
            Its file or store; None where there is none; the error, where it was refused already.
        workdir
            A folder to stage in, the system's temporary one by default.
        """
        read, failure = self.read_or_fail(case, output)
        self.say_failed(case, failure)
        return row_of(self.measure(case, read, workdir=workdir), failure)

    def say_failed(self, case: Case, failure: Failure | None) -> None:
        """Say why a case's output cannot be scored, where it cannot, and what stands for it."""
        if failure is not None:
            self._say(f"{self.dataset.name}/{case.name}: {failure.reason}; {STANDS_FOR[self.dataset.task]}")

    def read_or_fail(self, case: Case, output: Path | OutputError | None) -> tuple[Output | None, Failure | None]:
        """Read a case's output, or say why it cannot be scored."""
        try:
            if isinstance(output, OutputError):
                raise output
            if output is None:
                msg = f"there is no {STEMS[self.dataset.task]}.*"
                raise OutputError(msg)
            read = read_output(output, case, self._structures)
        except OutputError as error:
            reason = " ".join(str(error).split())
            return None, Failure(stage="output", reason=reason)
        for remark in read.remarks:
            self._say_once(remark)
        return read, None

    def measure(self, case: Case, output: Output | None, *, workdir: Path | None = None) -> Scores:
        """Return what an output is worth, or None's worth: an empty map, or no image."""
        anatomy = self._look(case, output)
        found = anatomy if isinstance(anatomy, Anatomy) else None
        scores = score_output(case, output, workdir=workdir, template=self.template, anatomy=found, client=self._client)
        self.evaluation = scores.evaluation or self.evaluation
        if isinstance(anatomy, str):
            for metric in ("dice_geometry", "hd95_geometry"):
                scores.metrics[metric], scores.reasons[metric] = None, anatomy
        return scores

    def _look(self, case: Case, output: Output | None) -> Anatomy | str | None:
        """Return the anatomy in a synthesis and its target, or why it was not found; None where nobody asks for it."""
        if output is None or self.dataset.task != "synthesis" or self.dataset.truth.geometry is None:
            return None
        if self._anatomist is None:
            try:
                self._anatomist = anatomist(self.dataset, self._roots, say=self._say)
            except FidoptError as error:
                self._anatomist = error
        found = anatomy_or_reason(self._anatomist, case, output.image)
        if isinstance(found, str):
            self._say_once(f"{self.dataset.name}: the anatomy is not compared: {found}")
        elif not found.labels:
            return f"{self.dataset.truth.geometry} found no structure in either image"
        return found

    def _say_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._say(message)


def score_outputs(
    name: str,
    dataset: Dataset,
    cases: Sequence[str] = (),
    *,
    outputs: Path,
    roots: Roots,
    machine: str | None = None,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    memory_bytes: int | None = None,
    draw: Callable[..., None] = nothing,
    progress: Callable[[int, int], None] = nothing,
    say: Callable[[str], None] = nothing,
) -> Submission:
    """Score the outputs of a folder and write their rows, one as each case is done; several cases side by side.

    Parameters
    ----------
    name
        The line's name; it need not be a method here.
    dataset
        A segmentation or synthesis dataset, its cases built.
    cases
        Some of its cases; by default all.
    outputs
        Holds ``<case>/labels.*`` with the names of its values in ``labels.json``, or ``<case>/image.*``.
    machine
        The folder of ``roots.results`` to write to; by default this host's.
    client
        A Dask client for what is read from stores, a case at a time; by default this machine's cores.
    memory_bytes
        What the cases that are scored at a time may use together; by default most of what is free.
    draw
        Draws a case's pictures into a folder, (case, output, folder, say=); asked where an output was scored. Can be
        pickled.
    progress, say
        Told how many cases are done, and what a person should know.

    Raises
    ------
    UsageError
        When the name is not one, the dataset is one of registration, or the folder holds no output of any case.
    DescriptorError
        When the rows that are there cannot be read, or structures.json is damaged.
    MissingError
        When a case is not built, or KonfAI is absent.
    """
    scorer = Outputs(dataset, roots, client=client, say=say)
    check_name(name)
    built = corpus.cases(dataset, cases, roots)
    found = _outputs_of(built, outputs)
    line = Line(roots.results, machine_here(roots, name=machine, say=say).name, name, dataset.name)
    digest = corpus_digest(dataset, roots)
    # Rows that cannot be read are refused now, not when the first case has been scored.
    set_aside_others(line, checksums=digest, say=say)
    items = [Item(case, found[case.name], line.previews(case.name)) for case in built]

    def keep(case: Case, measured: Measured) -> Row:
        scorer.say_failed(case, measured.failure)
        return row_of(measured.scores, measured.failure)

    # Where anatomy is looked for a method runs, one at a time.
    alone = client is not None or dataset.truth.geometry is not None
    processes = 1 if alone else processes_for(built, memory_bytes=memory_bytes)
    scored = kept_rows(
        _Scoring(scorer, draw), items, keep, line, digest, processes=processes, progress=progress, say=say
    )
    return Submission(line, scored)


@dataclass(frozen=True)
class _Scoring:
    """What scores one output of a submission; can be pickled where ``draw`` can."""

    scorer: Outputs
    draw: Callable[..., None]

    def __call__(self, item: Item) -> Measured:
        said: list[str] = []
        with self.scorer.telling(said.append):
            output, failure = self.scorer.read_or_fail(item.case, item.found)
            scores = self.scorer.measure(item.case, output)
            if output is not None:
                self.draw(item.case, output, item.previews, say=said.append)
        return Measured(replace(scores, evaluation=self.scorer.evaluation), failure, tuple(said))


def _outputs_of(cases: Sequence[Case], folder: Path) -> dict[str, Path | OutputError | None]:
    """Return each case's output, or why there is not one; refuse a folder that has none at all."""
    found: dict[str, Path | OutputError | None] = {}
    for case in cases:
        try:
            found[case.name] = find_output(folder, case)
        except OutputError as error:
            found[case.name] = error
    if not any(found.values()):
        dataset = cases[0].dataset
        msg = f"{folder} holds no output of {dataset.name}: CASE/{STEMS[dataset.task]}.nii.gz is looked for, for the"
        raise UsageError(f"{msg} cases {', '.join(found)}")
    return found
