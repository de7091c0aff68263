"""A pair aligned by one mode, and which is the least mode that works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from blocks.image import grid_of
from blocks.transforms import Affine
from fidopt.alignment.elastix import register
from fidopt.alignment.motions import Motion
from fidopt.alignment.record import Run
from fidopt.alignment.scores import Score, Scorer
from fidopt.alignment.starts import Side, between_centres, side_of, starts
from fidopt.descriptors.alignment import Mode
from fidopt.errors import InputError

#: The modes from the least to the most, as they are tried.
LADDER: tuple[Mode, ...] = ("as-delivered", "image-centres", "elastix-translation", "elastix-rigid")
#: A mode works where it reaches this share of the best score of all that were tried.
SHARE = 0.9
#: Overlap (Dice) of two bodies below which they are hardly the same part of a body, so that scores tell little.
TOGETHER = 0.5


@dataclass(frozen=True)
class Found:
    """How a pair was aligned.

    Parameters
    ----------
    mode
        By which mode.
    motion
        T: fixed world points -> moving world points.
    score
        How well it puts the pair together; None where nobody looked.
    runs
        What was tried, in order; one for a mode that tries nothing.
    winner
        The start whose transform was kept.
    elastix
        Its version, where it was used.
    """

    mode: Mode
    motion: Motion
    score: Score | None
    runs: tuple[Run, ...]
    winner: str
    elastix: str | None = None


def align(fixed: xr.DataArray, moving: xr.DataArray, mode: Mode, *, modalities: tuple[str, str]) -> Found:
    """Align a pair by one mode, from its intensities (image-centres: from its grids).

    Parameters
    ----------
    fixed, moving
        Dims (c,) (z,) y, x; lazy or in memory.
    mode
        How.
    modalities
        Of the fixed and the moving image, as the dataset's descriptor names them.

    Raises
    ------
    InputError
        When an image shows no body, or elastix registers the pair from no start.
    MissingError
        When the mode needs itk-elastix and it is not installed.
    """
    if mode in ("as-delivered", "image-centres"):
        return _placed(mode, fixed, moving, None)
    ours, theirs = _sides(fixed, moving, modalities)
    return _registered(mode, ours, theirs, Scorer(ours, theirs))


@dataclass(frozen=True)
class Tried:
    """One mode of the ladder, tried on a pair.

    Parameters
    ----------
    found
        What came of it.
    share
        Its score over the best one's, at most 1.
    distance
        How far from where the best mode puts them it leaves the points of the fixed body, root mean square, in the
        image's unit.
    """

    found: Found
    share: float
    distance: float

    @property
    def works(self) -> bool:
        """Whether a mode above it would hardly put the pair together any better."""
        return self.share >= SHARE


def ladder(fixed: xr.DataArray, moving: xr.DataArray, *, modalities: tuple[str, str]) -> tuple[Tried, ...]:
    """Try the modes on a pair, from the least to the most.

    A mode works where its score (the bodies' overlap times what their normalised mutual information has above 1) is
    at least nine tenths of the best score of all four: what is above it in the ladder then has hardly more to give
    than chance. Raises as :func:`align`.
    """
    ours, theirs = _sides(fixed, moving, modalities)
    scorer = Scorer(ours, theirs)
    found = [
        _placed(mode, fixed, moving, scorer)
        if mode in ("as-delivered", "image-centres")
        else _registered(mode, ours, theirs, scorer)
        for mode in LADDER
    ]
    values = [one.score.value if one.score else 0.0 for one in found]
    best = int(np.argmax(values))
    points = ours.body.points()
    target = found[best].motion.affine()
    return tuple(
        Tried(one, value / values[best] if values[best] > 0 else 1.0, _apart(points, one.motion.affine(), target))
        for one, value in zip(found, values, strict=True)
    )


def least(cases: Sequence[Sequence[Tried]]) -> Mode | None:
    """Return the least mode that works on every pair; None where each fails on one."""
    works = (mode for number, mode in enumerate(LADDER) if all(tried[number].works for tried in cases))
    return next(works, None)


def lesser(names: Sequence[str], cases: Sequence[Sequence[Tried]], mode: Mode | None) -> list[tuple[Mode, str, float]]:
    """Return why each mode below one is not enough: the mode, the case it serves worst, and its share there.

    Where there is no such ``mode``, each of the ladder's is told.
    """
    found = []
    for number, below in enumerate(LADDER[: LADDER.index(mode)] if mode else LADDER):
        share, name = min((tried[number].share, name) for name, tried in zip(names, cases, strict=True))
        found.append((below, name, share))
    return found


def apart(names: Sequence[str], cases: Sequence[Sequence[Tried]]) -> list[tuple[str, float]]:
    """Return the cases whose bodies no mode brings together, and the overlap that the best mode gives them."""
    best = [max((one.found.score.overlap for one in tried if one.found.score), default=0.0) for tried in cases]
    return [(name, overlap) for name, overlap in zip(names, best, strict=True) if overlap < TOGETHER]


def _sides(fixed: xr.DataArray, moving: xr.DataArray, modalities: tuple[str, str]) -> tuple[Side, Side]:
    return side_of(fixed, modality=modalities[0]), side_of(moving, modality=modalities[1])


def _placed(mode: Mode, fixed: xr.DataArray, moving: xr.DataArray, scorer: Scorer | None) -> Found:
    """Return what needs no registration: the pair as it is, or its images' centres together."""
    ndim = grid_of(fixed).ndim
    vector = between_centres(grid_of(fixed), grid_of(moving)) if mode == "image-centres" else (0.0,) * ndim
    score = scorer.score(Affine.translation(vector)) if scorer else None
    return Found(mode, Motion(vector), score, (_run(mode, vector, score),), mode)


def _registered(mode: Mode, fixed: Side, moving: Side, scorer: Scorer) -> Found:
    """Register from every start and keep the transform with the highest score, the first of equals."""
    chosen = starts(fixed, moving, centred=mode.endswith("-centred"))
    results, version = register(fixed, moving, chosen, kind="rigid" if "rigid" in mode else "translation")
    runs, best = [], None
    for result in results:
        score = scorer.score(result.motion.affine()) if result.motion else None
        runs.append(_run(result.start.name, result.start.translation, score, error=result.error))
        if score is not None and (best is None or score.value > best[0].value):
            best = (score, result)
    if best is None or best[1].motion is None or best[0].value <= 0:
        msg = f"{mode} by elastix {version} brings the two bodies together from none of {len(runs)} starts"
        raise InputError(msg)
    return Found(mode, best[1].motion, best[0], tuple(runs), best[1].start.name, version)


def _run(start: str, vector: tuple[float, ...], score: Score | None, *, error: str | None = None) -> Run:
    if score is None:
        return Run(start=start, translation=vector, error=error)
    return Run(start=start, translation=vector, overlap=score.overlap, information=score.information, score=score.value)


def _apart(points: np.ndarray[tuple[int, ...], np.dtype[np.float64]], a: Affine, b: Affine) -> float:
    """Return the root mean square distance between where two transforms take points."""
    return float(np.sqrt(np.mean(np.sum((a.points(points) - b.points(points)) ** 2, axis=-1))))
