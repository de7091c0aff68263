"""Units of length: their short names, as datasets write them, and NGFF's."""

from __future__ import annotations

#: Short name -> the name OME-Zarr gives the unit.
NGFF_NAMES: dict[str, str] = {
    "Å": "angstrom",
    "nm": "nanometer",
    "um": "micrometer",
    "mm": "millimeter",
    "cm": "centimeter",
    "dm": "decimeter",
    "m": "meter",
    "km": "kilometer",
    "in": "inch",
    "ft": "foot",
    "yd": "yard",
    "mi": "mile",
}
_SHORT = {long: short for short, long in NGFF_NAMES.items()}
# Two characters look like a micro sign; both are in use.
_SHORT |= {"µm": "um", "μm": "um", "micron": "um", "angstroms": "Å", "pixel": "px", "voxel": "px", "": "px"}


def canonical_unit(unit: str | None) -> str:
    """Return the short name of a unit: "mm" for "millimeter", "px" for no unit; an unknown one as it is."""
    if unit is None:
        return "px"
    name = str(unit).strip()
    if name in NGFF_NAMES or name == "px":
        return name
    lower = name.lower()
    return lower if lower in NGFF_NAMES else _SHORT.get(lower, _SHORT.get(lower.replace("metre", "meter"), name))


def ngff_unit(unit: str | None) -> str | None:
    """Return the name a store states for a unit, None where it states none ("px")."""
    name = canonical_unit(unit)
    return None if name == "px" else NGFF_NAMES.get(name, name)
