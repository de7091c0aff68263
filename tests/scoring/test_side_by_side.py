"""Cases scored in several processes: the same rows, within the memory, and nothing left when one goes wrong."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from fidopt import corpus
from fidopt.errors import FidoptError
from fidopt.images.nifti import write_field
from fidopt.results import read_rows
from fidopt.runner.previews import draw_or_say
from fidopt.scoring import side_by_side as module
from fidopt.scoring import submission
from fidopt.scoring.side_by_side import A_VOXEL, BASE, processes_for, side_by_side

SHIFT = (3.0, -4.0, 2.0)


def squared(number: int) -> tuple[int, int]:
    if number == 13:
        msg = "thirteen"
        raise ValueError(msg)
    if number == 66:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number, os.getpid()


LOCKS = []


def locked(number: int) -> int:
    LOCKS.append(multiprocessing.get_context("spawn").RLock())  # as torch, dask and tqdm make theirs
    return number


@pytest.fixture
def eager(monkeypatch):
    """Have processes started however little there is to do."""
    monkeypatch.setattr(module, "STARTING_S", -1e9)


def test_short_work_is_done_in_this_process():
    found = dict(side_by_side(squared, [1, 2, 3, 4], processes=4))
    assert {k: value for k, (value, _) in found.items()} == {0: 1, 1: 4, 2: 9, 3: 16}
    assert {pid for _, pid in found.values()} == {os.getpid()}


def test_long_work_is_shared_by_several_processes(eager):
    found = dict(side_by_side(squared, [1, 2, 3, 4], processes=2))
    assert {k: value for k, (value, _) in found.items()} == {0: 1, 1: 4, 2: 9, 3: 16}
    assert found[0][1] == os.getpid()
    assert os.getpid() not in {pid for _, pid in list(found.values())[1:]}
    assert not multiprocessing.active_children()


def test_processes_that_have_done_their_work_leave_no_word_behind():
    script = (
        "from fidopt.scoring import side_by_side as module\n"
        "from tests.scoring.test_side_by_side import locked\n"
        "module.STARTING_S = -1e9\n"
        "print(sorted(module.side_by_side(locked, [1, 2, 3], processes=2)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[(0, 1), (1, 2), (2, 3)]\n"
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("bad", "error", "said"), [(13, ValueError, "thirteen"), (66, FidoptError, "was ended from outside")]
)
def test_what_goes_wrong_in_a_process_comes_here_and_leaves_none(eager, bad, error, said):
    with pytest.raises(error, match=said):
        list(side_by_side(squared, [1, bad, 3], processes=2))
    assert not multiprocessing.active_children()


def test_processes_start_where_the_rest_is_done_sooner_with_them():
    assert module._pays(10.0, done=1, left=9, processes=4)
    assert not module._pays(0.1, done=1, left=9, processes=4)
    assert not module._pays(10.0, done=1, left=1, processes=4)
    assert not module._pays(10.0, done=1, left=9, processes=1)


def test_as_many_cases_are_scored_at_a_time_as_the_memory_holds(make_case, roots, monkeypatch):
    monkeypatch.setattr(module, "CPU_COUNT", 8)
    case = make_case(shift=SHIFT)
    assert module._voxels(case) >= np.prod(case.fixed_grid().shape)
    one = BASE + A_VOXEL * module._voxels(case)
    for memory, expected in ((1, 1), (one, 1), (2 * one, 2), (3 * one - 1, 2), (100 * one, 4)):
        assert processes_for([case] * 4, memory_bytes=memory) == expected
    monkeypatch.setattr(module, "CPU_COUNT", 3)
    assert processes_for([case] * 4, memory_bytes=100 * one) == 3


def test_the_rows_are_the_same_from_several_processes(make_case, roots, grids, tmp_path, monkeypatch):
    pytest.importorskip("konfai", reason="KonfAI is not installed")
    grid = grids()[0]
    vectors = np.empty((3, *grid.shape), dtype=np.float32)
    vectors[:] = np.array(SHIFT).reshape(3, 1, 1, 1)
    # The second is worse than no registration, and that is said.
    for case, sign in (("case01", 1), ("case02", -1)):
        make_case(shift=SHIFT, name=case)
        (tmp_path / "fields" / case).mkdir(parents=True)
        write_field(tmp_path / "fields" / case / "DVF.nii.gz", sign * vectors, grid)
    dataset = corpus.dataset("tiny", roots)
    told = {"fields": tmp_path / "fields", "roots": roots, "machine": "here", "draw": draw_or_say}
    said: dict[str, list[str]] = {"one": [], "two": []}
    submission.score_fields("one", dataset, say=said["one"].append, memory_bytes=1, **told)
    monkeypatch.setattr(module, "_pays", lambda *_, **__: True)
    two = submission.score_fields("two", dataset, say=said["two"].append, **told)
    assert [one.case for one in two.cases] == ["case01", "case02"]
    rows = {name: read_rows(roots.results / "here" / name / "tiny.json") for name in said}
    assert rows["one"].rows == rows["two"].rows
    remarks = {name: [text for text in texts if text.startswith("tiny/")] for name, texts in said.items()}
    assert remarks["one"] == remarks["two"]
    assert "tiny/case02: worse than no registration" in remarks["two"][0]
    pictures = {
        name: {path.name: path.read_bytes() for path in (roots.results / "here" / name).glob("*.previews/*/*.png")}
        for name in said
    }
    assert pictures["one"] == pictures["two"] != {}
