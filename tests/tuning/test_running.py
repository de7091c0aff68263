"""How many runs go on at a time, and that all of them end."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fidopt.descriptors.base import parse
from fidopt.descriptors.method import Method
from fidopt.results import new_row
from fidopt.runner.case import Order
from fidopt.tuning import running
from fidopt.tuning.rows import Place
from fidopt.tuning.running import Job, Worker, run_all
from fidopt.tuning.settings import Setting
from tests.runs.conftest import World, method_document

MIB = 2**20


def method(**changes) -> Method:
    import json

    return parse(Method, json.dumps(method_document("m", **changes)), where="test")


@pytest.mark.parametrize(
    ("changes", "threads", "memory_mib", "peak_mib", "room"),
    [
        ({"threads": 1}, 8, 10_000, 100, 8),
        ({"threads": 2}, 8, 10_000, 100, 4),
        ({"threads": 3}, 8, 10_000, 100, 2),
        ({"threads": 16}, 8, 10_000, 100, 1),
        # 80 % of the memory over 120 % of the largest run.
        ({"threads": 1}, 8, 1200, 200, 4),
        ({"threads": 1}, 8, 100, 200, 1),
        # Nothing is known of its memory yet; it takes all threads; it has the GPU alone.
        ({"threads": 1}, 8, 10_000, None, 1),
        ({"threads": None}, 8, 10_000, 100, 1),
        ({"threads": 1, "device": "cuda"}, 8, 10_000, 100, 1),
    ],
)
def test_a_worker_has_room_for_what_its_threads_memory_and_gpu_allow(changes, threads, memory_mib, peak_mib, room):
    with ThreadPoolExecutor(1) as pool:
        assert Worker(pool, threads, memory_mib * MIB).room(method(**changes), peak_mib) == room


@pytest.fixture
def jobs(world: World) -> list[Job]:
    world.method("m", "true")
    order = Order(method(threads=1), world.share / "methods" / "m", world.roots.environments, 1)
    return [
        Job(
            Place(
                world.roots.results, "m", "1", "sha256:" + "0" * 64, Setting(str(n), {"n": n}), world.case("one"), "f"
            ),
            order,
            world.roots,
        )
        for n in range(9)
    ]


def test_the_first_run_goes_alone_and_the_others_as_many_at_a_time_as_there_is_room(jobs, monkeypatch):
    lock, now, most, told = threading.Lock(), [0], [], []

    def run(job: Job):
        with lock:
            now[0] += 1
            most.append(now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return new_row({"tre": 1.0}, peak_ram_mib=100)

    monkeypatch.setattr(running, "run_job", run)
    with ThreadPoolExecutor(8) as pool:
        found = [Worker(pool, 2, 10_000 * MIB), Worker(pool, 1, 10_000 * MIB)]
        run_all(jobs, found, done=lambda job, row: told.append(job.place.setting.name))
    assert sorted(told) == [str(n) for n in range(9)]
    # One on each worker before the memory is known, then two and one.
    assert most[:2] == [1, 2]
    assert max(most) == 3


def test_an_error_that_is_no_case_s_stops_all(jobs, monkeypatch):
    def run(job: Job):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(running, "run_job", run)
    with ThreadPoolExecutor(2) as pool, pytest.raises(OSError, match="No space"):
        run_all(jobs, [Worker(pool, 2, MIB)], done=lambda job, row: None)


def test_a_job_goes_to_another_process_and_back(jobs):
    again = pickle.loads(pickle.dumps(jobs[3]))
    assert again.place.path == jobs[3].place.path
    assert again.place.setting.values == {"n": 3}


def test_a_row_stands_for_the_code_the_version_and_the_files_it_was_made_of_alone(jobs):
    from dataclasses import replace

    place = replace(jobs[3].place, files="sha256:" + "1" * 64)
    assert place.read() is None
    place.write(new_row({"tre": 1.0}, method_version="1"), host="here", at_once=2)
    assert place.read().metrics == {"tre": 1.0}
    for changed in ({"code": "sha256:" + "2" * 64}, {"version": "2"}, {"files": "sha256:" + "2" * 64}):
        assert replace(place, **changed).read() is None
    place.path.write_text(place.path.read_text()[:-20])
    assert place.read() is None
