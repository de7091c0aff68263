"""Runs one command and every process it starts to their end, and says what they cost.

A program of its own, which reads its order (a JSON object) from its standard input, so that it can be the parent of
last resort of all that the command starts: a process that forks twice or opens a session of its own is still found,
measured and ended. It imports nothing of fidopt and prints one JSON object when nothing of the command is alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

#: Linux: orphans of this process's descendants become its children; a signal when its own parent dies.
PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG = 36, 1
#: Seconds between two looks at memory: close at first, when short runs end, then further apart.
CLOSE, APART, CLOSE_FOR = 0.03, 0.2, 3.0
#: A look may cost this share of a core, so that it does not slow what it measures.
SHARE = 0.05
#: Bytes of the command's output that are kept when it prints more than the log may hold.
KEPT_BYTES = 1 << 16
#: Seconds after which processes that do not die of a kill (stuck in the kernel) are given up.
PATIENCE = 10.0


class Supervisor:
    """One command under watch.

    Parameters
    ----------
    order
        ``command`` (list), ``log`` (path), ``log_bytes``, ``timeout_s``, ``parent`` (process id), ``gpu`` (its index or
        UUID, or None).
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.me = psutil.Process()
        self.own_bytes = self.me.memory_info().rss
        self.peak_bytes = 0
        self.gpu = Gpu.of(order.get("gpu"))
        self.peak_gpu_bytes: int | None = None
        self.told_to_stop = False

    def run(self) -> dict[str, object]:
        """Run the command to its end or its limit, end all it left, and return what happened."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        adopt_orphans()
        if os.getppid() != self.order["parent"]:
            return {"failed": "the program that ordered it is gone"}
        log = os.open(self.order["log"], os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return self._watch(log)
        finally:
            os.close(log)

    def _watch(self, log: int) -> dict[str, object]:
        start = time.monotonic()
        try:
            main = subprocess.Popen(
                self.order["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        except OSError as error:
            return {"failed": str(error)}
        timed_out = self._wait(main, log, deadline=start + self.order["timeout_s"])
        seconds = time.monotonic() - start
        left = end_all(self.me)
        with contextlib.suppress(subprocess.TimeoutExpired):
            main.wait(timeout=PATIENCE)
        reap()
        shorten(log, limit=self.order["log_bytes"])
        # The kernel's own peak of the biggest process; until its exec a child counts as its parent, hence the margin.
        biggest = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        if biggest > 1.25 * self.own_bytes:
            self.peak_bytes = max(self.peak_bytes, biggest)
        return {
            "returncode": main.returncode,
            "timed_out": timed_out,
            "stopped": self.told_to_stop,
            "time_s": seconds,
            "peak_ram_mib": -(-self.peak_bytes // 2**20),
            "peak_gpu_mib": None if self.peak_gpu_bytes is None else -(-self.peak_gpu_bytes // 2**20),
            "left": left,
        }

    def _wait(self, main: subprocess.Popen[bytes], log: int, *, deadline: float) -> bool:
        """Measure until the command ends; return whether its time ran out first."""
        begun, cost = time.monotonic(), 0.0
        ended = end_of(main)
        # What ends before the first look in the loop has been seen once.
        self._look()
        while not self.told_to_stop:
            now = time.monotonic()
            if now >= deadline:
                return True
            pause = max(CLOSE if now - begun < CLOSE_FOR else APART, cost / SHARE)
            if ended(min(pause, deadline - now)):
                return False
            looked = time.thread_time()
            self._look()
            drop(log, limit=self.order["log_bytes"])
            reap(spare=main.pid)
            cost = time.thread_time() - looked
        return False

    def _look(self) -> None:
        processes = relatives(self.me)
        self.peak_bytes = max(self.peak_bytes, memory_bytes(processes))
        held = self.gpu.bytes({process.pid for process in processes}) if self.gpu else None
        if held is not None:
            self.peak_gpu_bytes = max(self.peak_gpu_bytes or 0, held)

    def _stop(self, number: int, frame: object) -> None:
        del number, frame
        self.told_to_stop = True


class Gpu:
    """What processes hold of one GPU's memory, as its driver tells.

    Parameters
    ----------
    library
        NVIDIA's NVML.
    handle
        The GPU.
    """

    def __init__(self, library: Any, handle: Any) -> None:  # noqa: ANN401 - the library is not typed
        self.library, self.handle = library, handle

    @classmethod
    def of(cls, name: str | None) -> Gpu | None:
        """Return a GPU by its index or its UUID; None where there is none, or no driver that tells of it."""
        if name is None:
            return None
        import pynvml

        try:
            pynvml.nvmlInit()
            if name.isdecimal():
                return cls(pynvml, pynvml.nvmlDeviceGetHandleByIndex(int(name)))
            return cls(pynvml, pynvml.nvmlDeviceGetHandleByUUID(name))
        except pynvml.NVMLError:
            return None

    def bytes(self, processes: set[int]) -> int | None:
        """Return what the processes hold together; None where the driver names none of them.

        Inside a container it names them by the numbers that they have outside.
        """
        try:
            running = self.library.nvmlDeviceGetComputeRunningProcesses(self.handle)
        except self.library.NVMLError:
            return None
        held = [one.usedGpuMemory for one in running if one.pid in processes and one.usedGpuMemory is not None]
        return sum(held) if held else None


def adopt_orphans() -> None:
    """Become the parent of what this process's descendants leave behind, and hear of the own parent's death."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def end_of(main: subprocess.Popen[bytes]) -> Any:  # noqa: ANN401 - a function of seconds
    """Return a function that waits some seconds for the command to end, and tells whether it did."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            poll = select.poll()
            poll.register(os.pidfd_open(main.pid), select.POLLIN)
            return lambda seconds: bool(poll.poll(max(0.0, seconds) * 1000)) and main.poll() is not None

    def ended(seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            main.wait(timeout=max(0.0, seconds))
        return main.returncode is not None

    return ended


def family(me: psutil.Process) -> list[psutil.Process]:
    """Return every living descendant."""
    alive = []
    for process in me.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def relatives(me: psutil.Process) -> list[psutil.Process]:
    """Return the descendants as the kernel lists them: one that is just being born may be missing, but it costs little.

    Looking through all processes of the machine, as :func:`family` does, takes tens of milliseconds on a busy one.
    """
    if not Path(f"/proc/{me.pid}/task/{me.pid}/children").exists():
        return family(me)
    found, todo = [], [me.pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                todo += (children := [int(word) for word in task.read_text().split()])
                found += children
    processes = []
    for pid in found:
        with contextlib.suppress(psutil.Error):
            processes.append(psutil.Process(pid))
    return processes


def memory_bytes(processes: list[psutil.Process]) -> int:
    """Return what processes hold in memory now; pages that several share are counted once."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            shared = len(processes) > 1 and sys.platform == "linux"
            total += process.memory_full_info().pss if shared else process.memory_info().rss
    return total


