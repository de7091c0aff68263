"""What a field on a pair of known motion tells of its convention: right, wrong and how, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fidopt.check.readings import Floats, Pair, Reading, kinds, signs_and_orders, single
from fidopt.images.conventions import known_as

#: The field as written is at most so far from the motion; each reading wrong in one way, at least so far.
NEAR, FAR = 1.0, 2.5
#: A departure from the contract counts as so much residual when readings are compared.
DEPARTURE = 0.1
#: As many voxels are looked at, evenly spread over the body.
LOOKED_AT = 100

State = Literal["right", "wrong", "ambiguous", "lost", "zero", "refused", "failed"]


@dataclass(frozen=True)
class Finding:
    """What was found on one pair.

    Parameters
    ----------
    state
        ``right``; ``wrong``: another convention is right; ``ambiguous``: a wrong reading is near the motion too;
        ``lost``: no reading finds the motion; ``zero``: nothing moves; ``refused``: the file is no field of the
        contract; ``failed``: the run left none.
    said
        One sentence.
    residual, nearest
        Mean distance from the motion in the body: as written, and of the nearest wrong reading, in the pair's unit.
    conventions
        The conventions that would be right, in words, the simplest first.
    """

    state: State
    said: str
    residual: float | None = None
    nearest: float | None = None
    conventions: tuple[str, ...] = ()


def judge(numbers: Floats, motion: Floats, pair: Pair) -> Finding:
    """Judge the numbers of a field by the motion they should say.

    Parameters
    ----------
    numbers
        (n, ndim), in the order of a voxel's components in the file, at ``pair.points``.
    motion
        The true displacements (n, ndim), world, or one for all (ndim,).
    pair
        The two grids and the points.
    """
    residual = _residual(Reading.written(pair.ndim), numbers, motion, pair)
    if not np.any(numbers):
        said = f"the field is zero where the body is, which moves by {_length(motion):.3g}: no convention can be told"
        return Finding("zero", said, residual)
    wrong = {r: _residual(r, numbers, motion, pair) for r in _held_against(pair)}
    nearest = min(wrong, key=lambda r: wrong[r])
    if residual < NEAR:
        near = {r: d for r, d in wrong.items() if d <= (FAR if r.deviations == 1 else NEAR)}
        if not near:
            missed = min(distance for reading, distance in wrong.items() if reading.deviations == 1)
            said = (
                f"finds the motion to {residual:.2f}; every reading wrong in one way misses it by {missed:.2f} or more"
            )
            return Finding("right", said, residual, missed)
        first = min(near, key=lambda r: near[r])
        said = f"finds the motion to {residual:.2f}, but read {first.words} it misses by {near[first]:.2f} only"
        said = f"{said}, where {FAR} is asked: the field is too rough to tell the two apart"
        return Finding("ambiguous", said, residual, near[first], (first.words,))
    found = fitting(numbers, motion, pair)
    if found:
        words = tuple(reading.words for reading, _ in found)
        said = f"as written the field misses the motion by {residual:.2f}; it would be right to {found[0][1]:.2f} read"
        said = f"{said} {', or '.join(words)}{_tools(found[0][0])}"
        return Finding("wrong", said, residual, found[0][1], words)
    said = f"as written the field misses the motion by {residual:.2f}, and no other reading finds it: the nearest,"
    return Finding("lost", f"{said} {nearest.words}, misses by {wrong[nearest]:.2f}", residual, wrong[nearest])


def fitting(numbers: Floats, motion: Floats, pair: Pair, *, most: int = 3) -> list[tuple[Reading, float]]:
    """Return the readings by which numbers say the motion, each with its residual, the likeliest first.

    The more a reading departs from the contract, the nearer it has to be: by chance one of the thousands of
    combinations is near any motion.
    """
    step = max(1, len(numbers) // LOOKED_AT)
    few, thin = numbers[::step], Pair(pair.fixed, pair.moving, pair.points[::step])
    meant = motion if motion.ndim == 1 else motion[::step]
    simple = signs_and_orders(pair.ndim)
    turned = few[:, [r.order for r in simple]] * np.array([r.signs for r in simple])
    near = []
    for kind in kinds(pair.ndim):
        if not _differs(kind, pair):
            continue
        off = turned @ kind.matrix(thin).T + (kind.offset(thin) - meant).reshape(-1, 1, pair.ndim)
        for one, distance in zip(simple, np.sqrt((off**2).sum(axis=-1)).mean(axis=0), strict=True):
            if distance >= NEAR:
                continue
            reading = replace(kind, signs=one.signs, order=one.order)
            if distance < NEAR / 2 ** max(0, reading.deviations - 2):
                near.append((reading, float(distance)))
    near.sort(key=_score)
    return [one for one in near if _score(one) <= _score(near[0]) + 3 * DEPARTURE][:most]


def _tools(reading: Reading) -> str:
    """Return whose fields are read so, in words; nothing where no tool of the table means that."""
    tools = known_as(reading)
    return f" (the convention of {' and of '.join(tools)}: `fidopt field {tools[0]}:FILE` reads it)" if tools else ""


def _score(one: tuple[Reading, float]) -> float:
    return one[1] + DEPARTURE * one[0].deviations


def _held_against(pair: Pair) -> list[Reading]:
    """Return the readings that a right field must miss the motion by: those wrong in one way, all signs and orders."""
    right = Reading.written(pair.ndim)
    both = dict.fromkeys((*single(pair.ndim), *signs_and_orders(pair.ndim)))
    return [r for r in both if r != right and _differs(r, pair)]


def _differs(reading: Reading, pair: Pair) -> bool:
    """Whether a reading's frame is not another's under a second name: on one grid, the moving image's axes are."""
    return not (pair.one_grid and reading.frame.startswith("moving"))


def _residual(reading: Reading, numbers: Floats, motion: Floats, pair: Pair) -> float:
    return float(np.linalg.norm(reading.displacements(numbers, pair) - motion, axis=1).mean())


def _length(motion: Floats) -> float:
    return float(np.linalg.norm(np.atleast_2d(motion), axis=1).mean())
