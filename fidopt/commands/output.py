"""What a command prints: results on stdout, progress and messages on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console, RenderableType


class Report(Protocol):
    """Called as work advances, with what is done and what there is in all."""

    def __call__(self, done: int, total: int) -> None:
        """Take note of ``done`` of ``total`` steps."""


def show(what: RenderableType) -> None:
    """Print a text or a rich table on stdout."""
    # Off a terminal nothing has to fit: a table cut to 80 columns would lose its numbers.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 240
    Console(soft_wrap=isinstance(what, str), highlight=False, width=width).print(what, markup=False)


def show_json(document: Any) -> None:  # noqa: ANN401 - any JSON document
    """Print one JSON document on stdout; NaN and infinities are refused."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def say(message: str) -> None:
    """Print a message on stderr."""
    sys.stderr.write(message + "\n")


@contextmanager
def progress(label: str) -> Iterator[Report]:
    """Show how far a long piece of work is: a bar with an ETA on a terminal, a line now and then elsewhere."""
    if sys.stderr.isatty():
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=None)

            def report(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            yield report
        return
    last = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 10:
            last = time.monotonic()
            say(f"{label}: {done} of {total}")

    yield line
