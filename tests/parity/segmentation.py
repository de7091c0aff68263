"""Segmentations and syntheses, against DeepMind's, MONAI's, MetricsReloaded's and KonfAI's measures, BraTS's rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fidopt.scoring.evaluation import Scores
from tests.parity import definitions
from tests.parity.comparison import Comparison
from tests.parity.inputs import Scored, Segmented, Synthesised, bodies, grid
from tests.parity.peers import DEEPMIND, MONAI, RELOADED, Peer

SPACING = (1.2, 0.9, 2.0)
TOLERANCE = 1.3
STRUCTURES = {1: "a ball", 2: "a box", 3: "a plate one voxel thin"}
BORDERS = "they measure between the border voxels of an erosion, each counting once; ours between surfaces, by area"


def output() -> np.ndarray:
    """Return the bodies as somebody might have segmented them, (z, y, x)."""
    made = bodies((1, -1, 2))
    made[made == 3] = 0
    made[bodies((0, 1, -2)) == 3] = 3
    return made


def measured(scored: Scored, peer: Peer) -> Iterator[Comparison]:
    """Yield a peer's figures of three structures that both maps hold."""
    pair = Segmented(bodies(), output(), grid(SPACING), TOLERANCE)
    found, steps = scored("segmented", pair), pair.grid.spacing[::-1]
    for label, given in STRUCTURES.items():
        maps = pair.truth == label, pair.output == label
        theirs = peer(*maps, steps, TOLERANCE)
        ours = {measure: found.labels[measure][str(label)] for measure in ("dice", "hd95", "surface_dice")}
        if "dice" in theirs:
            yield Comparison(peer.name, "Dice", given, ours["dice"], theirs["dice"])
        if peer is DEEPMIND:
            yield Comparison(peer.name, "HD95", given, ours["hd95"], theirs["hd95"])
            yield Comparison(peer.name, "surface Dice", given, ours["surface_dice"], theirs["surface_dice"])
            continue
        hd95 = definitions.border_hd95(*maps, steps)
        yield _apart(peer, "HD95", given, ours["hd95"], theirs["hd95"], hd95)
        near = definitions.border_dice(*maps, steps, tolerance=TOLERANCE)
        yield _apart(peer, "surface Dice", given, ours["surface_dice"], theirs["surface_dice"], near)


def _apart(peer: Peer, measure: str, given: str, ours: float | None, theirs: float, borders: float) -> Comparison:
    """Return a figure taken between borders, which a shape may by chance have in common with ours."""
    chance = Comparison(peer.name, measure, given, ours, theirs)
    if chance.equal:
        return chance
    return Comparison(peer.name, measure, given, ours, theirs, BORDERS, borders)


def monai_areas(scored: Scored) -> Iterator[Comparison]:
    """Yield MONAI's surface Dice by area, which it calls subvoxels."""
    pair = Segmented(bodies(), output(), grid(SPACING), TOLERANCE)
    found = scored("segmented", pair)
    for label, given in STRUCTURES.items():
        theirs = MONAI(pair.truth == label, pair.output == label, pair.grid.spacing[::-1], TOLERANCE)
        ours = found.labels["surface_dice"][str(label)]
        yield Comparison("MONAI", "surface Dice by area", given, ours, theirs["surface_dice_areas"])


def _empties(scored: Scored) -> dict[str, tuple[Scores, np.ndarray, np.ndarray]]:
    """Return what ours says where a structure, the box, is in neither map, missed, or invented."""
    with_box, without = bodies(), bodies(without=2)
    maps = {"in neither map": (without, without), "missed": (with_box, without), "invented": (without, with_box)}
    return {
        name: (scored(f"empty {name}", Segmented(*pair, grid(SPACING), TOLERANCE)), pair[0] == 2, pair[1] == 2)
        for name, pair in maps.items()
    }


