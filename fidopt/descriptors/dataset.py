"""dataset.json: what a dataset is, where it comes from, its cases, and what kind of truth they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt

from fidopt.descriptors.base import Descriptor, Digest, Dimension, File, Name, Text, pattern

Task = Literal["registration", "segmentation", "synthesis"]
Grade = Literal["expert", "semi-automatic", "automatic", "synthetic", "provider"]
Mask = Literal["fixed_mask", "moving_mask", "mask"]
Mode = Literal[
    "as-delivered",
    "image-centres",
    "elastix-translation",
    "elastix-translation-centred",
    "elastix-rigid",
    "elastix-rigid-centred",
]

#: The images of a case, by task: the keys of ``modalities``, and the stems of the case's files.
ROLES: dict[Task, tuple[str, ...]] = {
    "registration": ("fixed", "moving"),
    "segmentation": ("image",),
    "synthesis": ("source", "target"),
}
#: The masks a method may be handed, by task.
MASKS: dict[Task, tuple[Mask, ...]] = {
    "registration": ("fixed_mask", "moving_mask"),
    "segmentation": (),
    "synthesis": ("mask",),
}

Modality = Annotated[str, pattern(r"^[a-z][a-z0-9_]*$", "a short name of lower-case letters, digits and '_'")]
SetName = Annotated[str, pattern(r"^[a-z][a-z0-9]*$", "a short name of lower-case letters and digits")]
LabelValue = Annotated[str, pattern(r"^[1-9][0-9]*$", "a label's value, from 1")]


def _inside(value: object) -> object:
    """Refuse a file name that leads out of the folder it is looked for in."""
    if isinstance(value, str) and (not value or "\\" in value or {"", ".", ".."} & set(value.split("/"))):
        msg = "must be a path inside its folder, its parts separated by '/'"
        raise ValueError(msg)
    return value


def _positive(value: object) -> object:
    """Accept a positive number, or one a structure: said in one sentence, where a union would say two."""
    numbers = value.values() if isinstance(value, dict) else [value]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < float("inf") for v in numbers):
        msg = "must be positive" + (" for every structure" if isinstance(value, dict) else "")
        raise ValueError(msg)
    return {k: float(v) for k, v in value.items()} if isinstance(value, dict) else float(str(value))


RelativePath = Annotated[str, BeforeValidator(_inside)]
Tolerance = Annotated[float | dict[str, float], BeforeValidator(_positive)]


class Package(Descriptor):
    """A file that an installed Python distribution carries.

    Parameters
    ----------
    distribution
        The name to install it by.
    path
        Where it lies, from the folder that holds the distribution's top package: ``skimage/data/retina.jpg``.
    """

    distribution: Name
    path: RelativePath


class Source(Descriptor):
    """Where the provider's files come from and what they must be.

    Parameters
    ----------
    url
        The page a person gets them from.
    files
        Path in the archive folder -> digest.
    packages
        Those of ``files`` that an installed Python distribution carries, used where the archive folder has none.
    """

    url: Text
    files: dict[RelativePath, Digest] = Field(min_length=1)
    packages: dict[RelativePath, Package] = Field(default_factory=dict)


class CaseEntry(Descriptor):
    """A case: the source it is drawn from, its pair in Learn2Reg's numbering, and whose images they are."""

    source: Text
    learn2reg: Annotated[str, pattern(r"^[0-9]{4}_[0-9]{4}$", "Learn2Reg's two numbers, as in '0001_0001'")] | None = (
        None
    )
    subjects: tuple[Text, ...] = Field(min_length=1)


class Draw(Descriptor):
    """How the test cases were drawn from all that have a truth."""

    seed: NonNegativeInt
    count: PositiveInt


class Alignment(Descriptor):
    """How the moving image was brought near the fixed one, the same way for every method."""

    mode: Mode = "as-delivered"


class Truth(Descriptor):
    """What kind of truth a dataset has, who made it, how it was checked, and what it does not measure.

    Parameters
    ----------
    grade, by, checked, limits
        As the protocol grades it, and in words.
    error_mm
        The truth's own error, where it is known.
    tolerance_mm
        Of the surface Dice; one for all, or one a structure.
    labels
        Value in the label maps -> the structure's name.
    dynamic_range
        Of the target's intensities, for PSNR and SSIM.
    geometry
        The anatomy a synthesis is also asked to keep.
    """

    grade: Grade
    by: Text
    checked: Text
    limits: Text
    error_mm: Annotated[float, Field(gt=0)] | None = None
    tolerance_mm: Tolerance = 1.0
    labels: dict[LabelValue, Text] = Field(default_factory=dict)
    dynamic_range: Annotated[float, Field(gt=0)] | None = None
    geometry: Text | None = None


class Dataset(File):
    """A dataset of the corpus; its files.md example names every key.

    ``warp`` says that the moving side went through a known deformation, and no more: what it is stays with the truth.
    """

    name: Name
    title: Text
    task: Task = "registration"
    dimension: Dimension
    unit: Text
    large: bool = False
    registration: Literal["deformable", "rigid"] = "deformable"
    modalities: dict[str, Modality]
    masks: tuple[Mask, ...] = ()
    spdx: Text
    citation: Text
    source: Source
    cases: dict[Name, CaseEntry] = Field(min_length=1)
    draw: Draw | None = None
    development: tuple[Name, ...] = ()
    alignment: Alignment = Field(default_factory=Alignment)
    warp: bool = False
    truth: Truth
    other_labels: tuple[SetName, ...] = ()
    unranked: tuple[Name, ...] = ()

    def problems(self) -> Iterator[str]:
        """Yield the keys that contradict each other."""
        roles = ROLES[self.task]
        if set(self.modalities) != set(roles):
            yield f"modalities: must name {' and '.join(roles)}, got {', '.join(self.modalities) or 'none'}"
        for mask in self.masks:
            if mask not in MASKS[self.task]:
                yield f"masks: a {self.task} has no {mask}; it may have: {', '.join(MASKS[self.task]) or 'none'}"
        if self.dimension == 3 and self.unit != "mm":
            yield f"unit: must be 'mm' for three dimensions, got {self.unit!r}"
        for name in sorted(set(self.source.packages) - set(self.source.files)):
            yield f"source.packages.{name}: is not one of source.files, where its checksum stands"
        for case in sorted(set(self.development) & set(self.cases)):
            yield f"development: {case} is a test case too"
        if self.task != "registration" and (self.warp or self.other_labels):
            yield f"task: a {self.task} has neither a warp nor other_labels"
