"""Where the names of an output's labels and a dataset's meet: through structures.json, each name in one spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.structures import Structures
from fidopt.errors import OutputError

#: How alike an unknown name and one that is missing must be for the one to be taken as a misspelling of the other.
ALIKE = 0.8


@dataclass(frozen=True)
class Meeting:
    """Which of a dataset's labels each value of an output stands for.

    Parameters
    ----------
    values
        Every value that the output names -> the label that the dataset gives the structure; 0 where it names none.
    unasked
        Names in the output that no structure of the dataset takes.
    """

    values: Mapping[int, int]
    unasked: tuple[str, ...] = field(default=())


class Names:
    """The structures of structures.json, found by any of their names in any spelling.

    Parameters
    ----------
    table
        The structures.
    """

    def __init__(self, table: Structures) -> None:
        self._table = table
        self._known = {spelled(name): name for name in table.root}
        for name, entry in table.root.items():
            self._known |= {spelled(synonym): name for synonym in entry.synonyms}

    def __contains__(self, name: str) -> bool:
        """Whether structures.json lists a name."""
        return spelled(name) in self._known

    def parts(self, name: str) -> frozenset[str]:
        """Return what a structure is made of in the end: itself, where it is one or is listed nowhere."""
        known = self._known.get(spelled(name))
        return frozenset(map(spelled, self._table.parts(known))) if known else frozenset({spelled(name)})


def spelled(name: str) -> str:
    """Return a name in one spelling: small letters, and '_' for any run of spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


def meet(names: Mapping[int, str], dataset: Dataset, structures: Names, *, where: str) -> Meeting:
    """Match an output's names with a dataset's.

    A value stands for the structure of its name, else for the smallest one that its structure is a part of: left and
    right kidneys together are the kidneys. A structure is never cut up: kidneys are neither the left nor the right.

    Parameters
    ----------
    names
        Value in the output -> name.
    dataset
        Names its own labels (``truth.labels``).
    structures
        Synonyms and unions.
    where
        What an error calls the file of the names.

    Raises
    ------
    OutputError
        When two values have one structure's names, a name is nearly that of a structure which is missing, or no name
        is one of the dataset's.
    """
    _refuse_twice(names, structures, where)
    asked = {int(value): structures.parts(name) for value, name in dataset.truth.labels.items()}
    values = {value: _label(structures.parts(name), asked) for value, name in names.items()}
    unasked = tuple(name for value, name in names.items() if not values[value])
    _refuse_misspelt(unasked, set(values.values()), dataset, structures, where)
    if names and not any(values.values()):
        msg = f"{where}: none of {_listed(unasked)} is a structure of {dataset.name}, which asks for"
        raise OutputError(f"{msg} {_listed(tuple(dataset.truth.labels.values()))}; name the values that hold them")
    return Meeting(values, unasked)


def _label(parts: frozenset[str], asked: Mapping[int, frozenset[str]]) -> int:
    """Return the label whose structure holds the parts, the smallest one; 0 where none does."""
    holding = [(len(whole), label) for label, whole in asked.items() if parts <= whole]
    return min(holding)[1] if holding else 0


def _refuse_twice(names: Mapping[int, str], structures: Names, where: str) -> None:
    first: dict[frozenset[str], int] = {}
    for value, name in names.items():
        other = first.setdefault(structures.parts(name), value)
        if other != value:
            known = names[other] if names[other] == name else f"{names[other]} and {name}, which are one structure"
            msg = f"{where}: {other} and {value} are both named {known}; give a structure one value"
            raise OutputError(msg)


def _refuse_misspelt(
    unasked: tuple[str, ...], produced: set[int], dataset: Dataset, structures: Names, where: str
) -> None:
    labels = dataset.truth.labels.items()
    missing = {spelled(name): name for value, name in labels if int(value) not in produced}
    for name in unasked:
        close = difflib.get_close_matches(spelled(name), missing, n=1, cutoff=ALIKE)
        if close and name not in structures:
            msg = f"{where}: {name!r} is a structure that neither structures.json nor {dataset.name} names;"
            raise OutputError(f"{msg} did you mean {missing[close[0]]!r}?")


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
