"""tracks.json: the leaderboards over several datasets, each of one task and one kind of truth."""

from __future__ import annotations

from typing import Annotated

from fidopt.descriptors.base import Descriptor, Name, Table, Text
from fidopt.descriptors.dataset import Task
from fidopt.descriptors.listed import SOME
from fidopt.descriptors.truth import Grade


class Track(Descriptor):
    """A track.

    Parameters
    ----------
    title, task
        For people; what is asked of a method.
    datasets
        Those that a method must be ranked on to be ranked here.
    truth
        The kind of truth it stands for.
    apart
        Why it is shown apart from the main leaderboards; null where it is one.
    """

    title: Text
    task: Task = "registration"
    datasets: Annotated[tuple[Name, ...], SOME]
    truth: Grade
    apart: Text | None = None

    @property
    def main(self) -> bool:
        """Whether it is a main leaderboard: people's truth, or the provider's own, and no reason to stand apart."""
        return self.apart is None and self.truth not in {"automatic", "synthetic"}


class Tracks(Table[Track]):
    """Every track: name -> track."""
