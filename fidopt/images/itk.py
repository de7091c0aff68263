"""ITK's transforms as the engine's: linear ones as an affine, cubic B-splines, displacement fields, composites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.transforms import Affine, BSpline, Composite, DisplacementField, Transform
from fidopt.errors import InputError
from fidopt.images.geometry import grid_from_sitk, last_line
from fidopt.images.itk_files import promised

#: Endings of the files in which ITK keeps transforms.
ENDINGS = (".tfm", ".txt", ".h5", ".hdf5", ".hdf", ".mat", ".xfm")


def read_itk(path: str | Path) -> Transform:
    """Read a transform file of ITK.

    Raises
    ------
    InputError
        When the file is no transform, is damaged, or one of a kind that is not read.
    """
    where = Path(path)
    if not where.is_file():
        msg = f"{where}: there is no such file"
        raise InputError(msg)
    expected = promised(where)
    try:
        transform = sitk.ReadTransform(str(where))
    except (RuntimeError, KeyError, ValueError) as error:
        reason = last_line(error) if isinstance(error, RuntimeError) else "its kind is not known"
        msg = f"{where}: an ITK transform (.tfm, .txt, .h5, .mat) is expected, but it is not one ITK reads ({reason})"
        raise InputError(f"{msg}; fetch or write it again") from error
    parts = list(_parts(transform))
    for part, said in zip(parts, expected or [], strict=False):
        if part.GetNumberOfParameters() != said.parameters:
            msg = f"{where}: {said.kind} has {part.GetNumberOfParameters()} parameters, the file {said.parameters}"
            raise InputError(f"{msg}: it was cut short, fetch or write it again")
    return transform_of(transform, name=str(where))


def _parts(transform: sitk.Transform) -> Iterator[sitk.Transform]:
    """Yield the transforms of a composite, in the order of its file."""
    if transform.GetName() != "CompositeTransform" or _holds_itself(transform):
        yield transform
        return
    for number in range(transform.GetNumberOfTransforms()):
        yield from _parts(transform.GetNthTransform(number))


def _holds_itself(transform: sitk.Transform) -> bool:
    """Tell whether what SimpleITK calls a composite is a kind that it has no name of, which it wraps anew when asked.

    MatrixOffsetTransformBase is one, which c3d_affine_tool and older ANTs write.
    """
    part = transform
    for _ in range(3):
        if part.GetName() != "CompositeTransform" or part.GetNumberOfTransforms() != 1:
            return False
        part = part.GetNthTransform(0)
    return True


def transform_of(transform: sitk.Transform, *, name: str) -> Transform:
    """Return the engine's transform for one of SimpleITK's.

    Parameters
    ----------
    transform
        Any of SimpleITK's; the transform of a composite that was added last is applied to the fixed point first.
    name
        What an error calls the file.
    """
    kind = transform.GetName()
    if kind == "CompositeTransform" and not _holds_itself(transform):
        parts = [transform.GetNthTransform(n) for n in range(transform.GetNumberOfTransforms())]
        stages = tuple(transform_of(part, name=name) for part in reversed(parts))
        return stages[0] if len(stages) == 1 else Composite(stages)
    if transform.IsLinear():
        return affine_of(transform)
    if kind == "BSplineTransform":
        return _bspline(transform, name=name)
    if kind == "DisplacementFieldTransform":
        image = transform.GetDisplacementField()
        return DisplacementField(grid_from_sitk(image), np.moveaxis(_array(image), -1, 0))
    msg = f"{name}: {kind} is not read; read are linear transforms, cubic B-splines and displacement fields"
    raise InputError(msg)


def affine_of(transform: sitk.Transform) -> Affine:
    """Return a linear transform of SimpleITK as ``y = M x + offset``, M and offset computed as ITK computes them."""
    ndim = transform.GetDimension()
    if hasattr(transform, "GetMatrix"):
        matrix = np.array(transform.GetMatrix()).reshape((ndim, ndim))
        centre = np.array(transform.GetCenter())
        # A rotation about a point (VersorTransform) and a scaling have no translation of their own.
        shift = np.array(transform.GetTranslation()) if hasattr(transform, "GetTranslation") else np.zeros(ndim)
        # What overflows is refused as no number.
        with np.errstate(over="ignore", invalid="ignore"):
            offset = shift + centre - matrix @ centre
    elif transform.GetName() == "TranslationTransform":
        matrix, offset = np.eye(ndim), np.array(transform.GetParameters())
    else:
        offset = np.array(transform.TransformPoint([0.0] * ndim))
        matrix = np.column_stack([np.array(transform.TransformPoint(list(row))) - offset for row in np.eye(ndim)])
    return Affine.of(matrix, offset)


def _bspline(transform: sitk.BSplineTransform, *, name: str) -> BSpline:
    if transform.GetOrder() != 3:
        msg = f"{name}: a B-spline of order 3 is expected, got order {transform.GetOrder()}"
        raise InputError(msg)
    images = transform.GetCoefficientImages()
    coefficients = np.stack([_array(image) for image in images]).astype(np.float64)
    return BSpline(grid_from_sitk(images[0]), coefficients)


def _array(image: sitk.Image) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(sitk.GetArrayFromImage(image))