def reap(*, spare: int | None = None) -> None:
    """Collect the ends of adopted processes; that of ``spare`` is left to the one who waits for it."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == spare:
                return
            os.waitpid(ended.si_pid, 0)


def end_all(me: psutil.Process) -> int:
    """Kill every descendant and return how many there were; all are stopped first, so that none starts another."""
    met: set[int] = set()
    patience = time.monotonic() + PATIENCE
    while (alive := family(me)) and time.monotonic() < patience:
        new = [process for process in alive if process.pid not in met]
        for process in new or alive:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGSTOP if new else signal.SIGKILL)
        met.update(process.pid for process in new)
        if not new:
            time.sleep(0.005)
    return len(met)


def drop(log: int, *, limit: int) -> None:
    """Give back the disk of a growing log's first part; its size, and what is being written to it, stay.

    Cutting it down would lose what is written meanwhile, its last line perhaps.
    """
    size = os.fstat(log).st_size
    if size <= limit:
        return
    if sys.platform == "linux":
        # Keep the size, punch a hole.
        place, length = ctypes.c_longlong(0), ctypes.c_longlong(size - KEPT_BYTES)
        if ctypes.CDLL(None).fallocate(log, 0x01 | 0x02, place, length) == 0:
            return
    shorten(log, limit=limit)


def shorten(log: int, *, limit: int) -> None:
    """Cut a log that has grown over its limit down to its last lines."""
    size = os.fstat(log).st_size
    if size > limit:
        tail = os.pread(log, KEPT_BYTES, size - KEPT_BYTES)
        # What was printed while that was read: the command's last words may be among it.
        while more := os.pread(log, KEPT_BYTES, size):
            tail, size = tail + more, size + len(more)
        os.ftruncate(log, 0)
        os.write(log, b"[... output cut ...]\n" + tail)


if __name__ == "__main__":
    outcome = Supervisor(json.load(sys.stdin)).run()
    sys.stdout.write(json.dumps(outcome) + "\n")
