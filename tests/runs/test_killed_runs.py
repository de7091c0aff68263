"""A hundred runs ended by their time limit, with children that do all they can to outlive it."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from fidopt.results import read_rows
from fidopt.runner.session import run_dataset

#: Holds memory and shows that it is alive until it is ended, whatever it is asked.
BEAT = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
way, beat = sys.argv[1:3]
if way in {"setsid", "daemon"} and os.fork():
    time.sleep(60)
if way in {"setsid", "daemon"}:
    os.setsid()
if way == "daemon":
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.closerange(0, 3)
held = bytearray(40 << 20)
held[::4096] = b"x" * len(held[::4096])
if way == "fork":
    for _ in range(4):
        os.fork()
while True:
    with open(beat, "a") as stream:
        stream.write(f"{time.time()}\\n")
    time.sleep(0.05)
"""
WAYS = ("setsid", "daemon", "fork", "ignore")
ROUNDS = 9


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS)
def test_a_hundred_runs_that_are_ended_leave_nothing_alive_and_a_row_each(world, scorer, way):
    share = world.share
    share.mkdir(parents=True, exist_ok=True)
    (share / "beat.py").write_text(BEAT)
    run = f"{sys.executable} -I -S {share}/beat.py {way} {share}/beat-$$ & sleep 60 & exec sleep 60\n"
    world.method("m", run, timeout_s=2)
    ended = 0
    for _ in range(ROUNDS):
        before = set(psutil.pids())
        for old in share.glob("beat-*"):
            old.unlink()
        finished = run_dataset(
            "m", "toy", [], roots=world.roots, say=world.say, again="all", machine="host", scorer=scorer
        )
        mine = [p for p in set(psutil.pids()) - before if _names(p, f"{share}/beat.py")]
        assert mine == []
        rows = read_rows(finished.line.rows).rows
        assert set(finished.failed) == set(rows)
        for row in rows.values():
            assert row.error is not None
            assert row.error.stage == "timeout"
            assert row.time_s < 3
            ended += 1
        lives = [_life(path) for path in share.glob("beat-*")]
        assert max(lives) < 3
        # On a machine too busy for a child to begin within the limit there is no memory to be seen.
        if len(lives) == len(rows):
            assert min(row.peak_ram_mib for row in rows.values()) >= 40
    assert ended == 3 * ROUNDS


def _life(beats: Path) -> float:
    """Return the seconds between the first and the last sign of life of one run's children."""
    times = [float(line) for line in beats.read_text().split()]
    return max(times) - min(times)


def _names(pid: int, script: str) -> bool:
    try:
        return script in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
