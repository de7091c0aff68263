"""An image from one format to another, read back and compared before it counts as done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from blocks.execute import Outcome, Progress, write_image
from blocks.image import kind_of, open_image, unit_of
from blocks.storage import StoreError, is_url
from fidopt.errors import FidoptError, InputError, OutputExistsError
from fidopt.images.atomic import refuse_inside_store, written_whole
from fidopt.images.identity import header, identity
from fidopt.images.readers import NIFTI, is_store, read_image, refusing
from fidopt.images.writers import WRITTEN, Keeps, differences, not_kept, write_file

#: How far a file's geometry may be from the image's, relative to the spacing: NIfTI holds float32, the others text.
TOLERANCE = {"nifti": 1e-6, "other": 1e-12}
#: Length of a unit that NIfTI states in the millimetres it is read in.
_MILLIMETRES = {"um": 1e-3, "m": 1e3}


@dataclass(frozen=True)
class Conversion:
    """What a conversion did.

    Parameters
    ----------
    image
        The image, as it was read.
    state
        Written now, taken up where an earlier attempt stopped, or there already with the same voxels and geometry.
    lost
        What the format does not keep, a sentence each.
    outcome
        What an earlier attempt had left of a store; None where no store was written.
    """

    image: xr.DataArray
    state: Literal["written", "taken up", "there already"]
    lost: tuple[str, ...]
    outcome: Outcome | None = None


def convert(
    source: str | Path,
    destination: str | Path,
    *,
    labels: bool = False,
    unit: str | None = None,
    spacing: Sequence[float] | None = None,
    overwrite: bool = False,
    client: Any = None,  # noqa: ANN401 - distributed is not typed
    progress: Progress | None = None,
) -> Conversion:
    """Write an image in another format, and compare what was written with what was read.

    Parameters
    ----------
    source
        Anything :func:`fidopt.images.readers.read_image` reads.
    destination
        A store (``.ome.zarr``, a folder or ``s3://``), or a file that :func:`fidopt.images.writers.write_file` writes.
    labels, unit, spacing
        As for :func:`~fidopt.images.readers.read_image`.
    overwrite
        Whether another image that is there is replaced.
    client
        A Dask client; by default threads on this machine's cores.
    progress
        Called as a store's shards are written.

    Raises
    ------
    InputError
        When the source cannot be read, or the destination is of no format that is written.
    OutputExistsError
        When another image is there.
    """
    name = str(destination)
    with refusing(name):
        refuse_inside_store(name)
    if not is_store(name) and not name.lower().endswith(WRITTEN):
        msg = f"{name}: this format is not written; written are .ome.zarr, {', '.join(WRITTEN)}"
        raise InputError(msg)
    image = read_image(source, labels=labels, unit=unit, spacing=spacing)
    lost = () if is_store(name) else tuple(not_kept(name, image))
    if found := _found(name, image):
        if not found.differs:
            return Conversion(image, "there already", lost)
        if not overwrite:
            msg = f"{name} is there and is another image ({found.differs[0]}); give --overwrite to replace it"
            raise OutputExistsError(msg)
    with refusing(name):
        if is_store(name):
            spaced = None if spacing is None else [float(n) for n in spacing]
            made_from = header({"source": identity(source), "labels": labels, "unit": unit, "spacing": spaced})
            outcome = write_image(
                name, image, overwrite=overwrite, made_from=made_from, progress=progress, client=client
            )
            _refuse_different(name, image, name=name, source=source)
            return Conversion(image, outcome.state, lost, outcome)
        with written_whole(name) as part:
            write_file(part, image)
            _refuse_different(str(part), image, name=name, source=source)
    return Conversion(image, "written", lost)


def _refuse_different(written: str, image: xr.DataArray, *, name: str, source: str | Path) -> None:
    """Refuse what was written where it is not the image; a file then never takes its name."""
    try:
        wrong = _compared(written, image)
    except InputError as error:
        wrong = ["it cannot be read back (" + str(error).replace(Path(written).name, Path(name).name) + ")"]
    if not wrong:
        return
    kept = "do not use it" if written == name else "nothing was kept; choose another format"
    msg = f"{name}: what was written is not what was read from {source}: {'; '.join(wrong)}; {kept}"
    raise FidoptError(msg)


@dataclass(frozen=True)
class _Found:
    differs: list[str]


def _found(name: str, image: xr.DataArray) -> _Found | None:
    """Return how an image that is there differs; None where there is nothing, or a store that was not finished."""
    if not is_url(name) and not Path(name.removeprefix("file://")).exists():
        return None
    try:
        return _Found(_compared(name, image))
    except StoreError:
        # What lies there is no finished store: the writer knows what may be cleared away.
        return None
    except InputError as error:
        return _Found([str(error)])


def _compared(name: str, image: xr.DataArray) -> list[str]:
    """Compare what lies at a name with an image."""
    if is_store(name):
        stored = open_image(name)
        said = [
            f"its {what} is {got}, expected {expected}"
            for what, got, expected in (
                ("type", stored.dtype, image.dtype),
                ("unit", unit_of(stored), unit_of(image)),
                ("kind", kind_of(stored), kind_of(image)),
            )
            if got != expected
        ]
        return said + differences(stored, image, tolerance=0)
    nifti, tiff = name.lower().endswith(NIFTI), name.lower().endswith((".tif", ".tiff"))
    keeps: Keeps = "geometry"
    if tiff:
        keeps = "nothing" if image.dtype.str[1:] in {"i8", "u8", "f2"} else "spacing"
    factor = _MILLIMETRES.get(unit_of(image) or "px", 1.0) if nifti else 1.0
    tolerance = TOLERANCE["nifti" if nifti else "other"]
    return differences(read_image(name), image, tolerance=tolerance, keeps=keeps, factor=factor)
