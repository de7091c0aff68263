"""A method's convention on a case of the corpus: the real scorer, and every wrong reading against the zero field."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt import corpus
from fidopt.check import keeping
from fidopt.check.readings import Floats, Frame, Pair, Reading
from fidopt.check.session import order_of, prepared
from fidopt.corpus import Case
from fidopt.descriptors.verdicts import RealVerdict
from fidopt.errors import UsageError
from fidopt.resources import Roots
from fidopt.runner.case import run_case
from fidopt.runner.methods import refuse_unfit

#: A case's main measure is the first of these that it has; whether more of it is better.
MEASURES = (("dice", True), ("tre", False), ("hd95", False))
#: Readings that move a field less than this part of its own length are not told from it by a case.
LEAST = 0.02
#: Frames a real case is read in; those of the moving image's axes are left out on one grid.
_FRAMES: tuple[Frame, ...] = (
    "fixed axes",
    "fixed voxels",
    "moving axes",
    "moving voxels",
    "turned twice",
    "world spacing",
)


@dataclass(frozen=True)
class OnCase:
    """What the real scorer said of a line on a case.

    Parameters
    ----------
    name, case
        METHOD or METHOD@VARIANT; ``dataset/case``.
    verdict
        What is kept.
    file
        Where.
    """

    name: str
    case: str
    verdict: RealVerdict
    file: Path


def check_on_case(
    name: str,
    dataset_name: str,
    case_name: str,
    *,
    roots: Roots,
    say: Callable[[str], None],
    progress: Callable[[int, int], None] | None = None,
) -> OnCase:
    """Run a method on a corpus case and score its field in every reading.

    Raises
    ------
    UsageError
        When the method does not take the dataset, the run fails, or the case is too large to be read in other ways.
    """
    chosen = prepared(name, roots)
    dataset = corpus.filled(corpus.dataset(dataset_name, roots))
    refuse_unfit(chosen, dataset)
    if dataset.large:
        msg = f"{dataset.name} is a large dataset, whose fields are not rewritten in other conventions; name another"
        raise UsageError(msg)
    case = corpus.case(dataset, case_name, roots)
    order = order_of(chosen, roots, say)
    where = f"{dataset.name}/{case.name}"
    with run_case(order, case) as result, tempfile.TemporaryDirectory(prefix="fidopt-check-") as folder:
        if result.failure is not None or result.field is None:
            reason = result.failure.reason if result.failure else "it left no field"
            msg = f"{chosen.name} on {where}: the run failed, so there is nothing to check: {reason}"
            raise UsageError(msg)
        from fidopt.scoring.field import read_scored_field

        field = read_scored_field(result.field, case)
        verdict = judge_on_case(field, case, workdir=Path(folder), progress=progress)
    return OnCase(chosen.name, where, verdict, keeping.keep(chosen, cases={where: verdict}))


def judge_on_case(
    field: DisplacementField, case: Case, *, workdir: Path, progress: Callable[[int, int], None] | None = None
) -> RealVerdict:
    """Score a field as written and in every wrong reading, each against the zero field.

    Parameters
    ----------
    field
        On the case's fixed grid.
    workdir
        A folder to stage in.
    """
    from blocks.image import grid_of, open_image
    from fidopt.scoring.evaluation import score_case

    moving = grid_of(open_image(case.moving)) if case.moving.is_dir() else field.grid
    zero = score_case(case, None, workdir=workdir).metrics
    metric, more = next(((m, more) for m, more in MEASURES if zero.get(m) is not None), ("", True))
    if not metric:
        msg = f"{case.dataset.name}/{case.name} has neither labels nor landmarks to tell readings by; name another case"
        raise UsageError(msg)
    todo = list(readings_of(field, moving))
    values: dict[str, float | None] = {}
    for count, (words, other) in enumerate(todo):
        if progress:
            progress(count, len(todo))
        values[words] = score_case(case, other, workdir=workdir).metrics.get(metric)
    return _verdict(metric, zero[metric], values, more=more)


def readings_of(field: DisplacementField, moving: Grid) -> Iterator[tuple[str, DisplacementField]]:
    """Yield a field as written, and read in every way that is wrong once and not nearly the same on this pair."""
    vectors = np.asarray(field.vectors[(slice(None),)], dtype=np.float64)
    ndim, shape = field.grid.ndim, field.grid.shape
    numbers = vectors.reshape(ndim, -1).T
    index = np.stack(np.meshgrid(*[np.arange(n) for n in shape], indexing="ij"), axis=-1).reshape(-1, ndim)
    pair = Pair(field.grid, moving, field.grid.world(index))
    length = float(np.linalg.norm(numbers, axis=1).mean())
    yield "as written", field
    for words, other in _wrong(vectors, numbers, pair):
        off = float(np.linalg.norm((other - vectors).reshape(ndim, -1), axis=0).mean())
        if off > LEAST * length:
            yield words, DisplacementField(field.grid, other.astype(np.float32))


def _wrong(vectors: Floats, numbers: Floats, pair: Pair) -> Iterator[tuple[str, Floats]]:
    right = Reading.written(pair.ndim)
    signs = [s for s in np.ndindex(*(2,) * pair.ndim) if any(s)]
    found = [replace(right, signs=tuple(1 - 2 * v for v in s)) for s in signs]
    found += [replace(right, order=order) for order in itertools.permutations(range(pair.ndim)) if order != right.order]
    found += [replace(right, frame=f) for f in _FRAMES if not (pair.one_grid and f.startswith("moving"))]
    found.append(replace(right, unit="tenths"))
    for reading in found:
        yield reading.words, reading.displacements(numbers, pair).T.reshape(vectors.shape)
    # A constant field hides this one from the synthetic pairs; a real motion does not.
    for axis, name in enumerate("xyz"[: pair.ndim]):
        yield f"with its voxels mirrored along {name} of the array", np.flip(vectors, axis=pair.ndim - axis)


def _verdict(metric: str, zero: float | None, values: dict[str, float | None], *, more: bool) -> RealVerdict:
    def beats(value: float | None) -> bool:
        return value is not None and zero is not None and (value > zero if more else value < zero)

    written = values["as written"]
    wrong = {words: v for words, v in values.items() if words != "as written" and v is not None and beats(v)}
    said = f"{metric} {_said(zero)} unregistered, {_said(written)} as written"
    if beats(written) and not wrong:
        said = f"{said}: only the field as written beats the zero field"
    elif not wrong:
        said = f"{said}: no reading beats the zero field, so the case tells nothing of the convention"
    else:
        best = (max if more else min)(wrong, key=lambda words: wrong[words])
        also = "too" if beats(written) else "instead"
        said = f"{said}; read {best} it beats the zero field {also} ({_said(wrong[best])})"
        if beats(written) and (wrong[best] < (written or 0.0)) == more:
            said = f"{said}, less than as written: this case does not tell the two apart"
    return RealVerdict(
        passed=beats(written) and not wrong, said=said, metric=metric, zero=zero, written=written, readings=values
    )


def _said(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.4g}"
