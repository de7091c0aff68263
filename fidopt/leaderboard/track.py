"""A track's leaderboard: who is ranked on every dataset of it, by the mean of their ranks."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from fidopt import corpus, results
from fidopt.descriptors.dataset import Task
from fidopt.descriptors.tracks import Track
from fidopt.errors import UsageError
from fidopt.leaderboard.board import Board, board
from fidopt.leaderboard.folding import Folded
from fidopt.leaderboard.lines import BoardLine
from fidopt.resources import Roots


@dataclass(frozen=True)
class TrackLine:
    """A method on a track.

    Parameters
    ----------
    method
        Which.
    rank
        The mean of its ranks on the datasets.
    places
        The means of the first and of the last place it could hold on them.
    place
        Its place on the track, by ``rank``; equal ranks share the better one.
    """

    method: str
    rank: float
    places: tuple[float, float]
    place: int


@dataclass(frozen=True)
class TrackBoard:
    """A track's leaderboard.

    Parameters
    ----------
    name, title, task, truth, apart
        As tracks.json has them.
    ranked_on
        The datasets that count: those whose licence lets them into an official leaderboard.
    lines
        The methods ranked on all of them, best first.
    boards
        The leaderboards of the datasets that have rows: those that count, then the others.
    notes
        What a reader should know.
    """

    name: str
    title: str
    task: Task
    truth: str
    apart: str | None
    ranked_on: tuple[str, ...]
    lines: tuple[TrackLine, ...]
    boards: tuple[Board, ...]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document, without its datasets' boards."""
        document = asdict(self)
        document["boards"] = [one.dataset for one in self.boards]
        return document


def find(name: str, roots: Roots) -> Track | None:
    """Return the track of a name, None where it is a dataset's.

    Raises
    ------
    UsageError
        When it is neither's; the message says what is nearest.
    """
    datasets = corpus.dataset_names(roots)
    if name in datasets:
        return None
    tracks = corpus.tracks(roots).root
    if name in tracks:
        return tracks[name]
    spelled = {one.lower(): one for one in (*datasets, *tracks)}
    close = difflib.get_close_matches(name.lower(), spelled, n=1)
    meant = f"; did you mean {spelled[close[0]]!r}?" if close else ""
    msg = f"there is no dataset and no track {name!r}{meant}; the tracks are {', '.join(sorted(tracks)) or 'none'}"
    raise UsageError(f"{msg}, the datasets: {', '.join(datasets) or 'none'}")


def track_board(name: str, track: Track, *, roots: Roots) -> TrackBoard:
    """Return a track's leaderboard.

    Raises
    ------
    UsageError
        When none of its datasets has rows.
    DescriptorError
        When a file of rows is damaged.
    """
    terms = {one: corpus.data_terms(corpus.dataset(one, roots).spdx) for one in track.datasets}
    ranked = tuple(one for one in track.datasets if terms[one].ranked)
    others = tuple(one for one in track.datasets if one not in ranked)
    boards = {one: board(one, roots=roots) for one in (*ranked, *others) if any(results.lines(roots, one))}
    if not boards:
        msg = f"there are no rows of {', '.join(track.datasets)}, the datasets of {name}, in {roots.results}; write"
        raise UsageError(f"{msg} some: fidopt run METHOD {track.datasets[0]}")
    notes = [f"truth: {track.truth}"]
    notes += [f"shown apart: {track.apart}"] if track.apart else []
    notes += [f"{one} is ranked in no leaderboard: its licence {terms[one].reason}" for one in others]
    bare = [one for one in ranked if one not in boards]
    if bare:
        notes.append(f"nobody is ranked before every dataset has rows; without any: {', '.join(bare)}")
    lines = _ordered([boards[one] for one in ranked]) if ranked and not bare else ()
    notes += _partly([boards[one] for one in ranked if one in boards], lines, of=len(ranked))
    return TrackBoard(
        name, track.title, track.task, track.truth, track.apart, ranked, lines, tuple(boards.values()), tuple(notes)
    )


def _ranked(found: Board) -> dict[str, BoardLine]:
    return {line.method: line for line in found.lines if line.place is not None}


def _ordered(boards: Sequence[Board]) -> tuple[TrackLine, ...]:
    """Return the lines of the methods that are ranked on every board."""
    each = [_ranked(one) for one in boards]
    means = {}
    for method in set.intersection(*map(set, each)):
        lines = [ranked[method] for ranked in each]
        places = [line.places or (line.place or 0, line.place or 0) for line in lines]
        low, high = (fmean(place[end] for place in places) for end in (0, 1))
        means[method] = fmean(line.rank or 0 for line in lines), (low, high)
    order = sorted(means, key=lambda method: (means[method][0], method))
    return tuple(
        TrackLine(method, *means[method], place=1 + sum(means[other][0] < means[method][0] for other in order))
        for method in order
    )


def _partly(boards: Sequence[Board], lines: Sequence[TrackLine], *, of: int) -> Iterator[str]:
    there = {line.method for line in lines}
    for method in sorted({method for one in boards for method in _ranked(one)} - there):
        on = sum(method in _ranked(one) for one in boards)
        yield f"{method} is not ranked: it stands on {on} of {of} datasets' rankings"


def terminal(found: TrackBoard) -> Folded:
    """Return a track's leaderboard as a table for a terminal."""
    rows = [
        [f"{line.place}", line.method, f"{line.rank:.2f}", f"{line.places[0]:.2f} to {line.places[1]:.2f}"]
        for line in found.lines
    ]
    ranked = len(found.ranked_on)
    said = "Mean of the ranks on" if rows else "No line is ranked on"
    caption = [f"{said} {ranked} dataset{'' if ranked == 1 else 's'}: {', '.join(found.ranked_on)}."]
    caption += [f"{note[:1].upper()}{note[1:]}." for note in found.notes]
    return Folded(
        title=f"{found.title} (track {found.name})",
        heads=["place", "method", "mean rank", "mean of the places it could hold"],
        rows=rows,
        keys=2,
        caption="\n".join(caption if found.ranked_on else caption[1:]),
    )
