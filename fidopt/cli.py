"""Each command's name, what it does, and the module it is loaded from.

``fidopt --help`` answers from this table alone. A command's module is imported when the command is called, and it
imports what it needs: none of torch, konfai, dask or numba is loaded to print a page of help.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fidopt import __version__
from fidopt.errors import FidoptError, os_sentence

if TYPE_CHECKING:
    from cyclopts import CycloptsError

#: name -> (one line of help, group). The module is ``fidopt.commands.<name>``, its function ``<name>``, with ``_`` for
#: ``-``.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("build, verify, run, score and rank two small real datasets; warp a volume on a cluster", "Start here"),
    "convert": ("write an image of another format as an OME-Zarr store, or a store as NIfTI or TIFF", "Images"),
    "info": ("what a store holds: shape, type, geometry, levels; a preview", "Images"),
    "pyramid": ("write a store's coarser levels again", "Images"),
    "warp": ("resample a store through transforms onto another store's grid", "Images"),
    "field": ("write transforms as one displacement field", "Images"),
    "cluster": ("start a Dask cluster for the commands above, here, over SSH, on SLURM or Kubernetes", "Images"),
    "draw": ("draw a dataset's test and development cases from all that have a truth", "Corpus"),
    "build": ("build a dataset's cases from its provider's archive", "Corpus"),
    "align": ("compute the transforms that bring moving images near fixed ones, from the images alone", "Corpus"),
    "verify": ("compare every file of the corpus with the recorded checksums", "Corpus"),
    "check-dataset": ("whether a dataset's truth suffices for a main leaderboard, and why not", "Corpus"),
    "schema": ("the JSON Schema of a kind of descriptor, for editors and for checks", "Corpus"),
    "setup": ("make a method's own environment", "Methods and results"),
    "check": ("whether a method's fields mean what they should, and what they mean instead", "Methods and results"),
    "run": ("run a method on a dataset's cases, score it and write its rows", "Methods and results"),
    "score": ("score displacement fields made elsewhere", "Methods and results"),
    "tune": ("compare settings of a method on development cases", "Methods and results"),
    "table": ("leaderboards in the terminal", "Methods and results"),
    "explain": ("which labels, landmarks and regions cost what in one row", "Methods and results"),
    "machine": ("describe this machine for the rows measured on it", "Methods and results"),
}

#: name -> the words after it, for commands that take several files or cases: the library would call them all ARGS.
USAGE: dict[str, str] = {
    "warp": "MOVING TRANSFORM [TRANSFORM ...] OUT --like FIXED [OPTIONS]",
    "cluster": "[FILE] [OPTIONS]",
    "field": "TRANSFORM [TRANSFORM ...] OUT --like FIXED [OPTIONS]",
    "draw": "DATASET [OPTIONS]",
    "build": "DATASET [CASE ...] [OPTIONS]",
    "align": "DATASET [CASE ...] [OPTIONS]",
    "verify": "[DATASET [CASE ...]] [--across] [OPTIONS]",
    "check-dataset": "DATASET [OPTIONS]",
    "schema": "[KIND] [OPTIONS]",
    "check": "METHOD [--on DATASET CASE] [OPTIONS]",
    "run": "METHOD DATASET [CASE ...] [OPTIONS]",
    "score": "NAME DATASET [CASE ...] --fields DIR [OPTIONS]",
    "tune": "METHOD FAMILY [DATASET/CASE ...] [OPTIONS]",
    "table": "[DATASET] [OPTIONS]",
    "explain": "METHOD DATASET [CASE] [OPTIONS]",
}


def help_text() -> str:
    """Return the overview that ``fidopt --help`` prints."""
    lines = [f"fidopt {__version__}: an open benchmark of image registration, and the engine under it", ""]
    lines += ["Usage: fidopt COMMAND [ARGUMENTS]", ""]
    for group in dict.fromkeys(group for _, group in COMMANDS.values()):
        lines.append(f"{group}:")
        lines += [f"  {name:15}{text}" for name, (text, where) in COMMANDS.items() if where == group]
        lines.append("")
    lines.append(
        "`fidopt COMMAND --help` explains a command, with an example; `fidopt demo` shows all of it on real images."
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no, 2 wrong use or bad input, 130 interrupted.

    Parameters
    ----------
    arguments
        The words after ``fidopt``; by default those of the command line.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:
        # Closed by whoever started it. This also takes its number, which a file that is written would get otherwise.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - it stays open, and a Path costs an import
    try:
        code = _dispatch(words)
        # What cannot be written is said here, not while the interpreter ends.
        sys.stdout.flush()
        return code
    except (FidoptError, OSError) as error:
        return _failed(error)
    except KeyboardInterrupt:
        return _stop("interrupted; the same command takes up where it stopped", 130)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in {"--help", "-h", "help"}:
        sys.stdout.write(help_text() + "\n")
        return 0
    if words[0] == "--version":
        sys.stdout.write(__version__ + "\n")
        return 0
    if words[0] not in COMMANDS:
        return _refuse(f"there is no command {words[0]!r}; `fidopt --help` lists them")
    from cyclopts import App, CycloptsError, Parameter

    from fidopt.commands.output import Printer

    app = App(
        name="fidopt",
        version=__version__,
        help_format="markdown",
        console=Printer(),
        default_parameter=Parameter(show_default=_default),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name in COMMANDS:
        usage = f"Usage: fidopt {name} {USAGE[name]}" if name in USAGE else None
        module = name.replace("-", "_")
        app.command(f"fidopt.commands.{module}:{module}", name=name, usage=usage)
    try:
        code = app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return _refuse(f"{_misuse(error)}; see `fidopt {words[0]} --help`")
    return int(code or 0)


def _misuse(error: CycloptsError) -> str:
    """Return what is wrong with a command's words, in a sentence."""
    if error.unused_tokens:
        return "nothing more was expected, got " + ", ".join(map(repr, error.unused_tokens))
    return " ".join(str(error).split()).rstrip(".")


def _default(value: object) -> str | None:
    """Return how a page of help shows a default: a switch is off unless it is given, which needs no words."""
    return None if value in (None, False) else str(value)


def _failed(error: FidoptError | OSError) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        # What is left in the buffer goes nowhere: the interpreter would try again as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 130  # whoever read the output has enough of it
    return _refuse(os_sentence(error) if isinstance(error, OSError) else str(error))


def _refuse(message: str) -> int:
    return _stop(message, 2)


def _stop(message: str, code: int) -> int:
    sys.stderr.write(f"fidopt: {message}\n")
    return code
