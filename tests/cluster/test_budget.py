"""Threads and tasks from a worker's memory, by numbers worked out by hand."""

from __future__ import annotations

import pytest

from fidopt.cluster.budget import BASE, plan, task_bytes, threads_here
from fidopt.descriptors.deployment import Local
from fidopt.errors import UsageError

MIB = 1 << 20


class Client:
    """A client whose workers are given."""

    def __init__(self, *workers):
        self._workers = {f"w{n}": {"nthreads": t, "memory_limit": m * MIB} for n, (t, m) in enumerate(workers)}

    def wait_for_workers(self, _count, timeout=None):
        pass

    def scheduler_info(self, n_workers):
        assert n_workers == -1
        return {"workers": self._workers}


@pytest.mark.parametrize(
    ("memory", "cores", "threads"),
    [
        ("1GiB", 8, 1),  # 819 - 350 = 469 MiB: one task of 256
        ("2GiB", 8, 5),  # 1638 - 350 = 1288 MiB: five
        ("2GiB", 2, 2),
        ("640MiB", 8, 1),  # 512 - 350: less than a task, which then works in parts
    ],
)
def test_threads_are_what_cores_and_memory_allow(memory, cores, threads):
    made = plan(Local(workers=1, cores=cores, memory=memory))
    assert (made.workers, made.threads) == (1, threads)


def test_a_larger_task_leaves_fewer_threads():
    assert plan(Local(workers=1, cores=8, memory="4GiB", task="1GiB")).threads == 2  # 3276 - 350 = 2926 MiB


def test_a_task_has_its_thread_s_share_of_the_smallest_worker():
    assert task_bytes(Client((1, 1024), (2, 2048))) == int(1024 * MIB * 0.8) - BASE
    assert task_bytes(Client((4, 2048))) == (int(2048 * MIB * 0.8) - BASE) // 4


def test_a_budget_below_a_worker_s_limit_counts_and_one_above_does_not():
    assert task_bytes(Client((1, 2048)), "1GiB") == task_bytes(Client((1, 1024)))
    assert task_bytes(Client((1, 1024)), "2GiB") == task_bytes(Client((1, 1024)))


def test_no_task_is_given_more_than_it_has_use_for():
    assert task_bytes(Client((1, 1 << 20))) == 1 << 30
    assert task_bytes(Client((1, 0))) == 1 << 30


def test_a_worker_with_too_many_threads_is_named_with_what_it_needs():
    # (350 + 16 * 128) / 0.8 = 2997.5
    with pytest.raises(UsageError, match=r"the worker at w0 has 16 threads and may use 1024MiB, but needs 2997MiB"):
        task_bytes(Client((16, 1024)))


def test_this_process_has_as_many_threads_as_its_memory_has_tasks(monkeypatch):
    monkeypatch.setattr("dask.system.CPU_COUNT", 64)
    assert threads_here(None) == 64
    assert threads_here("2GiB") == 13  # (2048 - 350) / 128
    assert task_bytes(None, "2GiB") == (2048 * MIB - BASE) // 13
