"""A run has its GPU alone, and what it holds of it is measured; the driver is a stand-in, there is no GPU here."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fidopt.runner.case import run_case
from fidopt.runner.gpu import alone_on, gpu_of
from fidopt.runner.supervisor import Gpu, Supervisor
from tests.runs.test_case import order


class Driver:
    """Answers as NVML does: processes with the memory they hold, None where it is not known."""

    NVMLError = RuntimeError

    def __init__(self, *answers: list[tuple[int, int | None]]) -> None:
        self.answers = list(answers)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[SimpleNamespace]:  # noqa: N802 - NVML's name
        del handle
        if not self.answers:
            raise RuntimeError
        return [SimpleNamespace(pid=pid, usedGpuMemory=held) for pid, held in self.answers.pop(0)]


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        ("cpu", "1", None),
        ("cuda:0", None, "0"),
        ("cuda", None, "0"),
        ("cuda:1", None, "1"),
        ("cuda:0", "3,1", "3"),
        ("cuda:1", "3, GPU-5f", "GPU-5f"),
        ("cuda:0", "", "0"),
    ],
)
def test_a_device_is_the_gpu_that_is_visible_under_its_number(device, visible, expected):
    assert gpu_of(device, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == expected


def test_a_second_run_waits_for_the_gpu_of_the_first_and_says_so(tmp_path):
    said, order_of_events, waiting = [], [], threading.Event()

    def second() -> None:
        def say(text: str) -> None:
            said.append(text)
            waiting.set()

        with alone_on("0", say=say, folder=tmp_path):
            order_of_events.append("second")

    with alone_on("0", say=said.append, folder=tmp_path), alone_on("1", say=said.append, folder=tmp_path):
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(10)
        order_of_events.append("first")
    other.join(10)
    assert order_of_events == ["first", "second"]
    assert said == ["GPU 0 is another run's: waiting for it"]


def test_a_cpu_holds_nothing(tmp_path):
    with alone_on(None, say=print, folder=tmp_path):
        assert not list(tmp_path.iterdir())


def test_memory_of_a_gpu_is_that_of_the_run_s_own_processes():
    driver = Driver([(1, 100), (2, 30), (3, None), (4, 7)], [(1, 100)], [(3, None)], [])
    gpu = Gpu(driver, None)
    assert gpu.bytes({2, 3, 4}) == 37
    assert gpu.bytes({2, 3}) is None
    assert gpu.bytes({3}) is None
    assert gpu.bytes({3}) is None
    assert gpu.bytes({3}) is None, "a driver that fails tells nothing"


def test_the_peak_on_the_gpu_is_kept():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        watch = Supervisor({"gpu": None})
        watch._look()
        assert watch.peak_gpu_bytes is None
        watch.gpu = Gpu(Driver([(child.pid, 3 << 20)], [(child.pid, 5 << 20)], [(child.pid, 1 << 20)], []), None)
        for _ in range(4):
            watch._look()
        assert watch.peak_gpu_bytes == 5 << 20
    finally:
        child.communicate(b"\n")


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="a driver answers here")
def test_without_a_driver_a_run_goes_on_and_its_gpu_memory_is_not_known(world):
    assert Gpu.of("0") is None
    assert Gpu.of("GPU-5f") is None
    world.method("m", 'cp "$1" "$3/DVF.nii.gz"')
    with run_case(order(world), world.case("one")) as result:
        assert result.failure is None
        assert result.peak_gpu_mib is None


def test_the_first_run_of_a_method_that_may_download_its_model_is_not_timed(world):
    world.method("m", 'cp "$1" "$3/DVF.nii.gz"', network="its weights are downloaded when it is first used")
    chosen, said, times = order(world), [], []
    chosen.environment.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        with run_case(chosen, world.case("one"), say=said.append) as result:
            assert result.failure is None
            times.append(result.time_s)
    assert times[0] is None
    assert times[1] is not None
    assert said == [
        "m: the first run in its environment is not timed: its weights are downloaded when it is first used"
    ]
