"""elastix parameter files: translation, Euler, similarity, affine, cubic B-spline, and their initial transforms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.grid import Grid
from blocks.transforms import Affine, BSpline, Composite, Transform
from fidopt.errors import InputError
from fidopt.images.itk import affine_of, read_itk

Parameters = Mapping[str, tuple[str, ...]]

_LINE = re.compile(r"^\s*\(\s*(\w+)((?:\s+(?:\"[^\"]*\"|[^\s\")]+))*)\s*\)")
_WORD = re.compile(r"\"([^\"]*)\"|([^\s\"]+)")
_INITIAL = ("InitialTransformParameterFileName", "InitialTransformParametersFileName")
_LINEAR = ("TranslationTransform", "EulerTransform", "SimilarityTransform", "AffineTransform")


def is_elastix(text: str) -> bool:
    """Tell whether a text is an elastix parameter file of a transform."""
    return re.search(r"^\s*\(\s*Transform\s", text, re.MULTILINE) is not None


def read_elastix(path: str | Path) -> Transform:
    """Read a transform parameter file of elastix and its initial transforms, which are applied first.

    Raises
    ------
    InputError
        When a transform is of a kind that is not read, a key is missing, or the files go round in a circle.
    """
    stages = [_stage(file, parse(file)) for file in reversed(chain(path))]
    return stages[0] if len(stages) == 1 else Composite(tuple(stages))


def chain(path: str | Path) -> list[Path]:
    """Return a parameter file and those of its initial transforms, the one that is applied first last."""
    files = [Path(path)]
    while (initial := _initial(files[-1], parse(files[-1]))) is not None:
        if initial.resolve() in {file.resolve() for file in files}:
            msg = f"{initial}: its initial transforms go round in a circle"
            raise InputError(msg)
        files.append(initial)
    return files


def files(path: str | Path) -> list[Path]:
    """Return every file that :func:`read_elastix` reads: the parameter files, and those of ITK's that they name."""
    found = []
    for file in chain(path):
        parameters = parse(file)
        found.append(file)
        if parameters.get("Transform") == ("File",):
            found.append(_of_itk(file, parameters))
    return found


def parse(path: Path) -> dict[str, tuple[str, ...]]:
    """Return a parameter file's keys, each with its values as text."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: the parameter file cannot be read ({error})"
        raise InputError(msg) from error
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if match := _LINE.match(line):
            found[match[1]] = tuple(quoted or bare for quoted, bare in _WORD.findall(match[2]))
    return found


def _initial(path: Path, parameters: Parameters) -> Path | None:
    """Return the initial transform's file, looked for as named and then beside this one; None where there is none."""
    named = next((parameters[key][0] for key in _INITIAL if parameters.get(key)), "NoInitialTransform")
    if named == "NoInitialTransform":
        return None
    how = parameters.get("HowToCombineTransforms", ("Compose",))[0]
    if how != "Compose":
        msg = f"{path}: HowToCombineTransforms must be Compose, got {how}: a sum of two transforms is not read"
        raise InputError(msg)
    return _found(path, named, "initial transform")


def _found(path: Path, named: str, what: str) -> Path:
    """Return a file that a parameter file names: as named, else the one of that name beside it."""
    # Windows' paths too: the file may have been written on another machine.
    for candidate in (path.parent / named, path.parent / re.split(r"[\\/]", named)[-1]):
        if candidate.is_file():
            return candidate
    msg = f"{path}: its {what} {named} is neither there nor beside it; put it there"
    raise InputError(msg)


def _stage(path: Path, parameters: Parameters) -> Transform:
    kind = _text(path, parameters, "Transform")
    if kind == "BSplineTransform":
        return _bspline(path, parameters)
    if kind in _LINEAR:
        return _linear(path, parameters, kind)
    if kind == "File":
        # So elastix writes where ITKTransformOutputFileNameExtension is set: the numbers lie in a file of ITK's.
        return read_itk(_of_itk(path, parameters))
    msg = f"{path}: {kind} is not read; read are {', '.join((*_LINEAR, 'BSplineTransform'))} and ITK's own files"
    raise InputError(msg)


def _of_itk(path: Path, parameters: Parameters) -> Path:
    return _found(path, _text(path, parameters, "TransformFileName"), "transform")


