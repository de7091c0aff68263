"""results/<machine>/<method>/<dataset>.json: one row a case, a failure among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from fidopt.descriptors.base import WHOLE, Day, Descriptor, Digest, File, Name, Text
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.wording import pattern

#: A method's name, or ``METHOD@VARIANT``; a scored NAME need not be a method here.
LineName = Annotated[
    str,
    pattern(
        r"^[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9][A-Za-z0-9._-]*)?$",
        "a method's name, or METHOD@VARIANT, of letters, digits, '.', '_' and '-'",
    ),
]
#: The step that failed: making the environment, run.sh, its time limit, reading its field or output, scoring it.
Stage = Literal["setup", "run", "timeout", "field", "output", "score"]


class Failure(Descriptor):
    """Why a case has no result of its own.

    A registration's metrics are then the unregistered pair's, a segmentation's an empty map's, a synthesis's null.

    Parameters
    ----------
    stage
        The step that failed.
    reason
        One sentence.
    log_tail
        The last lines the method printed.
    """

    stage: Stage
    reason: Text
    log_tail: str = ""


class Row(Descriptor):
    """One case of a line.

    Parameters
    ----------
    metrics
        Metric -> value; null where it could not be computed, for the reason in ``reasons``.
    labels
        Metric -> label -> value.
    landmarks
        Metric -> the error of every landmark pair, in the order of the files.
    regions
        What was measured -> region of the image -> value (:mod:`fidopt.scoring.regions`).
    reasons
        Metric -> why it is null.
    time_s, peak_ram_mib, peak_gpu_mib, threads
        Wall time of run.sh, peak memory of its processes, and the threads it was given; null where the field was made
        elsewhere.
    method_version, fidopt_version, date
        What made the row, and on which day.
    error
        Present where the case failed.
    """

    metrics: dict[Text, float | None]
    labels: dict[Text, dict[str, float | None]] = Field(default_factory=dict)
    landmarks: dict[Text, tuple[float | None, ...]] = Field(default_factory=dict)
    regions: dict[Text, dict[Text, float]] = Field(default_factory=dict)
    reasons: dict[Text, Text] = Field(default_factory=dict)
    time_s: NonNegativeFloat | None = None
    peak_ram_mib: NonNegativeInt | None = None
    peak_gpu_mib: NonNegativeInt | None = None
    threads: PositiveInt | None = None
    method_version: str | None = None
    fidopt_version: Text
    date: Day
    error: Failure | None = None

    @check
    def _null_for_a_reason(self) -> Iterator[str]:
        for metric, value in self.metrics.items():
            if value is None and metric not in self.reasons and self.error is None:
                yield f"metrics.{metric}: is null, so reasons.{metric} must say why"


class Rows(File):
    """The rows of one line on one dataset, all scored on the same files.

    Parameters
    ----------
    checksums
        Digest of the built cases they were scored on: rows compare only where it is the same.
    rows
        Case -> row.
    """

    schema_version: Annotated[Literal[1], WHOLE] = Field(default=1, alias="schema")
    method: LineName
    dataset: Name
    machine: Name
    checksums: Digest
    rows: dict[Name, Row] = Field(default_factory=dict)
