"""published.json and official_zero.json: what a challenge's organisers published of a dataset's task."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from fidopt.descriptors.base import Descriptor, File, Name, Text
from fidopt.descriptors.listed import FILLED

Figure = Annotated[float, Field(ge=0)]


class PublishedRow(Descriptor):
    """An entry of the challenge's table: its method, and metric -> value."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Figure]

    method: Text

    @property
    def metrics(self) -> dict[str, float]:
        """Metric -> value."""
        extra: dict[str, Any] = self.model_extra or {}
        return dict(extra)


class Published(File):
    """published.json: the challenge's own table, shown beside a leaderboard and never ranked with it.

    Parameters
    ----------
    source
        Where it was published, and what it was measured on.
    rows
        One an entry.
    """

    source: Text
    rows: Annotated[tuple[PublishedRow, ...], FILLED]


class OfficialZero(File):
    """official_zero.json: the organisers' figures of their own zero fields, which ours are compared with.

    Parameters
    ----------
    source
        Where they come from.
    config
        The organisers' configuration that gives them.
    cases
        Case -> metric -> value.
    mean
        Metric -> the mean over the cases.
    differs
        Metric -> why ours is another figure on purpose; one that is not named has to be theirs.
    """

    source: Text
    config: Text
    cases: Annotated[dict[Name, dict[Name, Figure]], Field(min_length=1)]
    mean: dict[Name, Figure]
    differs: dict[Name, Text] = Field(default_factory=dict)
