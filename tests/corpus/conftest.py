"""A dataset of two small cases, with its archive, in folders of the test's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fidopt import corpus, resources
from fidopt.descriptors.dataset import Dataset

PREPARE = '''
"""Copies what lies in the archive, a case's files under its name."""
import shutil
import sys
from pathlib import Path

source, target, *cases = sys.argv[1:]
for case in cases:
    folder = Path(target) / case
    (folder / "truth").mkdir(parents=True)
    for path in Path(source).glob(f"{case}-*"):
        name = path.name.removeprefix(f"{case}-").replace("truth-", "truth/")
        shutil.copyfile(path, folder / name)
'''

Make = Callable[..., tuple[Dataset, resources.Roots]]


def describe(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": "tiny",
        "title": "Two small pairs",
        "task": "registration",
        "dimension": 3,
        "unit": "mm",
        "modalities": {"fixed": "ct", "moving": "ct"},
        "spdx": "CC0-1.0",
        "citation": "made by the tests",
        "source": {"url": "nowhere", "files": {}},
        "cases": {"one": {"source": "tests", "learn2reg": None, "subjects": ["a", "a"]}},
        "truth": {"grade": "synthetic", "by": "the tests", "checked": "by nobody", "limits": "all", "labels": {}},
    }
    return document | changes


@pytest.fixture
def described() -> Callable[..., dict[str, Any]]:
    """Return a function that gives a sound dataset.json as a document, with changes."""
    return describe


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a dataset from files: ``{"one-fixed.nii.gz": path or bytes}`` and changes."""

    def _make(
        files: dict[str, Path | bytes], *, prepare: str = PREPARE, recipe: dict[str, Any] | None = None, **changes: Any
    ) -> tuple[Dataset, resources.Roots]:
        share, archive = tmp_path / "share", tmp_path / "archives" / "tiny"
        folder = share / "datasets" / "tiny"
        folder.mkdir(parents=True, exist_ok=True)
        archive.mkdir(parents=True, exist_ok=True)
        digests = {}
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            (archive / name).write_bytes(data)
            digests[name] = "sha256:" + hashlib.sha256(data).hexdigest()
        document = describe(**changes)
        document["source"] = {"url": "https://example.org/tiny", "files": digests} | changes.get("source", {})
        names = sorted({name.split("-")[0] for name in files})
        document["cases"] = changes.get("cases") or {n: describe()["cases"]["one"] for n in names}
        (folder / "dataset.json").write_text(json.dumps(document))
        (folder / "prepare.py").write_text(prepare)
        if recipe is not None:
            (archive / "private").mkdir(exist_ok=True)
            (archive / "private" / "warp.json").write_text(json.dumps(recipe))
        roots = resources.roots(share=share, corpus=tmp_path / "corpus", archives=tmp_path / "archives")
        return corpus.dataset("tiny", roots), roots

    return _make
