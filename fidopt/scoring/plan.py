"""Which blocks of ``evaluation/<task>.yml`` a case takes, filled, and the metric that each result becomes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

import yaml

from fidopt.descriptors.dataset import Task
from fidopt.errors import InputError
from fidopt.scoring.regularity import Question

#: output group -> target groups -> criterion -> arguments
Metrics = dict[str, dict[str, dict[str, dict[str, Any]]]]

#: task -> block -> criterion's class -> the metric its value is; ``$set`` is replaced by the set's name.
_METRICS: dict[Task, dict[str, dict[str, str]]] = {
    "registration": {
        "labels": {"Dice": "dice", "HD95": "hd95", "LabelsLost": "labels_lost"},
        "label_set": {"Dice": "dice_$set", "HD95": "hd95_$set"},
        "landmarks": {"TRE": "tre", "TREPercentile": "tre_p95"},
        "landmark_set": {"TRE": "tre_$set"},
        "field": {"SDlogJ": "sdlogj", "Folds": "folds"},
        "field_body": {"SDlogJ": "sdlogj_body", "Folds": "folds_body"},
        "field_mask": {"SDlogJ": "sdlogj_mask", "Folds": "folds_mask"},
    },
    "segmentation": {
        "structures": {
            "Dice": "dice",
            "HD95": "hd95",
            "SurfaceDice": "surface_dice",
            "Held": "structures",
            "Produced": "structures_produced",
            "Invented": "structures_invented",
        },
    },
    "synthesis": {
        "image": {"MAE": "mae", "PSNR": "psnr", "MaskedSSIM": "ssim"},
        "geometry": {"Dice": "dice_geometry", "HD95": "hd95_geometry"},
    },
}


class Evidence(Protocol):
    """What a case has to be scored on."""

    @property
    def task(self) -> Task: ...  # noqa: D102
    @property
    def fills(self) -> Mapping[str, Any]:
        """What stands in the file for a value of the descriptor -> that value."""

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Yield each block to take, with the set it is filled for (``""`` where it needs none)."""


@dataclass(frozen=True)
class Registration:
    """What a registration has to be scored on.

    Parameters
    ----------
    label_sets, landmark_sets
        Names; the first set's is ``""``.
    labels
        The labels that the descriptor names, those of the first set to score; all where it names none.
    image, mask
        Whether there is a fixed image, and a fixed mask.
    """

    label_sets: tuple[str, ...]
    landmark_sets: tuple[str, ...]
    labels: tuple[int, ...]
    image: bool
    mask: bool
    task: ClassVar[Task] = "registration"

    @property
    def fills(self) -> Mapping[str, Any]:
        """The labels to score."""
        return {"$labels": list(self.labels) or None}

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Yield the blocks of the labels, the landmarks and the field."""
        for kind, sets in (("label", self.label_sets), ("landmark", self.landmark_sets)):
            for name in sets:
                yield (f"{kind}_set", name) if name else (f"{kind}s", "")
        yield "field", ""
        if self.image:
            yield "field_body", ""
        if self.mask:
            yield "field_mask", ""


@dataclass(frozen=True)
class Segmentation:
    """What a segmentation has to be scored on.

    Parameters
    ----------
    tolerances
        Label of a structure -> the tolerance of its surface Dice, in the dataset's unit.
    """

    tolerances: Mapping[int, float]
    task: ClassVar[Task] = "segmentation"

    @property
    def fills(self) -> Mapping[str, Any]:
        """The structures and their tolerances, in one order."""
        return {"$labels": list(self.tolerances), "$tolerances": list(self.tolerances.values())}

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Yield the one block."""
        yield "structures", ""


