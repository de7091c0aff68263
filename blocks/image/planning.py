"""What a store will hold, as a value: its levels, how each lies on disk, and its root's attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from blocks.image.levels import level_shape, level_translation, planned_levels
from blocks.image.metadata import LevelPlace, dataset_entry, root_attributes
from blocks.image.opening import Store
from blocks.image.view import Kind, channels_of, checked_kind, dims_of, grid_of, kind_of, unit_of
from blocks.storage import Layout


@dataclass(frozen=True)
class StorePlan:
    """The arrays of a store, the finest first, what they hold, and the attributes of the store's root."""

    places: tuple[LevelPlace, ...]
    layouts: tuple[Layout, ...]
    kind: Kind
    root: Mapping[str, Any]


def plan_store(
    image: xr.DataArray,
    *,
    kind: Kind | None = None,
    levels: bool = True,
    attributes: Mapping[str, Any] | None = None,
) -> StorePlan:
    """Return what the store of an image will hold.

    Parameters
    ----------
    image
        Dims (c,) (z,) y, x.
    kind
        By default what the image says it is.
    levels
        Whether there are coarser levels.
    attributes
        Further keys of the root.
    """
    kind = kind_of(image) if kind is None else checked_kind(kind)
    grid, channels = grid_of(image), channels_of(image)
    halvings = planned_levels(grid.shape) if levels else planned_levels(grid.shape)[:1]
    first = LevelPlace("0", grid.spacing[::-1], grid.origin[::-1])
    places = _places(first, halvings)
    names = dims_of(grid.ndim, channels=channels is not None)
    leading = () if channels is None else (channels,)
    layouts = tuple(Layout.of((*leading, *level_shape(grid.shape, h)), image.dtype, names) for h in halvings)
    root = root_attributes(
        grid, places, unit=unit_of(image), kind=kind, channels=channels is not None, extra=attributes
    )
    return StorePlan(places, layouts, kind, root)


def plan_levels(store: Store, root: Mapping[str, Any], *, kind: Kind) -> StorePlan:
    """Return what a store will hold once its coarser levels are made again from its level 0.

    Parameters
    ----------
    store
        The store, of one image.
    root
        Its root's attributes, of which all but the levels and the kind are kept.
    kind
        How a coarser level comes from the one before it.
    """
    base, axes, kind = store.level(0), store.multiscales.dims, checked_kind(kind)
    spatial = base.grid.shape
    halvings = planned_levels(spatial)
    places = _places(store.multiscales.levels[0], halvings)
    leading = base.shape[: len(axes) - len(spatial)]
    layouts = tuple(Layout.of((*leading, *level_shape(spatial, h)), base.dtype, axes) for h in halvings)
    return StorePlan(places, layouts, kind, with_levels(root, places, kind=kind))


def with_levels(root: Mapping[str, Any], places: tuple[LevelPlace, ...], *, kind: Kind) -> dict[str, Any]:
    """Return a root's attributes with other levels and another kind."""
    ome = root["ome"]
    first = dict(ome["multiscales"][0])
    first.pop("coordinateTransformations", None)
    channels = any(axis.get("type") == "channel" for axis in first["axes"])
    first |= {
        "datasets": [dataset_entry(place, channels=channels) for place in places],
        "type": "mode" if kind == "labels" else "mean",
    }
    changed = {**root, "ome": {**ome, "multiscales": [first, *ome["multiscales"][1:]]}}
    said = {k: v for k, v in (root.get("fidopt") or {}).items() if k != "kind"}
    if kind == "labels":
        said["kind"] = "labels"
    changed.pop("fidopt", None)
    return changed | ({"fidopt": said} if said else {})


def _places(first: LevelPlace, halvings: list[tuple[int, ...]]) -> tuple[LevelPlace, ...]:
    """Return the place of every level, given level 0's; a coarser level's array is named by its number."""
    # A store of another tool may call its level 0 so.
    taken = first.path.split("/")[0]
    return (
        first,
        *(
            LevelPlace(
                f"level{number}" if str(number) == taken else str(number),
                tuple(s * 2**k for s, k in zip(first.scale, halved, strict=True)),
                level_translation(first.translation, first.scale, halved),
            )
            for number, halved in enumerate(halvings[1:], start=1)
        ),
    )
