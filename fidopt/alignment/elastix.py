"""elastix, in a process and a folder of its own: mutual information inside two bodies, from several starts."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fidopt.alignment import registering
from fidopt.alignment.motions import Motion
from fidopt.alignment.scores import limits
from fidopt.alignment.starts import Side, Start
from fidopt.errors import InputError, MissingError
from fidopt.runner.process import environment, supervise

#: The longest that a case's runs may take together.
TIMEOUT_S = 3600.0
#: What elastix writes is the same on every run: one thread, one seed.
_SEED = 20251130
#: How many voxels of its finest grid a resolution smooths away. The last one is not the image itself: a rigid motion
#: shows in what is large, and what is fine follows the tissue that deforms.
SMOOTHING = (8, 6, 4, 3)
#: Fewest voxels along an axis that are left apart by it.
_LEAST = 16
#: Fewest voxels along an axis that ITK smooths.
_THINNEST = 4
#: elastix's own defaults but for what is said beside them.
_PARAMETERS: dict[str, Sequence[object]] = {
    "Registration": ["MultiResolutionRegistration"],
    "Metric": ["AdvancedMattesMutualInformation"],
    # Twice the default: a lung in a chest would have few of them.
    "NumberOfHistogramBins": [64],
    "Optimizer": ["AdaptiveStochasticGradientDescent"],
    "AutomaticParameterEstimation": ["true"],
    "AutomaticScalesEstimation": ["true"],
    "MaximumNumberOfIterations": [250],
    "Interpolator": ["LinearInterpolator"],
    "ResampleInterpolator": ["FinalLinearInterpolator"],
    "Resampler": ["DefaultResampler"],
    "ImageSampler": ["RandomCoordinate"],
    "NumberOfSpatialSamples": [3000],
    "NewSamplesEveryIteration": ["true"],
    "NumberOfResolutions": [len(SMOOTHING)],
    "FixedImagePyramid": ["FixedSmoothingImagePyramid"],
    "MovingImagePyramid": ["MovingSmoothingImagePyramid"],
    # One level in memory at a time.
    "ComputePyramidImagesPerResolution": ["true"],
    # The start is given, and it is kept.
    "AutomaticTransformInitialization": ["false"],
    # Erosion would take a thin body away at the coarse levels.
    "ErodeMask": ["false"],
    # A field of view that is cut leaves a small common part.
    "RequiredRatioOfValidSamples": [0.05],
    "UseDirectionCosines": ["true"],
    "HowToCombineTransforms": ["Compose"],
    "WriteResultImage": ["false"],
    "WriteTransformParametersEachResolution": ["false"],
    "RandomSeed": [_SEED],
}


@dataclass(frozen=True)
class Registered:
    """What came of one start.

    Parameters
    ----------
    start
        Where it began.
    motion
        The transform found, fixed world -> moving world; None where elastix failed.
    error
        What elastix said then.
    """

    start: Start
    motion: Motion | None
    error: str | None = None


def register(
    fixed: Side, moving: Side, starts: Sequence[Start], *, kind: Literal["translation", "rigid"]
) -> tuple[list[Registered], str]:
    """Register a pair from every start, one after the other in one process.

    Returns
    -------
    tuple
        One :class:`Registered` a start, in order, and the version of elastix with that of the package it came in.

    Raises
    ------
    MissingError
        When itk-elastix is not installed.
    InputError
        When an image is too thin, or elastix ends without an answer, or from every start with an error.
    """
    package = _package()
    for name, side in (("fixed", fixed), ("moving", moving)):
        if min(side.grid.shape) < _THINNEST:
            msg = f"elastix needs {_THINNEST} voxels along every axis, and the {name} image has shape {side.grid.shape}"
            raise InputError(f"{msg}; image-centres needs none")
    centre = [float(v) for v in fixed.body.centre()]
    with tempfile.TemporaryDirectory(prefix="fidopt-align-") as name:
        folder = Path(name)
        _write_job(folder, fixed, moving, starts, centre=centre, kind=kind)
        answer = _run(folder)
    results, said = [], "unknown"
    for start, run in zip(starts, answer["runs"], strict=True):
        if "error" in run:
            results.append(Registered(start, None, str(run["error"])))
        else:
            motion = Motion.from_elastix(run["parameters"], centre)
            results.append(Registered(start, motion.then(start.translation)))
            said = run["version"]
    if not any(result.motion for result in results):
        msg = "; ".join(f"from {result.start.name}: {result.error}" for result in results)
        raise InputError(f"elastix registered the pair from none of {len(results)} starts: {msg}")
    return results, f"{said} (itk-elastix {package})"


def _package() -> str:
    """Return the version of itk-elastix."""
    try:
        return version("itk-elastix")
    except PackageNotFoundError as error:
        msg = "this mode needs elastix, which is not installed: pip install 'fidopt[align]'"
        raise MissingError(msg) from error


def _write_job(
    folder: Path,
    fixed: Side,
    moving: Side,
    starts: Sequence[Start],
    *,
    centre: list[float],
    kind: Literal["translation", "rigid"],
) -> None:
    transform = "TranslationTransform" if kind == "translation" else "EulerTransform"
    parameters = {key: [str(value) for value in values] for key, values in _PARAMETERS.items()}
    parameters |= {"Transform": [transform], "CenterOfRotationPoint": [repr(v) for v in centre]}
    for name, side in (("Fixed", fixed), ("Moving", moving)):
        parameters[f"{name}ImagePyramidSchedule"] = [str(n) for n in schedule(side.grid.shape)]
    job: dict[str, Any] = {"parameters": parameters}
    job["starts"] = [{"name": start.name, "translation": start.translation} for start in starts]
    for name, side in (("fixed", fixed), ("moving", moving)):
        # What lies beyond is padding, metal, a speck: it would take most of the bins.
        values = np.clip(side.image.values, *limits(side)).astype(np.float32)
        np.save(folder / f"{name}.npy", values)
        np.save(folder / f"{name}_body.npy", side.body.on(side.grid).astype(np.uint8))
        job[name] = {"spacing": side.grid.spacing, "origin": side.grid.origin, "direction": side.grid.direction}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def schedule(shape: Sequence[int]) -> list[int]:
    """Return how much each resolution smooths each axis (x, y[, z]) of an image ((z,) y, x): a short axis less."""
    return [max(1, min(step, size // _LEAST)) for step in SMOOTHING for size in reversed(shape)]


def _run(folder: Path) -> dict[str, Any]:
    """Run the registrations of a folder's job."""
    outcome = supervise(
        [sys.executable, str(Path(registering.__file__))],
        variables=environment({}, threads=1),
        folder=folder,
        log=folder / "said.log",
        timeout_s=TIMEOUT_S,
    )
    if outcome.timed_out:
        msg = f"elastix had not registered the pair after {TIMEOUT_S:.0f} s, from the starts it was given"
        raise InputError(msg)
    if outcome.returncode or not (folder / "result.json").is_file():
        lines = outcome.log.splitlines()[-1:] or ["it wrote nothing"]
        msg = f"elastix ended with {outcome.returncode}: {lines[0]}"
        raise InputError(msg)
    answer: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return answer
