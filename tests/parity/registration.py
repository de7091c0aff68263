"""Registrations, against Learn2Reg's evaluation and ANHIR's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from blocks.grid import Grid
from blocks.kernels import surface
from tests.parity import definitions as theirs
from tests.parity.comparison import Comparison, mean
from tests.parity.inputs import Pair, Scored, bodies, grid, waves

LEARN2REG = "Learn2Reg"
LABELS = (1, 2, 3)
COARSE = (1.2, 0.9, 2.0)


def _warped(pair: Pair) -> np.ndarray:
    """Return their warped map, (x, y, z)."""
    return theirs.learn2reg_warp(pair.moving.T, pair.voxels)


def learn2reg_labels(scored: Scored) -> Iterator[Comparison]:
    """Yield Dice and HD95, of labels that stay, are lost, or lie at the edge."""
    pair = Pair(grid(), bodies(), bodies((1, -2, 2)), waves())
    warped = _warped(pair)
    maps = (pair.fixed.T, pair.moving.T, warped)
    found = scored("pair", pair)
    dice, far = theirs.learn2reg_dice(*maps, LABELS), theirs.learn2reg_hd95(*maps, LABELS)
    yield Comparison(LEARN2REG, "Dice", "a pair", found.metrics["dice"], mean(dice.values()))
    for label in LABELS:
        here = found.labels["dice"][str(label)]
        yield Comparison(LEARN2REG, f"Dice of label {label}", "a pair", here, dice[label])
    yield Comparison(LEARN2REG, "HD95", "a pair of 1 mm voxels", found.metrics["hd95"], mean(far.values()))
    yield from _spacing(scored, pair, far)
    yield from _missing(scored, pair)
    yield from _lost(scored, pair)
    yield _edge(scored)


def _spacing(scored: Scored, pair: Pair, far: dict[int, float]) -> Iterator[Comparison]:
    coarse = replace(pair, grid=grid(COARSE))
    found = scored("coarse", coarse)
    why = "their code measures in voxels (a spacing of one), ours in the dataset's unit"
    warped = _warped(pair).T
    each = [surface.surface_distances(pair.fixed, warped, label=label, steps=(1.0,) * 3) for label in LABELS]
    bridge = mean(surface.hausdorff(one) for one in each if one)
    given = "the same pair, voxels of 1.2 x 0.9 x 2 mm"
    yield Comparison(LEARN2REG, "HD95", given, found.metrics["hd95"], mean(far.values()), why, bridge)


def _missing(scored: Scored, pair: Pair) -> Iterator[Comparison]:
    without = replace(pair, moving=bodies((1, -2, 2), without=3))
    found = scored("without", without)
    maps = (without.fixed.T, without.moving.T, _warped(without))
    dice, far = theirs.learn2reg_dice(*maps, LABELS), theirs.learn2reg_hd95(*maps, LABELS)
    given = "the moving map lacks a label"
    yield Comparison(LEARN2REG, "Dice", given, found.metrics["dice"], mean(dice.values()))
    yield Comparison(LEARN2REG, "HD95", given, found.metrics["hd95"], mean(far.values()))


def _lost(scored: Scored, pair: Pair) -> Iterator[Comparison]:
    """The plate, one voxel thin, is squeezed out between two voxels that are read."""
    voxels = pair.voxels * 0
    voxels[2] += np.where(np.indices(voxels.shape[1:])[2] <= 4, -2.0, 2.0)
    lost = replace(pair, moving=bodies(), voxels=voxels)
    found = scored("lost", lost)
    maps = (lost.fixed.T, lost.moving.T, _warped(lost))
    dice, far = theirs.learn2reg_dice(*maps, LABELS), theirs.learn2reg_hd95(*maps, LABELS)
    given = "the warp erases a label"
    yield Comparison(LEARN2REG, "Dice", given, found.metrics["dice"], mean(dice.values()))
    why = "their mean is infinite, ours that of the labels kept; labels_lost counts the others, whose Dice is 0"
    kept = [far[label] for label in (1, 2)]
    yield Comparison(LEARN2REG, "HD95", given, found.metrics["hd95"], mean(far.values()), why, back=mean(kept))


def _edge(scored: Scored) -> Comparison:
    """A label that fills the image, read 0.4 voxel beyond its last centres."""
    full = np.ones(bodies().shape, np.uint8)
    voxels = np.zeros((3, *full.shape[::-1]))
    voxels[0] += 0.4
    pair = Pair(grid(), full, full, voxels, labels={"1": "all"})
    dice = theirs.learn2reg_dice(full.T, full.T, _warped(pair), (1,))[1]
    inside = full.copy()
    inside[..., -1] = 0  # what is read beyond the centres of the last column
    bridge = 2 * inside.sum() / (full.sum() + inside.sum())
    why = "their warp reads nothing beyond the outermost centres; ITK's, and ours, reads a voxel out to its faces"
    ours = scored("edge", pair).metrics["dice"]
    return Comparison(LEARN2REG, "Dice", "labels at the faces of the image", ours, dice, why, float(bridge))


def learn2reg_field(scored: Scored) -> Iterator[Comparison]:
    """Yield SDlogJ and foldings, on a straight and an oblique grid, smooth and folded."""
    mask = (bodies() > 0).astype(np.uint8)
    for name, own in (("straight", grid(COARSE)), ("oblique", grid(COARSE, oblique=True))):
        pair = Pair(own, bodies(), bodies(), waves(), mask=mask)
        metrics = scored(f"field-{name}", pair).metrics
        given = f"a smooth field on {name} axes"
        spread, folds = theirs.learn2reg_regularity(pair.voxels)
        inside, _ = theirs.learn2reg_regularity(pair.voxels, mask.T)
        yield Comparison(LEARN2REG, "SDlogJ", given, metrics["sdlogj"], spread)
        yield Comparison(LEARN2REG, "SDlogJ in the mask", given, metrics["sdlogj_mask"], inside)
        yield Comparison(LEARN2REG, "foldings", given, metrics["folds"], folds)
    pair = Pair(grid(COARSE), bodies(), bodies(), waves(6.0))
    metrics = scored("field-folded", pair).metrics
    spread, folds = theirs.learn2reg_regularity(pair.voxels)
    given = "a field that folds"
    yield Comparison(LEARN2REG, "SDlogJ", given, metrics["sdlogj"], spread)
    why = (
        "they count determinants that were clipped above 0, always none; ours is the fraction of all voxels with J <= 0"
    )
    yield Comparison(LEARN2REG, "foldings", given, metrics["folds"], folds, why)
    inner = theirs.learn2reg_determinants(pair.voxels)
    matrix = np.moveaxis(np.stack([np.stack(np.gradient(c)) for c in pair.voxels]), (0, 1), (-2, -1)) + np.eye(3)
    whole = float((np.linalg.det(matrix) <= 0).mean())
    why = "they leave two voxels out at each face, where ours counts too, by one-sided differences"
    unclipped = float((inner <= 0).mean())
    ours = metrics["folds"]
    yield Comparison(LEARN2REG, "foldings before the clip, as a fraction", given, ours, unclipped, why, back=whole)


def learn2reg_landmarks(scored: Scored) -> Iterator[Comparison]:
    """Yield the landmark error, at voxels and between them."""
    random = np.random.default_rng(0)
    size = np.array(bodies().shape[::-1])
    whole = random.integers(1, size - 2, (30, 3)).astype(float)
    for given, points in (("landmarks at voxels", whole), ("landmarks between voxels", whole + random.random((30, 3)))):
        pair = Pair(grid(COARSE), bodies(), bodies(), waves(), points=(points, points + random.normal(size=(30, 3))))
        ours = scored(given.replace(" ", "-"), pair).metrics["tre"]
        cubic, linear = (
            float(theirs.learn2reg_tre(*pair.points, pair.voxels, COARSE, order=order).mean()) for order in (3, 1)
        )
        if given == "landmarks at voxels":
            yield Comparison(LEARN2REG, "TRE", given, ours, cubic)
        else:
            why = "they read the field at a landmark by a cubic spline, ours linearly, as ITK moves a point"
            yield Comparison(LEARN2REG, "TRE", given, ours, cubic, why, back=linear)


def anhir(scored: Scored) -> Iterator[Comparison]:
    """Yield the relative landmark error, in pixels of a photograph."""
    plane = Grid.of((30, 40), spacing=(1.0, 1.0))
    flat = np.zeros((30, 40), np.uint8)
    flat[5:9, 5:9] = 1
    random = np.random.default_rng(1)
    fixed = random.uniform(2, 25, (21, 2))
    moving = fixed + random.normal(size=fixed.shape) ** 2
    shifted = Pair(plane, flat, flat, np.full((2, 40, 30), 1.5), (fixed, moving), labels={"1": "box"})
    found = scored("anhir-shift", shifted)
    # Their warp takes the moving landmarks to the fixed image; of a shift that is the same distance.
    rtre = theirs.anhir_rtre(moving - 1.5, fixed, (40, 30))
    given = "a shift"
    yield Comparison("ANHIR", "mean rTRE", given, found.metrics["rtre"], float(rtre.mean()))
    why = "they sum a pair up by its median, ours keeps the mean: the median of ours is theirs"
    bridge = float(np.median(found.landmarks["tre"]) / plane.diagonal)
    yield Comparison("ANHIR", "rTRE", given, found.metrics["rtre"], float(np.median(rtre)), why, bridge)
    across = np.stack(np.meshgrid(np.arange(40.0), np.arange(30.0), indexing="ij")) * 0.1
    grown = replace(shifted, voxels=across, points=(fixed, fixed * 1.1 + random.normal(size=fixed.shape)))
    ours = scored("anhir-growth", grown).metrics["rtre"]
    rtre = theirs.anhir_rtre(grown.points[1] / 1.1, fixed, (40, 30))
    why = "they take the moving landmarks to the fixed image, ours the fixed ones to the moving: 1.1 times as far"
    assert ours is not None
    yield Comparison("ANHIR", "mean rTRE", "a growth by a tenth", ours, float(rtre.mean()), why, ours / 1.1)
