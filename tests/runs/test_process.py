from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fidopt.runner import supervisor
from fidopt.runner.process import RUN_VARIABLE, CannotStartError, Outcome, end_strays, environment, supervise


def run(folder: Path, script: str, *, timeout_s: float = 30) -> Outcome:
    variables = environment({"MARK": str(folder)}, threads=1)
    return supervise(
        ["bash", "-c", script], variables=variables, folder=folder, log=folder / "log", timeout_s=timeout_s
    )


def alive(folder: Path) -> list[psutil.Process]:
    """Return the processes that carry this test's folder in their environment."""
    mark = f"MARK={folder}".encode()
    found = []
    for process in psutil.process_iter():
        try:
            if mark in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                found.append(process)
        except OSError:
            continue
    return [p for p in found if p.status() != psutil.STATUS_ZOMBIE]


def test_a_command_is_timed_and_its_end_is_told(tmp_path):
    outcome = run(tmp_path, "sleep 0.3; echo said; exit 3")
    assert (outcome.returncode, outcome.timed_out, outcome.log) == (3, False, "said")
    assert 0.3 <= outcome.time_s < 0.6


def test_a_signal_that_ends_a_command_is_a_negative_code(tmp_path):
    assert run(tmp_path, "kill -SEGV $$").returncode == -11


STUBBORN = {
    "a child with a session of its own": "setsid sleep 60 & sleep 60",
    "a child that ignores the polite signal": "(trap '' TERM INT HUP; while :; do sleep 0.1; done) & sleep 60",
    "a double fork that left its parent": "(setsid bash -c '(sleep 60 & sleep 60 &)' &) ; sleep 60",
    "a fork every few milliseconds": "spawn() { (sleep 0.02; spawn) & }; spawn; sleep 60",
    "a main process that ignores everything": "trap '' TERM INT HUP; while :; do sleep 0.1; done",
    "a program that daemonises by the book": (
        f'{sys.executable} -c "import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n'
        'os.closerange(0, 3)\ntime.sleep(60)"; sleep 60'
    ),
}


@pytest.mark.parametrize("script", STUBBORN.values(), ids=STUBBORN.keys())
def test_nothing_is_alive_a_second_after_the_limit(tmp_path, script):
    start = time.monotonic()
    outcome = run(tmp_path, script, timeout_s=0.5)
    assert outcome.timed_out
    assert outcome.returncode == -9
    assert alive(tmp_path) == []
    assert time.monotonic() - start < 1.5


def test_what_a_command_leaves_behind_is_ended_too(tmp_path):
    outcome = run(tmp_path, "setsid sleep 60 & (setsid bash -c 'sleep 60 & sleep 60' &); sleep 0.1; exit 0")
    assert (outcome.returncode, outcome.timed_out) == (0, False)
    assert outcome.time_s < 1
    assert alive(tmp_path) == []


def test_a_command_that_kills_its_supervisor_leaves_nothing(tmp_path):
    with pytest.raises(CannotStartError, match="supervisor"):
        run(tmp_path, "setsid sleep 60 & sleep 0.1; kill -9 $PPID; sleep 60")
    assert alive(tmp_path) == []


def test_strays_are_found_by_the_run_they_carry(tmp_path):
    stray = subprocess.Popen(["sleep", "60"], env={**os.environ, RUN_VARIABLE: "abc"})
    other = subprocess.Popen(["sleep", "60"], env={**os.environ, RUN_VARIABLE: "abcd"})
    end_strays("abc")
    assert stray.wait(timeout=5) == -9
    assert other.poll() is None
    other.kill()
    other.wait()


