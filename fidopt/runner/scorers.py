"""What scores what a method wrote, by the dataset's task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import OutputError
from fidopt.resources import Roots

if TYPE_CHECKING:
    from blocks.transforms import DisplacementField
    from fidopt.scoring.outputs import Output


class Scores(Protocol):
    """What a case's scoring answers; see :mod:`fidopt.scoring.evaluation`."""

    @property
    def metrics(self) -> Mapping[str, float | None]: ...  # noqa: D102
    @property
    def labels(self) -> Mapping[str, Mapping[str, float | None]]: ...  # noqa: D102
    @property
    def landmarks(self) -> Mapping[str, Sequence[float]]: ...  # noqa: D102
    @property
    def regions(self) -> Mapping[str, Mapping[str, float]]: ...  # noqa: D102
    @property
    def reasons(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def evaluation(self) -> str: ...  # noqa: D102


class Scorer(Protocol):
    """Reads what a method wrote as the contract has it, and scores it (None: the unregistered pair, an empty map)."""

    def read(self, path: Path, case: Case) -> Any:  # noqa: ANN401 - what it reads it scores; nobody else looks at it
        """Return the field, the label map or the image, or raise what it says is wrong with it."""

    def score(self, case: Case, field: Any, *, workdir: Path) -> Scores:  # noqa: ANN401 - what read returned
        """Return the case's metrics."""


class Evaluator:
    """The scorer: KonfAI's evaluator, loaded when it is first asked."""

    def read(self, path: Path, case: Case) -> DisplacementField:
        """Return the field, or raise FieldError."""
        from fidopt.scoring.field import read_scored_field

        return read_scored_field(path, case)

    def score(self, case: Case, field: DisplacementField | None, *, workdir: Path) -> Scores:
        """Return the case's metrics."""
        from fidopt.scoring.evaluation import score_case

        return score_case(case, field, workdir=workdir)


class OutputEvaluator:
    """The scorer of segmentations and syntheses.

    Parameters
    ----------
    dataset
        A segmentation or synthesis dataset.
    roots
        The folders to work in.
    say
        Told what a person should know.
    """

    def __init__(self, dataset: Dataset, roots: Roots, *, say: Callable[[str], None]) -> None:
        from fidopt.scoring.output_submission import Outputs

        self._outputs = Outputs(dataset, roots, say=say)

    def read(self, path: Path, case: Case) -> Output:
        """Return the label map or the image, or raise OutputError."""
        output, failure = self._outputs.read_or_fail(case, path)
        if output is None:
            raise OutputError(failure.reason if failure else f"{path.name} cannot be read")
        return output

    def score(self, case: Case, field: Output | None, *, workdir: Path) -> Scores:
        """Return the case's metrics."""
        return self._outputs.measure(case, field, workdir=workdir)


def scorer_of(dataset: Dataset, roots: Roots, *, say: Callable[[str], None]) -> Scorer:
    """Return what scores the methods of a dataset's task."""
    return Evaluator() if dataset.task == "registration" else OutputEvaluator(dataset, roots, say=say)
