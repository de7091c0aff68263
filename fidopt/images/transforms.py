"""A transform from any file that holds one, as the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blocks.grid import Grid
from blocks.transforms import Affine, Composite, Transform
from fidopt.errors import InputError, UsageError
from fidopt.images import elastix, itk, nifti, volumes
from fidopt.images.conventions import CONTRACT, CONVENTIONS, Convention, arrays, matrices, niftyreg
from fidopt.images.fields import read_field
from fidopt.images.readers import NIFTI, is_store, refusing

#: What stands before a file whose transform is to be inverted.
INVERSE = "inverse:"


@dataclass(frozen=True)
class Source:
    """A transform as a command names it: ``[inverse:][CONVENTION:]FILE``.

    Parameters
    ----------
    file
        The file or store.
    convention
        Whose it is and what it means (:mod:`fidopt.images.conventions`).
    inverse
        Whether its inverse is meant.
    """

    file: str
    convention: Convention
    inverse: bool


def named(source: str | Path) -> Source:
    """Return the parts of a transform's name."""
    rest = str(source)
    inverse = rest.startswith(INVERSE)
    rest = rest.removeprefix(INVERSE)
    tool, colon, file = rest.partition(":")
    if colon and tool in CONVENTIONS:
        return Source(file, CONVENTIONS[tool], inverse)
    return Source(rest, CONTRACT, inverse)


def read_transform(source: str | Path, *, fixed: Grid | None = None) -> Transform:
    """Read a transform: fixed world point -> moving world point.

    Parameters
    ----------
    source
        An ITK transform file (.tfm, .txt, .h5, .mat), an elastix parameter file (with the initial transforms it
        names), or a displacement field (NIfTI, MetaImage, NRRD, OME-Zarr). ``TOOL:FILE`` is read by that tool's
        convention, ``inverse:FILE`` inverts a rigid or affine one.
    fixed
        The fixed image's grid: where arrays of voxels lie that have no geometry of their own.

    Raises
    ------
    InputError
        When the file is none of these, or is damaged.
    UsageError
        When a transform that cannot be inverted is to be.
    """
    meant, name = named(source), str(source)
    if name and not meant.file.strip():
        msg = f"a file is expected after {name!r}: [inverse:][TOOL:]FILE"
        raise UsageError(msg)
    with refusing(name):
        transform = _read(meant, fixed)
        return inverted(transform, name=name) if meant.inverse else transform


def read_transforms(sources: Sequence[str | Path], *, fixed: Grid | None = None) -> Transform:
    """Read several transforms as one; the first is applied to the fixed point first."""
    stages = tuple(read_transform(source, fixed=fixed) for source in sources)
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


def _read(source: Source, fixed: Grid | None) -> Transform:
    name, meant = source.file, source.convention
    path = Path(name)
    ending = path.suffix.lower()
    if meant.by_header and name.endswith(NIFTI):
        file = nifti.open_nifti(name)
        if niftyreg.kind_of(file) == niftyreg.SPLINE:
            return niftyreg.read_spline(file)
    if is_store(name) or name.endswith((*NIFTI, *arrays.NUMPY)) or ending in volumes.ENDINGS:
        return read_field(name, convention=meant.name, fixed=fixed)
    if meant.matrices:
        return matrices.read_matrix(name, meant, ndim=fixed.ndim if fixed else None)
    if meant.layout != "field" or ending not in itk.ENDINGS:
        msg = f"{name}: a transform is {', '.join(itk.ENDINGS[:4])}, .mat, or a field (.nii.gz, .mha, .nrrd, .ome.zarr)"
        raise InputError(msg if meant is CONTRACT else f"{name}: {meant.tool} writes {meant.writes}")
    if matrices.matrix_of(path) is not None:
        msg = (
            f"{name}: a matrix in text does not say whose axes it goes along; name the tool that wrote it, greedy:FILE"
        )
        raise InputError(f"{msg} or niftyreg:FILE")
    if ending == ".txt" and path.is_file() and elastix.is_elastix(path.read_text(encoding="utf-8", errors="replace")):
        return elastix.read_elastix(path)
    return itk.read_itk(path)
