"""``fidopt build`` killed at any moment and run again: the cases of an undisturbed build, and nothing left over."""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile

from tests.killing import fidopt, files

#: Hands a case's references over.
PREPARE = """
import shutil, sys
from pathlib import Path
source, target, *cases = sys.argv[1:]
for case in cases:
    folder = Path(target) / case
    folder.mkdir()
    for path in Path(source).glob("*.json"):
        shutil.copyfile(path, folder / path.name)
"""
SIDES = ("fixed", "moving")
RECIPE = {"seed": 3, "distance": 16.0, "reach": 4.0, "border": "free", "points": 20}


@pytest.fixture
def words(make, tmp_path: Path) -> list[str]:
    """Return the command that builds a large dataset of a volume of several shards, its moving side warped."""
    stream = io.BytesIO()
    volume = np.random.default_rng(2).integers(0, 4000, (40, 300, 300)).astype(np.uint16)
    tifffile.imwrite(stream, volume, photometric="minisblack")
    said = {"file": "volume.tif", "spacing": [1.0, 1.0, 1.0], "unit": "mm", "axes": "psl"}
    given = {"volume.tif": stream.getvalue()} | {f"{side}.json": json.dumps(said).encode() for side in SIDES}
    truth = {"grade": "synthetic", "by": "t", "checked": "t", "limits": "t", "labels": {}}
    cases = {"one": {"source": "tests", "learn2reg": None, "subjects": ["a", "a"]}}
    more = {"large": True, "truth": truth, "warp": True, "alignment": {"mode": "as-delivered"}}
    make(given, prepare=PREPARE, recipe=RECIPE, cases=cases, **more)
    where = [f"--{name}={tmp_path / name}" for name in ("share", "corpus", "archives")]
    return ["build", "tiny", *where]


def within(corpus: Path) -> dict[str, bytes]:
    """Return the files of the cases; that nothing else is there but their record is seen to."""
    assert sorted(path.name for path in (corpus / "tiny").iterdir()) == [".built", "one"]
    assert [path.name for path in (corpus / "tiny" / ".built").iterdir()] == ["one.json"]
    return files(corpus / "tiny" / "one")


def test_a_build_killed_while_it_writes_is_taken_up(words: list[str], tmp_path: Path):
    corpus, wrote = tmp_path / "corpus", "tiny/.unfinished-one-*/case/moving.ome.zarr/0/c/0/*/*"
    done = fidopt(words, when=lambda: any(corpus.glob(wrote)))
    assert done.returncode == -signal.SIGKILL, done.stderr
    fixed = next(corpus.glob("tiny/.unfinished-one-*/case/fixed.ome.zarr"))
    before = {path: path.stat().st_ino for path in fixed.rglob("c/**/*") if path.is_file()}
    assert len(before) > 4
    again = fidopt(words)
    assert (again.returncode, again.stdout.splitlines()[0].partition(";")[0]) == (0, "tiny/one: taken up")
    taken_up = within(corpus)
    after = corpus / "tiny" / "one" / "fixed.ome.zarr"
    assert before == {
        fixed / path.relative_to(after): path.stat().st_ino for path in after.rglob("c/**/*") if path.is_file()
    }
    shutil.rmtree(corpus)
    assert fidopt(words).stdout.startswith("tiny/one: built;")
    assert within(corpus) == taken_up


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_kills_leave_the_case_of_an_undisturbed_build(words: list[str], tmp_path: Path):
    corpus, chance, kills = tmp_path / "corpus", random.Random(4), 50
    start = time.monotonic()
    assert fidopt(words).returncode == 0
    whole, took = within(corpus), time.monotonic() - start
    while kills:
        shutil.rmtree(corpus)
        while kills and fidopt(words, after_s=chance.uniform(0.3, 1.0) * took).returncode:
            kills -= 1
        assert fidopt(words).returncode == 0
        assert within(corpus) == whole
