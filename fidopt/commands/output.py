"""What a command prints: results on stdout, progress and messages on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, RenderableType

if TYPE_CHECKING:
    from blocks.execute import Outcome


class Report(Protocol):
    """Called as work advances, with what is done and what there is in all."""

    def __call__(self, done: int, total: int, written: int = 0, /) -> None:
        """Take note of ``done`` of ``total`` steps, the last of which wrote so many bytes."""


class Printer(Console):
    """A console that lets a closed pipe be known: rich's own ends the process, with the exit code of an answer."""

    def on_broken_pipe(self) -> None:
        """Hand the error on to ``fidopt.cli``."""
        raise BrokenPipeError


def show(what: RenderableType) -> None:
    """Print a text or a rich table on stdout."""
    # Off a terminal nothing has to fit: a table cut to 80 columns would lose its numbers.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 240
    Printer(soft_wrap=isinstance(what, str), highlight=False, width=width).print(what, markup=False)


def show_json(document: Any) -> None:  # noqa: ANN401 - any JSON document
    """Print one JSON document on stdout; NaN and infinities are refused."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def say(message: str) -> None:
    """Print a message on stderr."""
    sys.stderr.write(message + "\n")


class _Pace:
    """How fast work goes since it began: what earlier attempts had done does not count."""

    def __init__(self) -> None:
        self._start, self._bytes, self._first = time.monotonic(), 0, -1

    def note(self, done: int, written: int) -> None:
        """Take note of a step."""
        if self._first < 0:
            self._first = max(done - 1, 0)
        self._bytes += written

    def text(self, done: int, total: int) -> str:
        """Return steps and bytes a second, and how long the rest will take; empty before anything is known."""
        seconds = time.monotonic() - self._start
        if done <= self._first or seconds <= 0:
            return ""
        rate = (done - self._first) / seconds
        words = []
        if self._bytes:
            words += [f"{_number(rate)} shards/s", f"{_number(self._bytes / seconds / 1e6)} MB/s"]
        return ", ".join([*words, f"{_duration((total - done) / rate)} left"])


def _number(value: float) -> str:
    """Return a rate in three digits, one that is next to nothing without an exponent."""
    return "< 0.01" if value < 0.01 else f"{value:.3g}"


def _duration(seconds: float) -> str:
    """Return a duration as 50 s, 12 min, 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(label: str) -> Iterator[Report]:
    """Show how far a long piece of work is: a bar with an ETA on a terminal, a line now and then elsewhere."""
    pace = _Pace()
    if sys.stderr.isatty():
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=None, pace="")

            def report(done: int, total: int, written: int = 0, /) -> None:
                pace.note(done, written)
                bar.update(task, completed=done, total=total, pace=pace.text(done, total))

            yield report
        return
    last = time.monotonic()

    def line(done: int, total: int, written: int = 0, /) -> None:
        nonlocal last
        pace.note(done, written)
        if time.monotonic() - last >= 10:
            last = time.monotonic()
            said = pace.text(done, total)
            say(f"{label}: {done} of {total}" + (f", {said}" if said else ""))

    yield line


def taken_up(outcome: Outcome | None) -> None:
    """Say on stderr what became of an earlier attempt that was interrupted."""
    if outcome is not None and outcome.begun_again:
        say("what an earlier attempt had left was made from something else, or nobody knows what: all was made again")
    elif outcome is not None and outcome.there:
        say(f"taken up: {outcome.there} of {outcome.shards} shards were there already")