#: Why a peer's figure of a structure that a map lacks is not ours: peer, measure, where -> reason.
_WHY = {
    ("BraTS", "Dice", "in neither map"): "rightly finding nothing counts as 1 there; ours leaves it out of the mean",
    ("BraTS", "HD95", "in neither map"): "rightly finding nothing counts as 0 there; ours leaves it out of the mean",
    ("BraTS", "HD95", "missed"): "they take the image's diagonal; ours has no distance to nothing, and Dice counts it",
    (
        "BraTS",
        "HD95",
        "invented",
    ): "they take the image's diagonal; ours has no distance to nothing, and Dice counts it",
    ("surface-distance", "HD95", "in neither map"): "theirs is infinite; ours leaves it out of the mean",
    ("surface-distance", "HD95", "missed"): "theirs is infinite; ours has no distance to nothing, and Dice counts it",
    ("surface-distance", "HD95", "invented"): "theirs is infinite; ours has no distance to nothing, and Dice counts it",
    ("MONAI", "Dice", "invented"): "by default they leave out what the truth lacks; ours counts a false positive as 0",
    ("MONAI", "Dice, empty truths counted", "in neither map"): "they count it as 1; ours leaves it out of the mean",
    ("MetricsReloaded", "Dice", "in neither map"): "they set it to 1 with a warning; ours leaves it out of the mean",
}
_TITLES = {"dice": "Dice", "dice_counted": "Dice, empty truths counted", "hd95": "HD95", "surface_dice": "surface Dice"}


def empties(scored: Scored, peer: Peer | None) -> Iterator[Comparison]:
    """Yield the figures of a structure that one or both maps lack; without a peer BraTS's."""
    steps = grid(SPACING).spacing[::-1]
    for where, (found, truth, made) in _empties(scored).items():
        if peer is None:
            theirs = definitions.brats_empty(truth.any(), made.any(), diagonal=grid(SPACING).diagonal)
        else:
            theirs = peer(truth, made, steps, TOLERANCE)
        for measure, value in theirs.items():
            if measure not in _TITLES:
                continue
            ours = found.labels["dice" if measure.startswith("dice") else measure].get("2")
            key = (peer.name if peer else "BraTS", _TITLES[measure], where)
            yield Comparison(key[0], key[1], f"a structure {where}", ours, value, _WHY.get(key, ""))


def konfai(scored: Scored) -> Iterator[Comparison]:
    """Yield KonfAI's own errors and similarity of a synthesis."""
    import torch
    from konfai.metric.measure import regression

    random = np.random.default_rng(3)
    target = random.normal(50, 20, bodies().shape).astype(np.float32)
    image = (target + random.normal(0, 6, target.shape)).astype(np.float32)
    mask = (bodies() > 0).astype(np.uint8)
    found = scored("synthesis", Synthesised(target, image, mask)).metrics
    tensors = [torch.from_numpy(array)[None, None] for array in (image, target, mask)]
    given = "noise inside a mask"
    for name, criterion in (
        ("MAE", regression.MAE()),
        ("PSNR", regression.PSNR(dynamic_range=100.0)),
        ("SSIM", regression.SSIM(dynamic_range=100.0)),
    ):
        value = criterion(*tensors)
        theirs = float(value[1] if isinstance(value, tuple) else value)
        why = "theirs is over the whole image, where outside the mask nothing differs; ours over the mask's voxels"
        back = float(_masked_ssim(image, target, mask != 0)) if name == "SSIM" else None
        yield Comparison("KonfAI", name, given, found[name.lower()], theirs, why if back is not None else "", back=back)


def _masked_ssim(image: np.ndarray, target: np.ndarray, mask: np.ndarray) -> float:
    """Return the mean over the mask of scikit-image's map of SSIM, both images 0 outside."""
    from skimage.metrics import structural_similarity

    pair = [np.where(mask, array, 0).astype(np.float64) for array in (image, target)]
    _, similarity = structural_similarity(*pair, data_range=100.0, full=True)
    return float(similarity[mask].mean())


def peers(scored: Scored, peer: Peer) -> Iterator[Comparison]:
    """Yield all figures of a peer."""
    yield from measured(scored, peer)
    yield from monai_areas(scored) if peer is MONAI else ()
    yield from empties(scored, peer)


__all__ = ["DEEPMIND", "MONAI", "RELOADED", "empties", "konfai", "peers"]
