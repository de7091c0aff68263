"""What a TIFF's OME, ImageJ or Aperio metadata say of its voxels' size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tifffile


@dataclass(frozen=True)
class Calibration:
    """What a TIFF says of its voxels' size.

    Parameters
    ----------
    spacing
        x, y[, z], NaN along an axis the file leaves out; None where it says nothing.
    unit
        Unit of the spacing, as the file writes it; None where it says nothing.
    channels
        Whether the image's first axis is of channels.
    """

    spacing: tuple[float, ...] | None
    unit: str | None
    channels: bool = False


def calibration(tiff: Any, *, ndim: int, series: int) -> Calibration:  # noqa: ANN401 - tifffile is not typed here
    """Return what an open file says of the voxels of one of its images, at its full resolution.

    Parameters
    ----------
    tiff
        tifffile's open file.
    ndim
        Spatial axes.
    series
        Which image.
    """
    if tiff.is_ome:
        return _of_ome(tifffile.xml2dict(tiff.ome_metadata), ndim=ndim, series=series)
    if series:
        # What else states a size states it of the first image.
        return Calibration(None, None)
    if tiff.is_imagej:
        facts = tiff.imagej_metadata or {}
        steps = [_pixel(tiff, "XResolution"), _pixel(tiff, "YResolution"), float(facts.get("spacing", np.nan))]
        unit = str(facts.get("unit") or "").replace("\\u00B5", "µ")
        return Calibration(tuple(steps[:ndim]), unit) if unit and unit != "pixel" else Calibration(None, None)
    if tiff.is_svs:
        facts = tifffile.tifffile.svs_description_metadata(tiff.pages[0].description)
        size = facts.get("MPP")
        return Calibration((float(size),) * ndim, "um") if size else Calibration(None, None)
    return Calibration(None, None)


def _of_ome(document: dict[str, Any], *, ndim: int, series: int) -> Calibration:
    image = document["OME"]["Image"]
    pixels = (image[series] if isinstance(image, list) else image)["Pixels"]
    axes = "XYZ"[:ndim]
    if not any(f"PhysicalSize{axis}" in pixels for axis in axes):
        return Calibration(None, None)
    spacing = tuple(float(pixels.get(f"PhysicalSize{axis}", np.nan)) for axis in axes)
    units = {str(pixels.get(f"PhysicalSize{axis}Unit", "µm")) for axis in axes if f"PhysicalSize{axis}" in pixels}
    if len(units) > 1:
        msg = f"its OME metadata give one voxel in several units ({', '.join(sorted(units))})"
        raise ValueError(msg)
    return Calibration(spacing, units.pop())


def _pixel(tiff: Any, tag: str) -> float:  # noqa: ANN401 - tifffile is not typed here
    found = tiff.pages[0].tags.get(tag)
    if found is None or not found.value[0]:
        return float("nan")
    count, length = found.value
    return float(length) / float(count)