def _linear(path: Path, parameters: Parameters, kind: str) -> Affine:
    ndim = _dimension(path, parameters)
    values = _numbers(path, parameters, "TransformParameters")
    # elastix orders the parameters as ITK does: ITK turns them into a matrix.
    if kind == "TranslationTransform":
        transform = sitk.TranslationTransform(ndim)
    elif kind == "AffineTransform":
        transform = sitk.AffineTransform(ndim)
    elif kind == "EulerTransform":
        transform = sitk.Euler2DTransform() if ndim == 2 else sitk.Euler3DTransform()
    else:
        transform = sitk.Similarity2DTransform() if ndim == 2 else sitk.Similarity3DTransform()
    if len(values) != transform.GetNumberOfParameters():
        msg = f"{path}: TransformParameters must be {transform.GetNumberOfParameters()} numbers, got {len(values)}"
        raise InputError(msg)
    if kind != "TranslationTransform":
        transform.SetCenter(_numbers(path, parameters, "CenterOfRotationPoint", count=ndim))
    if kind == "EulerTransform" and ndim == 3:
        transform.SetComputeZYX(parameters.get("ComputeZYX", ("false",))[0] == "true")
    transform.SetParameters(values)
    return affine_of(transform)


def _bspline(path: Path, parameters: Parameters) -> BSpline:
    ndim = _dimension(path, parameters)
    for key, default, only in (
        ("BSplineTransformSplineOrder", "3", "3"),
        ("UseCyclicTransform", "false", "false"),
        ("UseBinaryFormatForTransformationParameters", "false", "false"),
    ):
        got = parameters.get(key, (default,))[0]
        if got != only:
            msg = f"{path}: {key} must be {only}, got {got}"
            raise InputError(msg)
    size = tuple(int(v) for v in _numbers(path, parameters, "GridSize", count=ndim))
    index = _numbers(path, parameters, "GridIndex", count=ndim)
    lattice = Grid.of(
        size[::-1],
        spacing=_numbers(path, parameters, "GridSpacing", count=ndim),
        origin=_numbers(path, parameters, "GridOrigin", count=ndim),
        direction=_direction(path, parameters, ndim=ndim),
    )
    if any(index):
        first = [float(v) for v in lattice.world(index[::-1])]
        lattice = Grid.of(size[::-1], spacing=lattice.spacing, origin=first, direction=lattice.direction)
    values = _numbers(path, parameters, "TransformParameters", count=ndim * int(np.prod(size)))
    return BSpline(lattice, np.array(values).reshape((ndim, *lattice.shape)))


def _direction(path: Path, parameters: Parameters, *, ndim: int) -> tuple[float, ...] | None:
    """Return the control points' direction, row-major; elastix writes it column by column."""
    if "GridDirection" not in parameters:
        return None
    columns = np.array(_numbers(path, parameters, "GridDirection", count=ndim * ndim)).reshape((ndim, ndim))
    return tuple(float(v) for v in columns.T.ravel())


def _dimension(path: Path, parameters: Parameters) -> int:
    ndim = int(_numbers(path, parameters, "FixedImageDimension", count=1)[0])
    moving = int(float(parameters.get("MovingImageDimension", (str(ndim),))[0]))
    if ndim not in (2, 3) or moving != ndim:
        msg = f"{path}: FixedImageDimension and MovingImageDimension must both be 2 or 3, got {ndim} and {moving}"
        raise InputError(msg)
    return ndim


def _text(path: Path, parameters: Parameters, key: str) -> str:
    if not parameters.get(key):
        msg = f"{path}: {key} is missing: this is no transform parameter file of elastix"
        raise InputError(msg)
    return parameters[key][0]


def _numbers(path: Path, parameters: Parameters, key: str, *, count: int | None = None) -> tuple[float, ...]:
    _text(path, parameters, key)
    try:
        values = tuple(float(v) for v in parameters[key])
    except ValueError as error:
        msg = f"{path}: {key} must be numbers ({error})"
        raise InputError(msg) from error
    if not np.isfinite(values).all() or (count is not None and len(values) != count):
        wanted = "finite numbers" if count is None else f"{count} finite numbers"
        msg = f"{path}: {key} must be {wanted}, got {len(values)} values"
        raise InputError(msg)
    return values
