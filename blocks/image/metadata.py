"""The root attributes of a store, written and read: OME-Zarr's multiscales, and the ``konfai`` attribute.

OME-Zarr states a scale and a translation an axis and knows no direction. The ``konfai`` attribute keeps origin,
spacing and direction as KonfAI writes and reads them: text, world order (x, y, z), the direction row by row.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from blocks.grid import Grid
from blocks.image.units import canonical_unit, ngff_unit
from blocks.image.view import CHANNEL, SPATIAL, Kind
from blocks.storage import StoreError

Attributes = dict[str, Any]
#: What the root of a group of several images says, what it is, and where such a group keeps one.
_COLLECTIONS = {
    "bioformats2raw.layout": ("a collection of images (bioformats2raw)", "0"),
    "plate": ("a plate", "A/1/0"),
    "well": ("a well of a plate", "0"),
    "labels": ("a list of label maps", "NAME"),
}


@dataclass(frozen=True)
class LevelPlace:
    """Where one level of a store is: its array and its scale and translation along the spatial axes, array order."""

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]


@dataclass(frozen=True)
class Multiscales:
    """What a store's root attributes say.

    Parameters
    ----------
    axes
        Names of the arrays' axes: (t) (c) (z) y x.
    unit
        Short name of the unit, "px" where the store states none.
    kind
        What the store says it holds.
    levels
        Level 0 first.
    direction
        Row-major, world order; None where there is no ``konfai`` attribute.
    spacing, origin
        Of the ``konfai`` attribute, world order, where they count; None where they are not level 0's.
    """

    axes: tuple[str, ...]
    unit: str
    kind: Kind
    levels: tuple[LevelPlace, ...]
    direction: tuple[float, ...] | None
    spacing: tuple[float, ...] | None
    origin: tuple[float, ...] | None

    @property
    def dims(self) -> tuple[str, ...]:
        """Axes of an image of this store: (c,) (z,) y, x."""
        return tuple(a for a in self.axes if a != "t")

    def grid(self, shape: Sequence[int], level: int) -> Grid:
        """Return where the voxels of a level are, given its spatial shape."""
        base = self.levels[0]
        spacing = self.spacing or base.scale[::-1]
        origin = self.origin or base.translation[::-1]
        first = Grid.of([1] * len(base.scale), spacing=spacing, origin=origin, direction=self.direction)
        if level == 0:
            return Grid(tuple(shape), first.spacing, first.origin, first.direction)
        place = self.levels[level]
        shift = [
            (t - t0) / s0 for t, t0, s0 in zip(place.translation, base.translation, first.spacing[::-1], strict=True)
        ]
        # Levels sit half voxels apart: taken as that, the position does not pick up the rounding of the translation.
        index = [round(2 * v) / 2 if abs(2 * v - round(2 * v)) < 1e-6 else v for v in shift]
        world = tuple(float(v) for v in first.world(index))
        return Grid(tuple(shape), place.scale[::-1], world, first.direction)


def root_attributes(
    grid: Grid, levels: Sequence[LevelPlace], *, unit: str, kind: Kind, channels: bool, extra: Mapping[str, Any] | None
) -> Attributes:
    """Return the attributes of a store's root group.

    Parameters
    ----------
    grid
        Level 0's.
    levels
        Every level, the finest first.
    unit
        Short name; "px" states no unit.
    kind
        ``"labels"`` is recorded; an image is what a store holds that says nothing.
    channels
        Whether there is a channel axis, the first.
    extra
        Further keys of the root.
    """
    stated = ngff_unit(unit)
    space = [{"name": d, "type": "space"} | ({"unit": stated} if stated else {}) for d in SPATIAL[-grid.ndim :]]
    axes = [{"name": CHANNEL, "type": "channel"}, *space] if channels else space
    datasets = [dataset_entry(place, channels=channels) for place in levels]
    multiscales = {"axes": axes, "datasets": datasets, "type": "mode" if kind == "labels" else "mean"}
    geometry = {"Origin": grid.origin, "Spacing": grid.spacing, "Direction": grid.direction}
    konfai = {f"{key}_0": number_text(values) for key, values in geometry.items()}
    attributes: Attributes = {
        "ome": {"version": "0.5", "multiscales": [multiscales]},
        "konfai": {"attributes": konfai},
    }
    if kind == "labels":
        attributes["fidopt"] = {"kind": "labels"}
    for key, value in (extra or {}).items():
        if key in ("ome", "konfai"):
            msg = f"the root attribute {key!r} follows from the image; got another one as an extra attribute"
            raise ValueError(msg)
        attributes[key] = {**value, **attributes[key]} if key in attributes else value
    return attributes


def number_text(values: Sequence[float]) -> str:
    """Return numbers as KonfAI writes them: the shortest digits that read back to the same float64, on one line."""
    with np.printoptions(
        threshold=sys.maxsize, floatmode="unique", precision=8, suppress=False, linewidth=75, sign="-"
    ):
        return str(np.array(values, dtype=np.float64)).replace("\n", "")


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of one of KonfAI's attributes, NumPy's or Python's way of printing them."""
    return tuple(float(word) for word in text.strip().strip("[]()").replace(",", " ").split())


