"""``fidopt convert``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fidopt.commands.options import Compute, Json, Overwrite
from fidopt.commands.output import progress, say, show, show_json, taken_up
from fidopt.errors import UsageError


def convert(
    src: str,
    dst: str,
    /,
    *,
    labels: Annotated[bool, Parameter(negative=())] = False,
    unit: str | None = None,
    # A hyphen is let through so that a negative size is refused as one.
    spacing: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    overwrite: Overwrite = False,
    compute: Compute | None = None,
    json: Json = False,
) -> int:
    """Write an image of another format as an OME-Zarr store, or a store as NIfTI or TIFF.

    What was written is read back and compared, voxel for voxel, before it counts as done. The same image that is
    there already is left alone.

    Example: `fidopt convert scan.nii.gz scan.ome.zarr`, and back: `fidopt convert scan.ome.zarr copy.nii.gz`.

    Parameters
    ----------
    src
        NIfTI, MetaImage, NRRD, TIFF, OME-TIFF or SVS (FILE:1/2 is its second image, twice halved), HDF5
        (FILE:dataset), a folder or pattern of TIFF planes, a folder of a DICOM series, PNG, JPEG, an OME-Zarr store
    dst
        NAME.ome.zarr, or a file: .nii, .nii.gz, .tif, .mha, .nrrd
    labels
        it is a label map: whole numbers, of which coarser levels keep the most frequent
    unit
        unit of the spacing, where the file does not say: mm, um, m, px
    spacing
        size of a voxel, x first, where the file does not say, such as 0.5,0.5,2
    """
    from fidopt.images import conversion
    from fidopt.images.readers import is_store

    with (compute or Compute()).place() as place, progress(f"writing {dst}") as report:
        done = conversion.convert(
            src,
            dst,
            labels=labels,
            unit=unit,
            spacing=_numbers(spacing),
            overwrite=overwrite,
            client=place.client,
            progress=report if is_store(dst) else None,
        )
    taken_up(done.outcome)
    for sentence in done.lost:
        say(f"{dst}: {sentence}")
    shape = list(done.image.shape)
    if json:
        facts = {"shape": shape, "dims": list(done.image.dims), "dtype": str(done.image.dtype), "state": done.state}
        show_json({"source": src, "destination": dst, **facts, "not_kept": list(done.lost)})
        return 0
    what = f"{' x '.join(map(str, shape))} ({', '.join(map(str, done.image.dims))}) of {done.image.dtype}"
    if done.state == "there already":
        show(f"{dst}: {what}, there already with the same voxels and geometry")
    else:
        show(f"{dst}: {what}, {done.state}, read back and compared")
    return 0


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        msg = f"--spacing expects numbers with commas between, x first, such as 0.5,0.5,2; got {text!r}"
        raise UsageError(msg) from error
