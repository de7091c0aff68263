"""A transform from any file that holds one, as the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blocks.transforms import Affine, Composite, Transform
from fidopt.errors import InputError, UsageError
from fidopt.images import elastix, itk, volumes
from fidopt.images.fields import read_field
from fidopt.images.readers import NIFTI, is_store, refusing

#: What stands before a file whose transform is to be inverted.
INVERSE = "inverse:"


def read_transform(source: str | Path) -> Transform:
    """Read a transform: fixed world point -> moving world point.

    Parameters
    ----------
    source
        An ITK transform file (.tfm, .txt, .h5, .mat), an elastix parameter file (with the initial transforms it
        names), or a displacement field (NIfTI, MetaImage, NRRD, OME-Zarr). ``inverse:FILE`` inverts a rigid or
        affine one.

    Raises
    ------
    InputError
        When the file is none of these, or is damaged.
    UsageError
        When a transform that cannot be inverted is to be.
    """
    name = str(source)
    if name.startswith(INVERSE):
        with refusing(name):
            return inverted(read_transform(name.removeprefix(INVERSE)), name=name)
    with refusing(name):
        return _read(name)


def read_transforms(sources: Sequence[str | Path]) -> Transform:
    """Read several transforms as one; the first is applied to the fixed point first."""
    stages = tuple(read_transform(source) for source in sources)
    if len({stage.ndim for stage in stages}) > 1:
        said = ", ".join(f"{s}: {stage.ndim}D" for s, stage in zip(sources, stages, strict=True))
        msg = f"transforms of one dimension are expected, got {said}"
        raise InputError(msg)
    return stages[0] if len(stages) == 1 else Composite(stages)


def inverted(transform: Transform, *, name: str) -> Transform:
    """Return the inverse of an affine transform, or of a chain of them."""
    if isinstance(transform, Affine):
        return transform.inverse()
    if isinstance(transform, Composite):
        return Composite(tuple(inverted(stage, name=name) for stage in reversed(transform.stages)))
    msg = f"{name}: only a rigid or affine transform is inverted, got a {type(transform).__name__}"
    raise UsageError(msg)


def _read(name: str) -> Transform:
    path = Path(name)
    ending = path.suffix.lower()
    if is_store(name) or name.endswith(NIFTI) or ending in volumes.ENDINGS:
        return read_field(name)
    if ending not in itk.ENDINGS:
        msg = f"{name}: a transform is {', '.join(itk.ENDINGS[:4])}, .mat, or a field (.nii.gz, .mha, .nrrd, .ome.zarr)"
        raise InputError(msg)
    if ending == ".txt" and path.is_file() and elastix.is_elastix(path.read_text(encoding="utf-8", errors="replace")):
        return elastix.read_elastix(path)
    return itk.read_itk(path)
