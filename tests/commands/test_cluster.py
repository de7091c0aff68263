"""``fidopt cluster``: what it prints, how it ends, and what another command does with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fidopt.cli import main

COMMAND = [sys.executable, "-c", "import sys; from fidopt.cli import main; sys.exit(main())", "cluster"]


@pytest.fixture
def started(tmp_path):
    """Return a function that starts the command in a session of its own, as a terminal does, and waits for a line."""
    processes = []

    def start(*words, background=False):
        (tmp_path / "mine.yml").write_text("kind: local\nworkers: 1\nmemory: 1GiB\n")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [*COMMAND, str(tmp_path / "mine.yml"), *words]
        if background:
            # A shell has what it starts with & ignore SIGINT.
            command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
        process = subprocess.Popen(command, start_new_session=True, env=environment, **pipes)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_its_addresses_are_printed_and_others_compute_there(started, capsys):
    process = started("--json")
    lines = [process.stdout.readline() for _ in range(5)]
    said = json.loads("".join(lines))
    assert said["kind"] == "local"
    assert said["scheduler"].startswith("tcp://127.0.0.1:")
    assert said["dashboard"].startswith("http://127.0.0.1:")
    file = Path(process.args[4]).with_name("there.yml")
    file.write_text(f"kind: address\naddress: {said['scheduler']}\n")
    assert main(["cluster", str(file)]) == 0
    assert f"scheduler: {said['scheduler']}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "everybody", "background"),
    [(signal.SIGINT, True, False), (signal.SIGTERM, False, False), (signal.SIGINT, False, True)],
    ids=["Ctrl-C", "SIGTERM", "background"],
)
def test_an_interruption_ends_all_of_it_without_a_word_too_much(started, number, everybody, background):
    process = started(background=background)
    assert process.stdout.readline().startswith("scheduler: tcp://127.0.0.1:")
    assert process.stdout.readline().startswith("dashboard: http://127.0.0.1:")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    # A terminal sends Ctrl-C to the workers as well.
    (os.killpg if everybody else os.kill)(process.pid, number)
    assert process.wait(timeout=60) == 130
    said = process.stderr.read().splitlines()
    assert [line for line in said if not line.startswith("use it with --cluster")] == ["the cluster is ended"]
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ("kind: local\nworkerz: 2\n", [], "mine.yml: workerz: unknown key; did you mean 'workers'?"),
        ("kind: local\n", ["--memory", "much"], "--memory expects a size"),
        ("kind: local\n", ["--memory", "1MiB"], "--memory expects at least 640MiB"),
        ("kind: address\naddress: tcp://127.0.0.1:9\n", [], "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(tmp_path, monkeypatch, capsys, text, words, why):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fidopt.cluster.connection.ANSWER_WITHIN", "1s")
    Path("mine.yml").write_text(text)
    assert main(["cluster", "mine.yml", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert why in err
    assert err.count("\n") == 1