def test_an_interrupted_caller_takes_everything_with_it(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from fidopt.runner.process import environment, supervise\n"
        "f = Path(sys.argv[1])\n"
        "supervise(['bash', '-c', 'setsid sleep 60 & touch started; sleep 60'], folder=f, log=f / 'log',\n"
        "          timeout_s=60, variables=environment({'MARK': str(f)}, threads=1))\n"
    )
    for signal in ("terminate", "kill"):
        caller = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.DEVNULL)
        started = tmp_path / "started"
        deadline = time.monotonic() + 20
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        started.unlink()
        assert alive(tmp_path)
        getattr(caller, signal)()
        caller.wait()
        deadline = time.monotonic() + 2
        while alive(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert alive(tmp_path) == []


HOLD = (
    "import sys,time; held = bytearray(int(sys.argv[1]) << 20); held[::4096] = b'x' * len(held[::4096]); time.sleep({})"
)


def test_peak_memory_is_that_of_all_processes_at_once(tmp_path):
    (tmp_path / "hold.py").write_text(HOLD.format(0.6))
    outcome = run(tmp_path, f"for n in 1 2 3; do {sys.executable} -I -S hold.py 60 & done; wait")
    assert 180 <= outcome.peak_ram_mib < 230


def test_a_peak_too_short_to_be_sampled_is_seen(tmp_path):
    (tmp_path / "hold.py").write_text(HOLD.format(0))
    outcome = run(tmp_path, f"{sys.executable} -I -S hold.py 150")
    assert 150 <= outcome.peak_ram_mib < 180


def test_pages_that_forks_share_count_once(tmp_path):
    script = HOLD.format(0) + "\nimport os\nfor _ in range(3): os.fork()\ntime.sleep(0.6)"
    (tmp_path / "hold.py").write_text(script)
    outcome = run(tmp_path, f"{sys.executable} -I -S hold.py 100")
    assert 100 <= outcome.peak_ram_mib < 180


def test_a_log_without_end_stays_bounded_and_keeps_its_end(tmp_path):
    outcome = run(tmp_path, "head -c 80000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo the end")
    assert (tmp_path / "log").stat().st_size < 40_000_000
    assert outcome.log.endswith("the end")
    assert len(outcome.log) <= 2000


def test_a_growing_log_gives_back_its_disk_and_loses_no_word(tmp_path):
    path = tmp_path / "log"
    with path.open("ab+", buffering=0) as log:
        for number in range(40):
            log.write(b"x" * (1 << 20) + b"line %d" % number)
            supervisor.drop(log.fileno(), limit=1 << 22)
            assert path.stat().st_blocks * 512 < 6 << 20
        assert path.stat().st_size > 40 << 20
        supervisor.shorten(log.fileno(), limit=1 << 22)
    assert path.stat().st_size < 1 << 17
    assert path.read_bytes().endswith(b"line 39")


def test_a_log_that_is_no_text_is_kept_as_text(tmp_path):
    assert "bad \ufffd\ufffd end" in run(tmp_path, "printf 'bad \\xff\\xfe end\\0\\n'").log


def test_a_program_that_does_not_exist_cannot_start(tmp_path):
    with pytest.raises(CannotStartError, match="no-such-program"):
        supervise(["no-such-program"], variables={}, folder=tmp_path, log=tmp_path / "log", timeout_s=1)


def test_the_environment_names_no_folder_of_fidopts(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus"
    for name in ("FIDOPT_CORPUS", "FIDOPT_RESULTS", "FIDOPT_PRIVATE", "OLDPWD", "MY_DATA", "PYTHONPATH"):
        monkeypatch.setenv(name, f"{corpus}/retina")
    monkeypatch.setenv("FIDOPT_DEEDS_BIN", "/opt/deeds")
    found = environment({"FIDOPT_ENV": "/envs/x"}, threads=3, hidden=[corpus])
    assert not any(str(corpus) in value for value in found.values())
    assert found["FIDOPT_DEEDS_BIN"] == "/opt/deeds"
    assert (found["OMP_NUM_THREADS"], found["ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS"]) == ("3", "3")
    assert {"PATH", "FIDOPT_ENV"} <= set(found)


def test_a_supervisor_whose_caller_is_gone_does_not_start(tmp_path):
    order = {"command": ["touch", "x"], "log": str(tmp_path / "log"), "log_bytes": 1, "timeout_s": 1, "parent": -1}
    words = [sys.executable, supervisor.__file__]
    answer = subprocess.run(words, input=json.dumps(order).encode(), cwd=tmp_path, capture_output=True, check=True)
    assert b"failed" in answer.stdout
    assert not (tmp_path / "x").exists()
