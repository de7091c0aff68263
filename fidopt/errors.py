"""Every error that fidopt raises on purpose.

::

    FidoptError             one line and exit code 2
    |-- UsageError          an argument, an option or a name that does not exist
    |-- InputError          a file that is damaged, of the wrong kind or not what was expected
    |   |-- DescriptorError a JSON file with problems: all of them, each with its key
    |   `-- FieldError      a displacement field that cannot be scored
    |-- OutputExistsError   something else is already there
    `-- MissingError        a package, a program or a file of a provider that has to be had first
"""


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


class OutputExistsError(FidoptError):
    """Another output already lies where this one would be written."""


class MissingError(FidoptError):
    """A package, a program or a provider's file that has to be had first."""