def parse_root(attributes: Mapping[str, Any], where: str) -> Multiscales:
    """Return what a store's root attributes say; OME-Zarr 0.4 and 0.5.

    Raises
    ------
    StoreError
        When they are not those of an OME-Zarr image, or of one whose axes are not (t) (c) (z) y x.
    """
    for key in ("ome", "konfai", "fidopt"):
        if not isinstance(attributes.get(key) or {}, Mapping):
            msg = f"{where}: {key}: expected an object in the root attributes, got {attributes[key]!r}"
            raise StoreError(msg)
    ome = attributes.get("ome") or attributes
    if "multiscales" not in ome and (several := next((key for key in _COLLECTIONS if key in ome), None)):
        what, within = _COLLECTIONS[several]
        msg = f"{where} is {what}, not one image: name an image within it, such as {where}/{within}"
        raise StoreError(msg)
    try:
        entry = ome["multiscales"][0]
        axes = tuple(str(axis["name"]).lower() for axis in entry["axes"])
        spatial = len(_spatial(axes, where))
        units = {a.get("unit") for a in entry["axes"] if str(a["name"]).lower() in SPATIAL}
        outer = entry.get("coordinateTransformations", [])
        levels = tuple(_place(dataset, outer, axes, where) for dataset in entry["datasets"])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        what = f"lack {error}" if isinstance(error, KeyError) else f"are not those of one ({error})"
        msg = f"{where} is not an OME-Zarr image of version 0.4 or 0.5: its root attributes {what}"
        raise StoreError(msg) from error
    if not levels or len(units) != 1:
        stated = ", ".join(sorted(str(u) for u in units))
        msg = f"{where} states no level" if not levels else f"{where} has axes in different units ({stated})"
        raise StoreError(f"{msg}; convert it with a tool that writes OME-Zarr 0.5 first")
    labels = "image-label" in ome or (attributes.get("fidopt") or {}).get("kind") == "labels"
    recorded = _konfai(attributes, where, spatial)
    spacing, origin = recorded.get("Spacing"), recorded.get("Origin")
    if not (_same(spacing, levels[0].scale) and _same(origin, levels[0].translation)):
        spacing = origin = None
    kind: Kind = "labels" if labels else "image"
    return Multiscales(axes, canonical_unit(units.pop()), kind, levels, recorded.get("Direction"), spacing, origin)


def _spatial(axes: tuple[str, ...], where: str) -> tuple[str, ...]:
    spatial = tuple(a for a in axes if a in SPATIAL)
    leading = axes[: len(axes) - len(spatial)]
    if spatial not in (SPATIAL, SPATIAL[1:]) or leading not in ((), ("c",), ("t",), ("t", "c")):
        msg = f"{where} has the axes {', '.join(axes)}; expected (t, one point) (c) (z) y x in this order"
        raise StoreError(msg)
    return spatial


