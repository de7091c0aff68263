"""A dataset's pool: where it lies, and what the draw makes of it and of the dataset's descriptor."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fidopt.corpus.drawing import Candidate, candidates, develop, draw, first_of_training, place
from fidopt.corpus.finding import dataset_folder, filled
from fidopt.descriptors.base import load, parse, shown
from fidopt.descriptors.dataset import CaseEntry, Dataset, Draw
from fidopt.descriptors.editing import edited
from fidopt.descriptors.pool import Pool
from fidopt.errors import MissingError, UsageError
from fidopt.images.atomic import written_whole
from fidopt.resources import Roots, packaged_share

#: What a dataset may be drawn without: it is what the draw fills.
_DRAWN = ("cases", "development")


@dataclass(frozen=True)
class Drawn:
    """The cases of a dataset as the draw gives them.

    Parameters
    ----------
    cases
        The test cases, in the order of their names.
    development
        The names of the development cases, in the order of the draw.
    sources
        Source -> how many cases of the pool it has.
    """

    cases: tuple[Candidate, ...]
    development: tuple[str, ...]
    sources: dict[str, int]


def asked_draw(dataset: Dataset) -> Draw:
    """Return how a dataset is drawn.

    Raises
    ------
    UsageError
        When its descriptor says nothing of it, or leaves open what is not filled by the draw itself.
    """
    filled(dataset, apart_from=_DRAWN)
    if dataset.draw is None:
        msg = (
            f"{dataset.name} is not drawn: its dataset.json has no draw, so that every case with a truth is a test "
            f"case ({len(dataset.cases)}); a draw is such as "
            f'{{"seed": 20251011, "count": 10}}, or a count of null where an official split is tested'
        )
        raise UsageError(msg)
    return dataset.draw


def pool(dataset: Dataset, roots: Roots) -> Pool:
    """Return every case of a dataset that has a ground truth.

    Raises
    ------
    MissingError
        When no pool.json lies beside the dataset's descriptor.
    DescriptorError
        With every problem of the file.
    """
    path = dataset_folder(dataset.name, roots) / "pool.json"
    if not path.is_file():
        msg = (
            f"{shown(path)} is missing: it lists every case with a ground truth that {dataset.name} is drawn from, "
            f'as {{"cases": {{"NAME": {{"source": "...", "subjects": ["..."]}}}}}}'
        )
        raise MissingError(msg)
    return load(Pool, path)


def drawn(dataset: Dataset, pool: Pool, *, development: int | None = None) -> Drawn:
    """Return the test and the development cases that a dataset's draw gives.

    Parameters
    ----------
    dataset
        Its seed and its count; its own cases are the test cases where the count is null.
    pool
        Every case with a ground truth.
    development
        How many are set aside to tune on; None keeps those of the descriptor, which are then no test cases.

    Raises
    ------
    UsageError
        When the descriptor leaves open what is needed, or has no draw.
    """
    asked = asked_draw(dataset)
    seed, count = asked.seed, asked.count
    found = candidates(pool, seed=seed, dataset=dataset.name)
    if count is None:
        test = _split(dataset, seed)
        aside = first_of_training(found, test, development or 0)
    else:
        held = set() if development is not None else set(dataset.development)
        test = draw([one for one in found if one.name not in held], count)
        aside = develop(found, test, development or 0)
    names = dataset.development if development is None else tuple(one.name for one in aside)
    ordered = test if count is None else tuple(sorted(test, key=lambda one: one.name))
    return Drawn(ordered, names, dict(sorted(Counter(one.source for one in found).items())))


def descriptor_path(dataset: Dataset, roots: Roots) -> Path:
    """Return the file that describes a dataset."""
    return dataset_folder(dataset.name, roots) / "dataset.json"


def redrawn(text: str, found: Drawn) -> str:
    """Return the text of a dataset.json with the cases of a draw, all else as it stands.

    Keys that the draw has filled are no longer listed in ``to_fill``.
    """
    before = json.loads(text)
    values: dict[str, Any] = {"cases": _cases(before.get("cases") or {}, found)}
    if found.development or before.get("development"):
        values["development"] = list(found.development)
    done = [key for key in _DRAWN if values.get(key)]
    if set(done) & set(before.get("to_fill") or ()):
        values["to_fill"] = [key for key in before["to_fill"] if key not in done]
    return edited(text, values, order=list(Dataset.model_fields))


def write(dataset: Dataset, text: str, roots: Roots) -> Path:
    """Write the text of a dataset's descriptor, and return its path.

    Raises
    ------
    UsageError
        When the descriptor is part of the installed package.
    DescriptorError
        When the text is no sound descriptor; nothing is written.
    """
    path = descriptor_path(dataset, roots)
    packaged = packaged_share()
    if packaged.name == "_share" and packaged.resolve() in path.resolve().parents:
        msg = (
            f"{path} is part of the installed package and is not written; copy {path.parent} into datasets/ of your "
            f"own folder and name that with --share"
        )
        raise UsageError(msg)
    parse(Dataset, text, where=shown(path))
    with written_whole(path) as part:
        part.write_bytes(text.encode())
    return path


def _split(dataset: Dataset, seed: int) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(place(seed, dataset.name, name), name, entry.source, entry.subjects, entry.learn2reg)
        for name, entry in dataset.cases.items()
    )


def _cases(before: dict[str, Any], found: Drawn) -> dict[str, Any]:
    """Return the cases as JSON: an entry that says the same, and an order that holds the same, stay as they are."""
    cases = {}
    for one in found.cases:
        entry, said = one.entry(), before.get(one.name)
        same = said is not None and CaseEntry.model_validate_json(json.dumps(said)) == entry
        cases[one.name] = said if same else entry.model_dump(mode="json")
    return {name: cases[name] for name in before} if set(before) == set(cases) else cases
