"""The seeded draw: which cases of a pool are test cases, and which are set aside to tune on.

A pure function of the seed, the dataset's name and the pool. Cases are sorted by the SHA-256 of ``SEED:DATASET:CASE``,
the smallest first, so that a case's place depends on no other case. Each source gives its share of the draw: what is
left of the shares' fractions goes to the largest remainders, equal ones to the first source by name.

Subjects without pairs are sorted the same way, in their sources, and paired two by two: the pair is named
``FIRST_SECOND`` and keeps its first subject's place. Of an odd number the last is left over.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fidopt.descriptors.dataset import CaseEntry
from fidopt.descriptors.pool import Pool
from fidopt.errors import InputError


@dataclass(frozen=True, order=True)
class Candidate:
    """A case that may be drawn; candidates compare by their place in the seeded order.

    Parameters
    ----------
    place
        Hexadecimal SHA-256 that it is sorted by.
    name
        The case's name.
    source, subjects, learn2reg
        As dataset.json has them.
    """

    place: str
    name: str
    source: str
    subjects: tuple[str, ...]
    learn2reg: str | None = None

    @property
    def people(self) -> set[tuple[str, str]]:
        """Whose images it holds: a subject's name is its own within a source."""
        return {(self.source, subject) for subject in self.subjects}

    def entry(self) -> CaseEntry:
        """Return the case as dataset.json has it."""
        return CaseEntry(source=self.source, learn2reg=self.learn2reg, subjects=self.subjects)


def place(seed: int, dataset: str, name: str) -> str:
    """Return what a case is sorted by: the SHA-256 of ``SEED:DATASET:CASE``, in hexadecimal."""
    return hashlib.sha256(f"{seed}:{dataset}:{name}".encode()).hexdigest()


def candidates(pool: Pool, *, seed: int, dataset: str) -> tuple[Candidate, ...]:
    """Return the cases of a pool in the seeded order, subjects without pairs paired two by two."""
    if pool.subjects:
        return _pairs(pool, seed=seed, dataset=dataset)
    found = (
        Candidate(place(seed, dataset, name), name, entry.source, entry.subjects, entry.learn2reg)
        for name, entry in pool.cases.items()
    )
    return tuple(sorted(found))


def _pairs(pool: Pool, *, seed: int, dataset: str) -> tuple[Candidate, ...]:
    ordered = sorted((place(seed, dataset, name), name, one.source) for name, one in pool.subjects.items())
    pairs: list[Candidate] = []
    for source in {one.source for one in pool.subjects.values()}:
        own = [(key, name) for key, name, of in ordered if of == source]
        for (key, first), (_, second) in zip(own[::2], own[1::2], strict=False):
            pairs.append(Candidate(key, f"{first}_{second}", source, (first, second)))
    twice = [name for name, times in Counter(one.name for one in pairs).items() if times > 1]
    if twice:
        msg = f"the pool of {dataset}: two pairs would both be named {twice[0]}; give its subjects other names"
        raise InputError(msg)
    return tuple(sorted(pairs))


def apportion(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many cases each source gives.

    Parameters
    ----------
    sizes
        Source -> how many cases it has.
    count
        How many are drawn in all; where there are fewer, every case is.

    Returns
    -------
    dict
        Source -> at most its size; together ``count``, or all there are.
    """
    total = sum(sizes.values())
    if count >= total:
        return dict(sizes)
    quotas = {source: Fraction(count * size, total) for source, size in sizes.items()}
    given = {source: int(quota) for source, quota in quotas.items()}
    by_remainder = sorted(quotas, key=lambda source: (given[source] - quotas[source], source))
    for source in by_remainder[: count - sum(given.values())]:
        given[source] += 1
    return given


def draw(pool: Sequence[Candidate], count: int) -> tuple[Candidate, ...]:
    """Return the first cases of the seeded order, from each source in proportion to its share.

    Parameters
    ----------
    pool
        Cases in the seeded order.
    count
        How many are drawn.
    """
    left = apportion(Counter(one.source for one in pool), count)
    drawn = []
    for one in pool:
        if left[one.source]:
            left[one.source] -= 1
            drawn.append(one)
    return tuple(drawn)


def develop(pool: Sequence[Candidate], test: Sequence[Candidate], count: int) -> tuple[Candidate, ...]:
    """Return the cases set aside to tune on: the last of the seeded order, from the source with the most left.

    A case is kept only where the test cases drawn stay the same without it, by itself and together with those kept
    before it, and where no image of a test case's subjects is in it.

    Parameters
    ----------
    pool
        Cases in the seeded order, the test cases among them.
    test
        The test cases, drawn from this pool.
    count
        The most that are set aside.
    """
    held = {one.name for one in test}
    people = {person for one in test for person in one.people}
    sizes = Counter(one.source for one in pool)
    shares = dict(Counter(one.source for one in test))
    left: dict[str, list[Candidate]] = {source: [] for source in sorted(sizes)}
    for one in pool:
        if one.name not in held:
            left[one.source].append(one)
    kept: list[Candidate] = []
    while len(kept) < count and any(left.values()):
        # Of sources with as many left, the first by name.
        last = max(left.values(), key=len).pop()
        same = (
            _shares(sizes, len(test), without=without) == shares
            for without in ([last.source], [last.source, *(one.source for one in kept)])
        )
        if not (last.people & people) and all(same):
            kept.append(last)
    return tuple(kept)


def first_of_training(pool: Sequence[Candidate], test: Iterable[Candidate], count: int) -> tuple[Candidate, ...]:
    """Return the development cases of a task whose official split is tested: the first of its training set.

    Parameters
    ----------
    pool
        Cases in the seeded order; those of the split, and those with an image of its subjects, are left out.
    test
        The split's cases.
    count
        The most that are set aside, from each source in proportion to its share.
    """
    held = list(test)
    names, people = {one.name for one in held}, {person for one in held for person in one.people}
    return draw([one for one in pool if one.name not in names and not one.people & people], count)


def _shares(sizes: Mapping[str, int], count: int, *, without: Sequence[str]) -> dict[str, int]:
    """Return source -> how many it gives, those that give none left out, once a case of each named source is gone."""
    rest = Counter(sizes)
    rest.subtract(without)
    return {source: number for source, number in apportion(rest, count).items() if number}
