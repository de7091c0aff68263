"""dataset.json: what a dataset is, where it comes from, its cases, and what kind of truth they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from fidopt.descriptors.alignment import Alignment
from fidopt.descriptors.base import Descriptor, Dimension, File, Name, Text
from fidopt.descriptors.contradictions import check, given
from fidopt.descriptors.listed import DISTINCT, FILLED
from fidopt.descriptors.source import Source
from fidopt.descriptors.spdx import Spdx
from fidopt.descriptors.truth import Checks, Truth
from fidopt.descriptors.wording import pattern

Task = Literal["registration", "segmentation", "synthesis"]
Mask = Literal["fixed_mask", "moving_mask", "mask"]
#: What a dataset may be described without. ``layout`` is how the provider's archive is laid out, and so prepare.py; of
#: ``modalities``, ``alignment.mode`` and ``truth.grade`` what stands there is a first guess that nobody has confirmed,
#: and of ``spdx`` it is LicenseRef-to-fill, which allows nothing.
Fillable = Literal[
    "source",
    "cases",
    "citation",
    "draw",
    "development",
    "modalities",
    "spdx",
    "alignment.mode",
    "truth.grade",
    "truth.labels",
    "truth.error_mm",
    "layout",
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
#: A pair in Learn2Reg's file names: two subjects, or subject and image of both sides.
LEARN2REG = r"^[0-9]{4}_[0-9]{4}(_[0-9]{4}_[0-9]{4})?$"
SetName = Annotated[str, pattern(r"^[a-z][a-z0-9]*$", "a short name of lower-case letters and digits")]


class CaseEntry(Descriptor):
    """A case: the source it is drawn from, its pair in Learn2Reg's numbering, and whose images they are.

    Learn2Reg names a pair by its two subjects (``0001_0004``), or by subject and image where a subject has several
    (``0011_0001_0011_0000``).
    """

    source: Text
    learn2reg: Annotated[str, pattern(LEARN2REG, "Learn2Reg's numbers, as in '0001_0001'")] | None = None
    subjects: Annotated[tuple[Text, ...], FILLED]


class Draw(Descriptor):
    """How the test cases were drawn from all that have a truth.

    Parameters
    ----------
    seed
        Of the order that cases are taken in.
    count
        How many are drawn; null where a task has an official split, whose cases are the test cases.
    """

    seed: NonNegativeInt
    count: PositiveInt | None


class Dataset(File):
    """A dataset of the corpus.

    ``warp`` says that the moving side went through a known deformation, and no more: what it is stays with the truth.

    Parameters
    ----------
    name, title, task
        The folder's name; a title for people; what is asked of a method.
    to_fill
        Keys that nobody has filled yet, which may be null or empty until then. Such a dataset is listed and shown;
        it is not built, drawn, aligned, run, scored or verified.
    dimension, unit, large, registration
        Of its images and fields; whether images are too large for memory; what kind of transform is looked for.
    modalities, masks
        Of each image of a case; what a method may be handed beside them.
    spdx, citation, source
        Terms of use as an SPDX expression; what to cite; where the provider's files come from.
    cases, draw, development
        The test cases, how they were drawn, and the cases that settings may be tuned on.
    alignment, warp
        How the images are brought together, and whether the moving side was deformed.
    truth, other_labels, unranked, checks
        What it is scored against; further label sets, shown and not ranked; metrics that are shown and not ranked;
        what was found when a main leaderboard's requirements were checked.
    """

    null_is_empty: ClassVar[tuple[str, ...]] = ("source", "cases", "development")

    @property
    def aligned(self) -> str:
        """How its pairs are aligned, in words, and whether anybody has confirmed that."""
        settled = "alignment.mode" not in self.to_fill or self.alignment.named != self.alignment.mode
        return self.alignment.named + ("" if settled else ", a first guess that is to be filled in (to_fill)")

    name: Name
    title: Text
    to_fill: Annotated[tuple[Fillable, ...], DISTINCT] = ()
    task: Task = "registration"
    dimension: Dimension
    unit: Text
    large: bool = False
    registration: Literal["deformable", "rigid"] = "deformable"
    modalities: dict[str, Modality]
    masks: Annotated[tuple[Mask, ...], DISTINCT] = ()
    spdx: Spdx
    citation: Text | None = None
    source: Source = Field(default_factory=Source)
    cases: dict[Name, CaseEntry] = Field(default_factory=dict)
    draw: Draw | None = None
    development: Annotated[tuple[Name, ...], DISTINCT] = ()
    alignment: Alignment = Field(default_factory=Alignment)
    warp: bool = False
    truth: Truth
    other_labels: Annotated[tuple[SetName, ...], DISTINCT] = ()
    unranked: Annotated[tuple[Name, ...], DISTINCT] = ()
    checks: Checks | None = None

    @check
    def _roles(self) -> Iterator[str]:
        roles = ROLES[self.task]
        if set(self.modalities) != set(roles):
            yield f"modalities: must name {' and '.join(roles)}, got {', '.join(self.modalities) or 'none'}"

    @check
    def _masks(self) -> Iterator[str]:
        for mask in self.masks:
            if mask not in MASKS[self.task]:
                yield f"masks: a {self.task} has no {mask}; it may have: {', '.join(MASKS[self.task]) or 'none'}"

    @check
    def _unit(self) -> Iterator[str]:
        if self.dimension == 3 and self.unit != "mm":
            yield f"unit: must be 'mm' for three dimensions, got {self.unit!r}"

    @check
    def _citation_left_open(self) -> Iterator[str]:
        if self.citation is None and "citation" not in self.to_fill:
            yield "citation: must not be empty, unless to_fill names it"

    @check
    def _source_left_open(self) -> Iterator[str]:
        if self.source.url is None and "source" not in self.to_fill:
            yield "source.url: must not be empty, unless to_fill names source"

    @check
    def _files_left_open(self) -> Iterator[str]:
        if not self.source.files and "source" not in self.to_fill:
            yield "source.files: must not be empty, unless to_fill names source"

    @check
    def _cases_left_open(self) -> Iterator[str]:
        if not self.cases and "cases" not in self.to_fill:
            yield "cases: must not be empty, unless to_fill names it"

    @check
    def _filled_citation(self) -> Iterator[str]:
        if self.citation is not None and "citation" in self.to_fill:
            yield "to_fill: names citation, which is filled; take it out"

    @check
    def _filled_draw(self) -> Iterator[str]:
        if self.draw is not None and "draw" in self.to_fill:
            yield "to_fill: names draw, which is filled; take it out"

    @check
    def _test_and_development(self) -> Iterator[str]:
        for case in sorted(set(self.development) & set(self.cases)):
            yield f"development: {case} is a test case too"

    @check
    def _drawn(self) -> Iterator[str]:
        if self.draw is not None and self.draw.count is not None and len(self.cases) > self.draw.count:
            yield f"cases: holds {len(self.cases)}, more than the {self.draw.count} that are drawn (draw.count)"

    @check
    def _of_a_registration(self) -> Iterator[str]:
        if self.task != "registration":
            stated = {
                "warp": given(self, "warp", False),  # noqa: FBT003 - what stands there, not a switch
                "other_labels": bool(given(self, "other_labels", ())),
                "registration": given(self, "registration", "deformable") == "rigid",
            }
            yield from (f"{key}: is of a registration, and this is a {self.task}" for key in stated if stated[key])

    @check
    def _names_of_a_segmentation(self) -> Iterator[str]:
        if self.task == "segmentation" and not self.truth.labels:
            yield "truth.labels: must name the structures that a segmentation is scored on"

    @check
    def _range_of_a_synthesis(self) -> Iterator[str]:
        if self.task == "synthesis" and self.truth.dynamic_range is None and not self.to_fill:
            yield "truth.dynamic_range: must be given for a synthesis, whose PSNR and SSIM rest on it"

    @check
    def _warp_is_synthetic(self) -> Iterator[str]:
        if self.warp and self.truth.grade != "synthetic":
            yield f"truth.grade: must be 'synthetic' where a known warp was applied, got {self.truth.grade!r}"

    @check
    def _tolerances(self) -> Iterator[str]:
        tolerance = self.truth.tolerance_mm
        named = set(tolerance) if isinstance(tolerance, dict) else set()
        for name in sorted(named - set(self.truth.labels.values())):
            yield f"truth.tolerance_mm.{name}: is not one of the structures of truth.labels"

    @classmethod
    def schema_rules(cls) -> list[dict[str, Any]]:
        """Return what a JSON Schema says of the task, the dimension and what is left to fill."""
        text, some = {"type": "string"}, {"minProperties": 1}
        source = {"type": "object", "required": ["url", "files"], "properties": {"url": text, "files": some}}
        filled = {"citation": text, "source": source, "cases": {"type": "object", **some}}
        rules: list[dict[str, Any]] = [
            {
                "if": {"not": {"properties": {"to_fill": {"contains": {"const": key}}}, "required": ["to_fill"]}},
                "then": {"properties": {key: asked}, "required": [key]},
            }
            for key, asked in filled.items()
        ]
        rules.append(
            {"if": {"properties": {"dimension": {"const": 3}}}, "then": {"properties": {"unit": {"const": "mm"}}}}
        )
        for task, roles in ROLES.items():
            stated: dict[str, Any] = {"properties": {"task": {"const": task}}}
            if task != "registration":  # the default
                stated["required"] = ["task"]
            modalities = {"required": list(roles), "propertyNames": {"enum": list(roles)}}
            masks = {"items": {"enum": list(MASKS[task])}} if MASKS[task] else {"maxItems": 0}
            rules.append({"if": stated, "then": {"properties": {"modalities": modalities, "masks": masks}}})
        return rules
