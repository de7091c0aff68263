"""What `fidopt tune` reads and keeps: settings to compare, and a row for each of them on each development case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from fidopt.descriptors.base import WHOLE, Descriptor, Digest, Name, Text
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.listed import SOME
from fidopt.descriptors.rows import LineName, Row

#: The name that the settings a method has already go by.
DEFAULTS = "defaults"


class SettingsFile(Descriptor):
    """The file of ``--settings``.

    Parameters
    ----------
    grid
        Setting -> the values to try; every combination is compared.
    settings
        Name -> settings, compared as they stand.
    """

    grid: dict[Text, Annotated[tuple[Any, ...], SOME]] = Field(default_factory=dict)
    settings: dict[Name, dict[Text, Any]] = Field(default_factory=dict)

    @check
    def _something(self) -> Iterator[str]:
        if not self.grid and not self.settings:
            yield "grid or settings: must name at least one setting to compare with the defaults"
        if DEFAULTS in self.settings:
            yield f"settings.{DEFAULTS}: is the name of the settings that the method has; choose another"


class TunedRow(Descriptor):
    """One setting on one development case: TUNING/MACHINE/METHOD/DATASET/CASE/DIGEST.json.

    Parameters
    ----------
    method, settings
        The line that was tuned, and what FIDOPT_SETTINGS was.
    dataset, case, files
        The development case, and the digest of its built files.
    code
        Digest of the method's own files but its descriptor, notes and verdicts: the row of another code is run again.
    host, at_once
        The computer it ran on, and how many runs went on there at a time: with more than one, times do not compare.
    row
        What was scored.
    """

    schema_version: Annotated[Literal[1], WHOLE] = Field(default=1, alias="schema")
    method: LineName
    settings: dict[Text, Any]
    dataset: Name
    case: Name
    files: Digest
    code: Digest
    host: Text
    at_once: PositiveInt
    row: Row
