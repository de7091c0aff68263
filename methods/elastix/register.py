"""Register a pair by elastix's default B-spline parameter map and write the displacement field transformix gives.

The wrapped classes are imported from their own modules: asking ``itk`` for them loads every template of every module
they depend on, an order of magnitude more time and memory than they need.
"""

import os
import sys
from importlib import import_module
from typing import Any

Image = Any


def wrapped(name: str, types: str = "") -> Any:  # noqa: ANN401 - itk is untyped
    """Return a class of ITK's wrapping, such as ``itkImageFileReader`` for ``VIF3``: float vectors in 3D."""
    return getattr(import_module(f"itk.{name}Python"), name + types)


def read_scalar(path: str, dimension: int) -> Image:
    """Read an image as float32, a vector image as the mean of its components (ITK alone would weigh them as RGB)."""
    reader = wrapped("itkImageFileReader", f"VIF{dimension}").New()
    reader.SetImageIO(wrapped("itkNiftiImageIO").New())
    reader.SetFileName(path)
    reader.Update()
    vectors = reader.GetOutput()
    values = wrapped("itkPyBuffer", f"VIF{dimension}").GetArrayViewFromImage(vectors)
    if vectors.GetNumberOfComponentsPerPixel() > 1:
        values = values.mean(axis=-1, dtype="float64")
    values = values.reshape(tuple(vectors.GetLargestPossibleRegion().GetSize())[::-1])
    image = wrapped("itkPyBuffer", f"IF{dimension}").GetImageFromArray(values.astype("float32"))
    image.SetSpacing(vectors.GetSpacing())
    image.SetOrigin(vectors.GetOrigin())
    image.SetDirection(vectors.GetDirection())
    return image


def default_bspline(seed: str) -> Any:  # noqa: ANN401 - itk is untyped
    """Return elastix's default B-spline parameters with a fixed seed, and without the image nobody looks at."""
    parameter_object = import_module("itk.elxParameterObjectPython").elastixParameterObject.New()
    bspline = parameter_object.GetDefaultParameterMap("bspline")
    bspline["RandomSeed"] = (seed,)
    bspline["WriteResultImage"] = ("false",)
    parameter_object.AddParameterMap(bspline)
    return parameter_object


def register(fixed: Image, moving: Image, dimension: int) -> Any:  # noqa: ANN401 - itk is untyped
    """Return the transform parameters that take points of ``fixed`` to points of ``moving``."""
    method = wrapped("itkElastixRegistrationMethod", f"IF{dimension}IF{dimension}").New()
    method.SetFixedImage(fixed)
    method.SetMovingImage(moving)
    method.SetParameterObject(default_bspline(os.environ["FIDOPT_SEED"]))
    method.SetNumberOfThreads(int(os.environ["FIDOPT_THREADS"]))
    method.LogToConsoleOn()
    method.UpdateLargestPossibleRegion()
    return method.GetTransformParameterObject()


def write_field(transform: Any, moving: Image, dimension: int, out: str) -> None:  # noqa: ANN401 - itk is untyped
    """Write transformix's deformation field: float32 displacements along the world's axes, on the fixed grid."""
    filter_ = wrapped("itkTransformixFilter", f"IF{dimension}").New()
    filter_.SetMovingImage(moving)
    filter_.SetTransformParameterObject(transform)
    filter_.ComputeDeformationFieldOn()
    filter_.UpdateLargestPossibleRegion()
    writer = wrapped("itkImageFileWriter", f"IVF{dimension}{dimension}").New()
    writer.SetImageIO(wrapped("itkNiftiImageIO").New())
    writer.SetInput(filter_.GetOutputDeformationField())
    writer.SetFileName(out)
    writer.UseCompressionOn()
    writer.Update()


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field."""
    dimension = int(os.environ["FIDOPT_DIMENSION"])
    fixed, moving = read_scalar(fixed_path, dimension), read_scalar(moving_path, dimension)
    write_field(register(fixed, moving, dimension), moving, dimension, out)


if __name__ == "__main__" and sys.argv[1:] == ["--import-only"]:
    for needed in ("ElastixRegistrationMethod", "TransformixFilter", "PyBuffer", "NiftiImageIO", "ImageFileReader"):
        import_module(f"itk.itk{needed}Python")
elif __name__ == "__main__":
    main(*sys.argv[1:4])
