"""Other packages' measures of two regions, where they are installed; each is asked in its own words."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.parity import definitions

Region = npt.NDArray[np.bool_]
#: Truth, output, steps along the array's axes, tolerance -> measure -> value.
Measures = Callable[[Region, Region, Sequence[float], float], dict[str, float]]


@dataclass(frozen=True)
class Peer:
    """A package, where it can be had, and what it measures of two regions: ``dice``, ``hd95``, ``surface_dice``."""

    name: str
    module: str
    where: str
    measures: Measures

    @property
    def here(self) -> bool:
        """Whether it is installed."""
        return importlib.util.find_spec(self.module) is not None

    def __call__(self, truth: Region, output: Region, steps: Sequence[float], tolerance: float) -> dict[str, float]:
        """Return its measures, whatever it warns of and prints."""
        with _quiet():
            return self.measures(truth, output, steps, tolerance)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _deepmind(truth: Region, output: Region, steps: Sequence[float], tolerance: float) -> dict[str, float]:
    return definitions.deepmind(truth, output, steps, tolerance=tolerance)


def _monai(truth: Region, output: Region, steps: Sequence[float], tolerance: float) -> dict[str, float]:
    import torch
    from monai.metrics import compute_dice, compute_hausdorff_distance, compute_surface_dice

    maps = [torch.from_numpy(np.stack([~region, region]))[None] for region in (output, truth)]
    found = {
        "dice": compute_dice(*maps, include_background=False),
        "dice_counted": compute_dice(*maps, include_background=False, ignore_empty=False),
        "hd95": compute_hausdorff_distance(*maps, percentile=95, spacing=list(steps)),
        "surface_dice": compute_surface_dice(*maps, [tolerance], spacing=list(steps)),
        "surface_dice_areas": compute_surface_dice(*maps, [tolerance], spacing=list(steps), use_subvoxels=True),
    }
    return {measure: float(value) for measure, value in found.items()}


def _metrics_reloaded(truth: Region, output: Region, steps: Sequence[float], tolerance: float) -> dict[str, float]:
    from MetricsReloaded.metrics.pairwise_measures import BinaryPairwiseMeasures

    maps = [region.astype(np.int8) for region in (output, truth)]
    settings = {"hd_perc": 95, "nsd": tolerance}
    measures = BinaryPairwiseMeasures(*maps, pixdim=list(steps), dict_args=settings)
    found = {"dice": float(measures.dsc())}
    if truth.any() and output.any():
        found |= {"hd95": measures.measured_hausdorff_distance_perc()}
        found |= {"surface_dice": measures.normalised_surface_distance()}
    return {measure: float(value) for measure, value in found.items()}


DEEPMIND = Peer("surface-distance", "surface_distance", "surface-distance==0.1 on PyPI", _deepmind)
MONAI = Peer("MONAI", "monai", "monai==1.6.1 on PyPI, with torch", _monai)
RELOADED = Peer(
    "MetricsReloaded", "MetricsReloaded", "https://github.com/csudre/MetricsReloaded at ca3d352", _metrics_reloaded
)
PEERS = (DEEPMIND, MONAI, RELOADED)
