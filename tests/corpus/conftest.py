"""A dataset of two small cases, with its archive, in folders of the test's own."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import numpy.typing as npt
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
            secret = recipe | {"seed": recipe["seed"] + 10**14}  # as long as a secret one has to be
            (archive / "private" / "warp.json").write_text(json.dumps(secret))
        roots = resources.roots(share=share, corpus=tmp_path / "corpus", archives=tmp_path / "archives")
        return corpus.dataset("tiny", roots), roots

    return _make


def nifti(voxels: npt.ArrayLike, *, spacing: tuple[float, ...] = (1.0, 1.0, 1.0), turn: float = 0.0) -> bytes:
    """Return a .nii.gz of voxels (x, y[, z]), turned about z by so many degrees."""
    array = np.asarray(voxels)
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    affine = np.eye(4)
    affine[:2, :2] = [[c, -s], [s, c]]
    affine[:3, :3] *= (*spacing, 1.0)[:3]
    affine[:3, 3] = [-12.5, 7.25, 300.0]
    image = nibabel.Nifti1Image(array, affine)
    image.set_sform(affine, code=1)
    image.set_qform(affine, code=1)
    return gzip.compress(image.to_bytes(), mtime=0)


@pytest.fixture
def pair() -> dict[str, bytes]:
    """The files of two cases: oblique anisotropic images of odd sizes, a label map, landmarks."""
    random = np.random.default_rng(5)
    files: dict[str, bytes] = {}
    for case in ("one", "two"):
        for side, shape in (("fixed", (19, 23, 11)), ("moving", (21, 17, 13))):
            image = random.integers(-1000, 1000, size=shape).astype(np.int16)
            labels = (image > 0).astype(np.uint8) * 3
            files[f"{case}-{side}.nii.gz"] = nifti(image, spacing=(0.9, 1.1, 2.5), turn=12)
            files[f"{case}-truth-{side}_labels.nii.gz"] = nifti(labels, spacing=(0.9, 1.1, 2.5), turn=12)
            files[f"{case}-truth-{side}_landmarks.csv"] = b"x,y,z\n12.0,-8.5,305.25\n13.1,-9.75,301.5\n"
    return files
