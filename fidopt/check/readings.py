"""Every wrong way in which the numbers of a field can be read, built from the parts that conventions are made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from fidopt.images.conventions.readings import FRAMES, UNITS, Floats, Frame, Pair, Reading

__all__ = ["Floats", "Frame", "Pair", "Reading", "every", "kinds", "signs_and_orders", "single"]


def single(ndim: int) -> tuple[Reading, ...]:
    """Return every reading that is wrong in one way: a sign (one, those of RAS, all), the order, frame or unit."""
    right = Reading.written(ndim)
    return tuple(r for r in every(ndim) if r != right and (r.deviations == 1))


def signs_and_orders(ndim: int) -> tuple[Reading, ...]:
    """Return every combination of signs and component orders along the world's axes, the contract's among them."""
    signs = itertools.product((1, -1), repeat=ndim)
    return tuple(Reading(s, o) for s, o in itertools.product(signs, itertools.permutations(range(ndim))))


def kinds(ndim: int) -> Iterator[Reading]:
    """Yield every combination of frame, unit, and displacement or place, with the contract's signs and order."""
    right = Reading.written(ndim)
    for frame, unit, position in itertools.product(FRAMES, UNITS, (False, True)):
        if not (position and frame in {"moving header ignored", "turned twice", "world spacing", "over spacing"}):
            yield replace(right, frame=frame, unit=unit, position=position)


def every(ndim: int) -> Iterator[Reading]:
    """Yield every combination of signs, order, frame, unit, and of displacement or place."""
    for kind, simple in itertools.product(kinds(ndim), signs_and_orders(ndim)):
        yield replace(kind, signs=simple.signs, order=simple.order)
