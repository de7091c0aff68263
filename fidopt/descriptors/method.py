"""method.json: what a registration method is, what it takes, what it needs, and under which licence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from fidopt.descriptors.base import WHOLE, Descriptor, Dimension, File, Name, Text
from fidopt.descriptors.contradictions import check
from fidopt.descriptors.dataset import Mask, Task
from fidopt.descriptors.listed import DISTINCT, SOME
from fidopt.descriptors.spdx import Spdx


class Licence(Descriptor):
    """The terms of a method's code and, where it has any, of its trained weights, as SPDX expressions."""

    code: Spdx
    weights: Spdx | None = None


class Variant(Descriptor):
    """Settings chosen for a task: a tier 2 line, shown beside its datasets' leaderboards.

    Parameters
    ----------
    tier
        1 for a tool's own defaults under another name, 2 for settings chosen for a task.
    datasets
        The datasets it is shown on; empty means all.
    tuned_on
        The cases, ``dataset/case``, its settings were chosen on.
    source
        Who chose them, and where they are published.
    settings
        What the method's run.sh is handed in FIDOPT_SETTINGS.
    """

    tier: Annotated[Literal[1, 2], WHOLE] = 2
    datasets: tuple[Name, ...] = ()
    tuned_on: tuple[Text, ...] = ()
    source: Text
    settings: dict[str, Any] = Field(default_factory=dict)


class Method(File):
    """A method; its folder also holds setup.sh, run.sh and NOTES.md.

    Parameters
    ----------
    name, version, reference
        The folder's name; the pinned version rows carry; what to cite.
    licence, network
        Terms of code and weights; why a run needs the network, null where it does not.
    tasks, dimensions, modalities, masks, rigid
        What it can be asked for; ``["*"]`` takes every modality; ``rigid``: whether it has a rigid stage of its own.
    device, threads
        Where it runs, and on how many threads (null: as many as the machine states).
    reads, max_voxels, max_side
        The format of its inputs, and the largest image it is handed of a large dataset.
    timeout_s, seed
        The longest a case may take; whether the seed it is given changes anything.
    board
        False: its rows are kept and not shown.
    variants
        Name -> settings, run as ``METHOD@NAME``.
    """

    name: Name
    version: Text
    licence: Licence
    tasks: Annotated[tuple[Task, ...], SOME]
    dimensions: Annotated[tuple[Dimension, ...], SOME]
    modalities: Annotated[tuple[Text, ...], SOME]
    masks: Annotated[tuple[Mask, ...], DISTINCT] = ()
    device: Literal["cpu", "cuda"] = "cpu"
    threads: PositiveInt | None = None
    reads: Literal["nifti", "ome-zarr"] = "nifti"
    max_voxels: PositiveInt = 2**24
    max_side: PositiveInt | None = None
    timeout_s: PositiveInt = 3600
    rigid: bool = False
    seed: bool = False
    network: Text | None = None
    board: bool = True
    reference: Text
    variants: dict[Name, Variant] = Field(default_factory=dict)

    @check
    def _every_or_some(self) -> Iterator[str]:
        if "*" in self.modalities and len(self.modalities) > 1:
            yield f'modalities: must be ["*"] alone or a list of modalities, got {list(self.modalities)}'
