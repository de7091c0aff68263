"""CONTRIBUTING's example of a dataset that is added from nothing works as it is printed there."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from fidopt import corpus, resources
from fidopt.cli import main
from fidopt.images.landmarks import read_landmarks

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = PAGE[PAGE.index("### A worked example") : PAGE.index("## Adding a method")]


def block(after):
    """Return the indented block that follows a text of the example, without its indentation."""
    lines = EXAMPLE[EXAMPLE.index(after) :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("    "))
    last = next(i for i, line in enumerate(lines[first:], first) if line and not line.startswith("    "))
    return "\n".join(line[4:] for line in lines[first:last]) + "\n"


@pytest.fixture
def place(tmp_path, monkeypatch, shared_data):
    """Return a folder with the provider's files and the three files the example writes."""
    archive = tmp_path / "archives" / "sections"
    shutil.copytree(shared_data("histology"), archive)
    files = [path for path in archive.rglob("*.*") if path.suffix in {".csv", ".jpg"}]
    digests = {
        path.relative_to(archive).as_posix(): f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(files)
    }
    text = block("`mine/datasets/sections/dataset.json`").split("$ fidopt")[0]
    document = json.loads(re.sub(r'"files": \{.*\}', f'"files": {json.dumps(digests)}', text))
    folder = tmp_path / "mine" / "datasets" / "sections"
    folder.mkdir(parents=True)
    (folder / "dataset.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    (folder / "prepare.py").write_text(block("`mine/datasets/sections/prepare.py`"), encoding="utf-8")
    (folder / "pool.json").write_text(block("`mine/datasets/sections/pool.json`").split("$ fidopt")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIDOPT_SHARE", "mine")
    return folder


def test_a_dataset_is_added_as_the_example_says(place, capsys):
    assert main(["build", "sections"]) == 2
    assert " ".join(block("$ fidopt build sections").split()[3:]) in " ".join(capsys.readouterr().err.split())

    path = place / "dataset.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["to_fill"].remove("layout")
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    assert main(["draw", "sections", "--development", "1", "--write"]) == 0
    drawn = corpus.dataset("sections", resources.roots())
    assert (list(drawn.cases), drawn.development, drawn.to_fill) == (["kidney"], ("lesions",), ())

    path.write_text(path.read_text(encoding="utf-8").replace('"as-delivered"', '"image-centres"'), encoding="utf-8")
    capsys.readouterr()
    assert main(["align", "sections"]) == 0
    printed = [line for line in EXAMPLE.splitlines() if "aligned; image-centres" in line]
    assert [line.strip() for line in printed] == capsys.readouterr().out.splitlines()

    assert main(["build", "sections"]) == 0
    case = corpus.case(corpus.dataset("sections", resources.roots()), "kidney", resources.roots())
    fixed, moving = (read_landmarks(one, ndim=2) for one in case.landmark_sets()[""])
    assert np.linalg.norm(fixed - moving, axis=1).mean() == pytest.approx(21.56561635476989, abs=1e-9)
    assert "│  21.57 │" in EXAMPLE
