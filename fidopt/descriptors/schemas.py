"""The JSON Schema of every kind of descriptor: what an editor completes and explains, and underlines where it is wrong.

A schema takes every file that fidopt takes. It cannot say all that fidopt checks: most of what two keys, or two files,
have to do with each other is said when the file is read.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from fidopt.descriptors import deployment
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.dataset import Dataset
from fidopt.descriptors.families import Families
from fidopt.descriptors.learn2reg import OfficialZero, Published
from fidopt.descriptors.machine import Machine
from fidopt.descriptors.method import Method
from fidopt.descriptors.outputs import OutputNames
from fidopt.descriptors.pool import Pool
from fidopt.descriptors.reference import ImageReference
from fidopt.descriptors.rows import Rows
from fidopt.descriptors.screening import Screening
from fidopt.descriptors.structures import Structures
from fidopt.descriptors.tracks import Tracks
from fidopt.descriptors.verdicts import Verdicts
from fidopt.errors import UsageError

DRAFT = "https://json-schema.org/draft/2020-12/schema"

#: Kind -> (the files it describes, its model). A deployment is one of several kinds of cluster.
KINDS: dict[str, tuple[str, Any]] = {
    "dataset": ("datasets/NAME/dataset.json", Dataset),
    "pool": ("datasets/NAME/pool.json", Pool),
    "checksums": ("datasets/NAME/checksums.json, checksums_development.json", Checksums),
    "published": ("datasets/NAME/published.json", Published),
    "official_zero": ("datasets/NAME/official_zero.json", OfficialZero),
    "image": ("an image that prepare.py leaves where it lies: CASE/fixed.json and the like", ImageReference),
    "tracks": ("datasets/tracks.json", Tracks),
    "families": ("datasets/families.json", Families),
    "structures": ("datasets/structures.json", Structures),
    "screening": ("datasets/screening.json", Screening),
    "method": ("methods/NAME/method.json", Method),
    "labels": ("the labels.json that a segmentation method writes", OutputNames),
    "check": ("methods/NAME/check.json", Verdicts),
    "machine": ("RESULTS/MACHINE/machine.json", Machine),
    "rows": ("RESULTS/MACHINE/METHOD/DATASET.json", Rows),
    "deployment": ("deploy/NAME.yml", tuple(deployment.KINDS.values())),
}


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a kind of descriptor.

    Raises
    ------
    UsageError
        When there is no such kind.
    """
    if kind not in KINDS:
        msg = f"there is no kind of descriptor {kind!r}; there are: {', '.join(KINDS)}"
        raise UsageError(msg)
    files, model = KINDS[kind]
    models = model if isinstance(model, tuple) else (model,)
    if len(models) == 1:
        made = models[0].model_json_schema(by_alias=True)
    else:
        parts = {one: TypeAdapter(one).json_schema(by_alias=True) for one in models}
        shared = {name: part for found in parts.values() for name, part in found.pop("$defs", {}).items()}
        made = {"oneOf": list(parts.values()), "$defs": shared}
    rest = {key: value for key, value in made.items() if key not in {"title", "$defs"}}
    whole = {"$schema": DRAFT, "title": files, **rest, **({"$defs": made["$defs"]} if made.get("$defs") else {})}
    _close(whole)
    return whole


def _close(part: Any) -> None:  # noqa: ANN401 - any JSON value
    """Refuse the keys of mappings that are not as they must be; Pydantic says only what those are that match."""
    if isinstance(part, dict):
        if "patternProperties" in part:
            part.setdefault("additionalProperties", False)
        for value in part.values():
            _close(value)
    elif isinstance(part, list):
        for value in part:
            _close(value)