@dataclass(frozen=True)
class Synthesis:
    """What a synthesis has to be scored on.

    Parameters
    ----------
    dynamic_range
        Of the target's intensities.
    anatomy
        The structures that were found in the synthetic or the real image; none where the dataset does not ask.
    """

    dynamic_range: float
    anatomy: tuple[int, ...] = ()
    task: ClassVar[Task] = "synthesis"

    @property
    def fills(self) -> Mapping[str, Any]:
        """The range and the structures."""
        return {"$dynamic_range": self.dynamic_range, "$anatomy": list(self.anatomy)}

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Yield the block of the image, and that of the anatomy where it was looked for."""
        yield "image", ""
        if self.anatomy:
            yield "geometry", ""


@dataclass(frozen=True)
class Plan:
    """What KonfAI is asked.

    Parameters
    ----------
    metrics
        The filled blocks, merged.
    results
        Key of a result in KonfAI's report (``output:target:Name``) -> metric of a row.
    """

    metrics: Metrics
    results: dict[str, str]

    @property
    def groups(self) -> frozenset[str]:
        """Names of everything that has to be staged."""
        targets = (part for output in self.metrics.values() for target in output for part in target.split(";"))
        return frozenset(self.metrics) | frozenset(targets)

    @property
    def questions(self) -> Iterator[Question]:
        """What is asked of the field."""
        for criteria in self.metrics.get("Field", {}).values():
            yield from (Question(**arguments) for arguments in criteria.values())


def plan(template: Path, evidence: Evidence) -> Plan:
    """Fill the blocks of an evaluation file that a case takes.

    Raises
    ------
    InputError
        When the file has a block, a criterion or an argument that does not exist, or lacks a block.
    """
    blocks = read_blocks(template, evidence.task)
    metrics: Metrics = {}
    results: dict[str, str] = {}
    for block, name in evidence.blocks():
        filled = _fill(blocks[block], {**evidence.fills, "$set": name})
        for output, targets in filled.items():
            for target, criteria in targets.items():
                metrics.setdefault(output, {}).setdefault(target, {}).update(criteria)
                for criterion in criteria:
                    short = criterion.rsplit(":", 1)[-1]
                    results[f"{output}:{target}:{short}"] = _METRICS[evidence.task][block][short].replace("$set", name)
    return Plan(metrics, results)


def read_blocks(template: Path, task: Task = "registration") -> dict[str, Metrics]:
    """Read a task's evaluation file and hold every key in it against what exists. Raises as :func:`plan`."""
    try:
        blocks = yaml.safe_load(template.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{template}: cannot be read as YAML: {error}"
        raise InputError(msg) from error
    problems = (
        list(_problems(blocks, _METRICS[task]))
        if isinstance(blocks, Mapping)
        else [f"must be a mapping, got {blocks!r}"]
    )
    if problems:
        raise InputError("\n".join(f"{template}: {problem}" for problem in problems))
    return dict(blocks)


def _problems(blocks: Mapping[str, Any], known: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield from (f"{block}: the block is missing" for block in known if block not in blocks)
    for block, outputs in blocks.items():
        if block not in known:
            yield f"{block}: unknown block; the blocks are {', '.join(known)}"
            continue
        for where, criterion, arguments in _criteria(block, outputs):
            if criterion.rsplit(":", 1)[-1] not in known[block]:
                yield f"{where}: this block's criteria are {', '.join(known[block])}"
            elif "." in criterion:
                # KonfAI would build it with its defaults, without a word.
                yield f"{where}: must be written with colons throughout, {criterion.replace('.', ':')}"
            else:
                yield from (f"{where}.{problem}" for problem in _argument_problems(criterion, arguments))


def _criteria(block: str, outputs: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for output, targets in outputs.items():
        for target, criteria in targets.items():
            for criterion, arguments in criteria.items():
                yield f"{block}.{output}.{target}.{criterion}", criterion, arguments or {}


def _argument_problems(criterion: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    module, _, name = criterion.rpartition(":")
    known = list(inspect.signature(getattr(import_module(module.replace(":", ".") or _KONFAI), name)).parameters)
    for argument in arguments:
        if argument not in known:
            yield f"{argument}: unknown argument; {name} takes {', '.join(known) or 'none'}"
    yield from (f"{argument}: is missing; say its value" for argument in known if argument not in arguments)


_KONFAI = "konfai.metric.measure"


def _fill(value: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any YAML value
    if isinstance(value, Mapping):
        return {_fill(key, values): _fill(inner, values) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_fill(inner, values) for inner in value]
    if isinstance(value, str):
        return values[value] if value in values else value.replace("$set", values["$set"])
    return value
