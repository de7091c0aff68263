"""Every error that fidopt raises on purpose.

::

    FidoptError             one line and exit code 2
    |-- UsageError          an argument, an option or a name that does not exist
    |-- InputError          a file that is damaged, of the wrong kind or not what was expected
    |   |-- DescriptorError a JSON file with problems: all of them, each with its key
    |   |-- FieldError      a displacement field that cannot be scored
    |   `-- OutputError     a label map or an image that cannot be scored
    |-- OutputExistsError   something else is already there
    `-- MissingError        a package, a program or a file of a provider that has to be had first
"""

from __future__ import annotations

import errno

_CURES = {
    errno.ENOSPC: "make room on the disk, and run the same command again",
    errno.EDQUOT: "make room in your quota, and run the same command again",
    errno.EACCES: "ask for the right to it, or name another place",
    errno.EPERM: "ask for the right to it, or name another place",
    errno.EROFS: "name another place",
}


def os_sentence(error: OSError) -> str:
    """Return what the operating system refused as one sentence: which path, why, and what to do."""
    if error.errno is None or error.strerror is None:
        return " ".join(str(error).split()) or type(error).__name__
    place = error.filename2 if error.filename2 is not None else error.filename
    why = error.strerror[0].lower() + error.strerror[1:]
    said = why if place is None else f"{place}: {why}"
    return f"{said}; {_CURES.get(error.errno, 'check the path')}"


class FidoptError(Exception):
    """An error a user can act on: one sentence with what was expected, what was got, where, and what to do."""


class UsageError(FidoptError):
    """An argument, an option or a name that does not exist."""


class InputError(FidoptError):
    """A file that is damaged, of the wrong kind, or not what was expected."""


class DescriptorError(InputError):
    """A JSON file with problems, all reported at once.

    Parameters
    ----------
    problems
        One sentence a problem: ``FILE: KEY: expected ..., got ...``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class FieldError(InputError):
    """A displacement field that cannot be scored: shape, geometry, type or values."""


class OutputError(InputError):
    """A segmentation's or synthesis's output that cannot be scored: grid, type, values or the names of its labels."""


class OutputExistsError(FidoptError):
    """Another output already lies where this one would be written."""


class MissingError(FidoptError):
    """A package, a program or a provider's file that has to be had first."""
