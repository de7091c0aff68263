"""structures.json: one name for each structure, where methods and datasets have several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from fidopt.descriptors.base import Descriptor, Table, Text
from fidopt.descriptors.contradictions import check, given
from fidopt.descriptors.listed import DISTINCT

_NONE: tuple[str, ...] = ()


class Structure(Descriptor):
    """A structure.

    Parameters
    ----------
    synonyms
        Other names for it.
    of
        The structures it is made of, by their own names: a union. Empty where it is one by itself.
    """

    synonyms: Annotated[tuple[Text, ...], DISTINCT] = ()
    of: Annotated[tuple[Text, ...], DISTINCT] = ()


class Structures(Table[Structure]):
    """Every structure that has other names or parts: name -> structure."""

    @check
    def _claimed_once(self) -> Iterator[str]:
        claims: dict[str, list[str]] = defaultdict(list)
        for name, structure in self.root.items():
            for synonym in given(structure, "synonyms", _NONE):
                claims[synonym].append(name)
        for synonym, names in claims.items():
            if synonym in self.root:
                yield f"{names[0]}.synonyms: {synonym} is a structure of its own here"
            elif len(names) > 1:
                yield f"{names[1]}.synonyms: {synonym} is claimed by {names[0]} too"

    @check
    def _unions_end(self) -> Iterator[str]:
        done: set[str] = set()
        for name in self.root:
            path = self._circle(name, (), done)
            if path:
                yield f"{path[0]}.of: goes round in a circle: {' of '.join(path)}"

    def _circle(self, name: str, above: tuple[str, ...], done: set[str]) -> tuple[str, ...]:
        """Return the names that lead from a structure back to itself, once a circle; none where its parts end."""
        if name in above:
            return (*above[above.index(name) :], name)
        if name in done or name not in self.root:
            return ()
        done.add(name)
        for part in given(self.root[name], "of", _NONE):
            path = self._circle(self.canonical(part), (*above, name), done)
            if path:
                return path
        return ()

    def canonical(self, name: str) -> str:
        """Return the one name of a structure; a name that is listed nowhere is its own."""
        if name in self.root:
            return name
        return next((one for one, entry in self.root.items() if name in given(entry, "synonyms", _NONE)), name)

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the structures that a structure is made of in the end, by their own names; itself where of none."""
        name = self.canonical(name)
        of = self.root[name].of if name in self.root else ()
        return tuple(dict.fromkeys(one for part in of for one in self.parts(part))) or (name,)
