"""Run elastix from several starts, in a process and a folder of its own: ``registering.py`` reads ``job.json`` there.

Nothing of fidopt is imported. The wrapped classes come from their own modules: asking ``itk`` for them would load
every template of every module they depend on.
"""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Image = Any


def wrapped(name: str, types: str = "") -> Any:  # noqa: ANN401 - itk is untyped
    """Return a class of ITK's wrapping, such as ``itkPyBuffer`` for ``IF3``: scalar floats in 3D."""
    return getattr(import_module(f"itk.{name}Python"), name + types)


def image_of(side: dict[str, Any], what: str, origin: list[float]) -> Image:
    """Return an array of the job's folder as an ITK image on the side's grid, its origin given."""
    array = np.load(f"{what}.npy")
    kind = "UC" if array.dtype == np.uint8 else "F"
    image = wrapped("itkPyBuffer", f"I{kind}{array.ndim}").GetImageFromArray(array)
    image.SetSpacing(side["spacing"])
    image.SetOrigin(origin)
    image.SetDirection(np.array(side["direction"]).reshape((array.ndim, array.ndim)))
    return image


def register(job: dict[str, Any], start: dict[str, Any]) -> dict[str, Any]:
    """Register from one start: the moving image is moved there, so that elastix begins with the identity."""
    fixed, moving, dimension = job["fixed"], job["moving"], len(job["fixed"]["spacing"])
    there = [o - t for o, t in zip(moving["origin"], start["translation"], strict=True)]
    method = wrapped("itkElastixRegistrationMethod", f"IF{dimension}IF{dimension}").New()
    method.SetFixedImage(image_of(fixed, "fixed", fixed["origin"]))
    method.SetMovingImage(image_of(moving, "moving", there))
    method.SetFixedMask(image_of(fixed, "fixed_body", fixed["origin"]))
    method.SetMovingMask(image_of(moving, "moving_body", there))
    method.SetParameterObject(parameters(job["parameters"]))
    method.SetNumberOfThreads(1)
    method.LogToConsoleOff()
    method.LogToFileOn()
    method.SetOutputDirectory(".")
    method.SetLogFileName(f"{start['name']}.log")
    method.UpdateLargestPossibleRegion()
    found = method.GetTransformParameterObject().GetParameterMap(0)
    return {
        "parameters": [float(word) for word in found["TransformParameters"]],
        "version": version(Path(f"{start['name']}.log")),
    }


def version(log: Path) -> str:
    """Return the version that elastix writes into its log."""
    said = re.search(r"^ELASTIX version:\s*(\S+)", log.read_text(errors="replace"), re.MULTILINE)
    return said[1] if said else "unknown"


def parameters(values: dict[str, list[str]]) -> Any:  # noqa: ANN401 - itk is untyped
    """Return elastix's parameter object of one map."""
    result = import_module("itk.elxParameterObjectPython").elastixParameterObject.New()
    one = result.GetDefaultParameterMap("rigid")
    for key in list(one):
        del one[key]
    for key, words in values.items():
        one[key] = tuple(words)
    result.AddParameterMap(one)
    return result


def reason(log: Path, error: RuntimeError) -> str:
    """Return why elastix failed: what its log says, since its error only names the log."""
    text = log.read_text(errors="replace") if log.is_file() else ""
    said = re.findall(r"^Description:\s*(.+)$", text, re.MULTILINE) or str(error).split("\n")
    words = re.sub(r"(ITK ERROR: )?\w+\(0x[0-9a-f]+\): ", "", said[-1]).strip()
    return words or "it failed without a word"


def main() -> None:
    """Register from every start; one that fails is told, and does not stop the others."""
    job = json.loads(Path("job.json").read_text())
    runs = []
    for start in job["starts"]:
        try:
            runs.append({"name": start["name"], **register(job, start)})
        except RuntimeError as error:
            runs.append({"name": start["name"], "error": reason(Path(f"{start['name']}.log"), error)})
    Path("result.json").write_text(json.dumps({"runs": runs}))


if __name__ == "__main__":
    main()