def dataset_entry(place: LevelPlace, *, channels: bool) -> Attributes:
    """Return a level's entry in the multiscales; a channel axis has scale one and no translation."""
    scale, translation = list(place.scale), list(place.translation)
    if channels:
        scale, translation = [1.0, *scale], [0.0, *translation]
    steps = [{"type": "scale", "scale": scale}, {"type": "translation", "translation": translation}]
    return {"path": place.path, "coordinateTransformations": steps}


def _place(dataset: Attributes, outer: Sequence[Attributes], axes: tuple[str, ...], where: str) -> LevelPlace:
    """Return a level's place, its own transformations followed by those of the whole multiscale image."""
    path = str(dataset["path"])
    if not path or path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
        msg = f"{where}: ome: multiscales: datasets: path: expected a name inside the store, got {path!r}"
        raise StoreError(msg)
    spatial = len(_spatial(axes, where))
    scale, translation = np.ones(spatial), np.zeros(spatial)
    for step in [*dataset["coordinateTransformations"], *outer]:
        if step["type"] == "scale":
            factor = _numbers(step, "scale", axes, where)
            scale, translation = scale * factor, translation * factor
        elif step["type"] == "translation":
            translation = translation + _numbers(step, "translation", axes, where)
        elif step["type"] != "identity":
            # Left out, the image would lie in another place than its store says.
            msg = f"{where}: coordinateTransformations: type: expected scale, translation or identity"
            raise StoreError(f"{msg}, got {step['type']!r}; convert it with a tool that writes OME-Zarr 0.5 first")
    return LevelPlace(path, _floats(scale), _floats(translation))


def _numbers(step: Attributes, key: str, axes: tuple[str, ...], where: str) -> npt.NDArray[np.float64]:
    """Return a transformation's numbers along the spatial axes."""
    spatial = len(_spatial(axes, where))
    said: Any = step.get(key)
    # Some tools leave out the axes that are not of space.
    whole = isinstance(said, list) and len(said) in (len(axes), spatial)
    if not whole or not all(type(n) in (int, float) and abs(n) <= sys.float_info.max for n in said):
        numbers = None
    else:
        numbers = np.array(said[-spatial:], dtype=np.float64)
    if numbers is None or (key == "scale" and not (numbers > 0).all()):
        what = "positive numbers" if key == "scale" else "numbers"
        msg = f"{where}: coordinateTransformations: {key}: expected {what}, one an axis, got {said}"
        raise StoreError(msg)
    return numbers


def _konfai(attributes: Mapping[str, Any], where: str, spatial: int) -> dict[str, tuple[float, ...]]:
    """Return origin, spacing and direction of the ``konfai`` attribute, those that are there."""
    recorded = (attributes.get("konfai") or {}).get("attributes") or {}
    if not isinstance(recorded, Mapping):
        msg = f"{where}: konfai: attributes: expected an object, got {recorded!r}"
        raise StoreError(msg)
    found: dict[str, tuple[float, ...]] = {}
    for key, count in (("Origin", spatial), ("Spacing", spatial), ("Direction", spatial * spatial)):
        text = _latest(recorded, key)
        if text is None:
            continue
        try:
            values = parse_numbers(str(text))
        except ValueError:
            values = ()
        if len(values) != count or not np.isfinite(values).all():
            msg = f"{where}: konfai: attributes: {key}: expected {count} numbers, got {text!r}"
            raise StoreError(msg)
        found[key] = values
    return found


def _latest(recorded: Mapping[str, Any], key: str) -> object | None:
    """Return the last value KonfAI stacked under a key: ``Origin_1`` after ``Origin_0``, or a plain ``Origin``."""
    stack = [k for k in recorded if k.startswith(f"{key}_") and k[len(key) + 1 :].isdigit()]
    return cast("object | None", recorded[f"{key}_{len(stack) - 1}"] if stack else recorded.get(key))


def _same(recorded: tuple[float, ...] | None, level: tuple[float, ...]) -> bool:
    """Whether world-order numbers are a level's array-order ones as float32."""
    if recorded is None:
        return False
    # Beyond float32 all numbers are infinite, and the same.
    with np.errstate(over="ignore"):
        return bool(np.array_equal(np.asarray(recorded[::-1], np.float32), np.asarray(level, np.float32)))


def _floats(values: npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
