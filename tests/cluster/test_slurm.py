"""SLURM's jobs give what this process's threads give: a real slurmctld, slurmd and munged on loopback."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fidopt.cli import main
from fidopt.cluster import deployment, run
from fidopt.errors import UsageError

pytestmark = pytest.mark.slow

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
PROGRAMS = {name: shutil.which(name, path=SBIN) for name in ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")}
#: One node that takes four jobs of one core, whatever this machine has; no cgroups, which need an init system.
CONFIG = """
ClusterName=fidopt
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=8192 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm():
    """A SLURM of the current user's, whose configuration is the environment's for as long as the module runs."""
    missing = [name for name, path in PROGRAMS.items() if path is None]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)}: apt-get install slurm-wlm munge")
    with ExitStack() as stack:
        # Not pytest's folder: munged wants every user to reach its socket.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fidopt-slurm-")))
        folder.chmod(0o755)
        _start(folder, stack)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
            _wait_for_node(folder)
            yield folder


def _start(folder, stack):
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o400)
    facts = {"folder": folder, "host": socket.gethostname().partition(".")[0], "user": getpass.getuser()}
    conf = folder / "slurm.conf"
    conf.write_text(CONFIG.format(**facts, controller=_free_port(), node=_free_port()))
    munge = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed", "key-file": "key"}
    options = [f"--{option}={folder}/munge.{ending}" for option, ending in munge.items()]
    stack.enter_context(_running([PROGRAMS["munged"], "--foreground", "--force", *options], folder))
    _wait(lambda: (folder / "munge.socket").exists(), folder)
    stack.enter_context(_running([PROGRAMS["slurmctld"], "-D", "-f", str(conf)], folder))
    stack.enter_context(_running([PROGRAMS["slurmd"], "-D", "-f", str(conf)], folder))


@contextmanager
def _running(command, folder):
    with (folder / f"{Path(command[0]).name}.out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_node(folder):
    def idle():
        answer = subprocess.run([PROGRAMS["sinfo"], "-h", "-o", "%T"], capture_output=True, text=True, check=False)
        return answer.stdout.strip() == "idle"

    _wait(idle, folder)


def _wait(ready, folder):
    end = time.monotonic() + 60
    while not ready():
        if time.monotonic() > end:
            logs = {
                path.name: path.read_text()[-400:] for path in sorted([*folder.glob("*.out"), *folder.glob("*.log")])
            }
            pytest.fail(f"SLURM does not start: {logs}")
        time.sleep(0.1)


def _file(tmp_path, more=""):
    lines = f"workers: 2\ncores: 1\nmemory: 1GiB\nwalltime: 00:10:00\ninterface: lo\nlogs: {tmp_path}/logs\n{more}"
    (tmp_path / "slurm.yml").write_text(f"kind: slurm\n{lines}")
    return str(tmp_path / "slurm.yml")


def _jobs():
    return subprocess.run(["squeue", "-h", "-o", "%T %C %m"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_jobs_give_the_same_store(slurm, work, certificates, tmp_path, encrypted):
    file = _file(tmp_path, f"tls: {certificates}\n" if encrypted else "")
    assert main([*work.words(f"slurm-{encrypted}.ome.zarr"), "--cluster", file]) == 0
    assert work.digest(f"slurm-{encrypted}.ome.zarr") == work.expected


def test_a_job_asks_for_what_its_worker_may_use_and_is_gone_at_the_end(slurm, tmp_path):
    said = []
    with run(deployment(_file(tmp_path)), say=said.append) as running:
        running.client.wait_for_workers(2, timeout=60)
        workers = running.client.scheduler_info()["workers"].values()
        assert {(worker["nthreads"], worker["memory_limit"]) for worker in workers} == {(1, 1 << 30)}
        # 1 GiB, and a quarter for the process that watches the worker.
        assert [job for job in _jobs() if job] == ["RUNNING 1 1280M"] * 2
    _wait(lambda: not any(_jobs()), slurm)
    assert list((tmp_path / "logs").iterdir())
    assert "can run code as you; `tls:`" in said[0]
    assert said[1].startswith("2 jobs are submitted: work begins with the first that runs")


def test_a_job_that_is_refused_is_one_line(slurm, tmp_path):
    said = "SLURM refuses the jobs: .*Requested node configuration is not available"
    file = _file(tmp_path)
    Path(file).write_text(Path(file).read_text().replace("memory: 1GiB", "memory: 1TiB"))
    with pytest.raises(UsageError, match=said) as caught, run(deployment(file)):
        pass
    assert "\n" not in str(caught.value)


def test_a_slurm_that_does_not_answer_is_one_line(slurm, tmp_path, monkeypatch):
    text = (
        (slurm / "slurm.conf")
        .read_text()
        .replace("SlurmctldPort=", f"MessageTimeout=2\nSlurmctldPort={_free_port()}\n#")
    )
    (tmp_path / "slurm.conf").write_text(text)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    said = "SLURM does not answer: .*; `sinfo` must work here first"
    with pytest.raises(UsageError, match=said) as caught, run(deployment(_file(tmp_path))):
        pass
    assert "\n" not in str(caught.value)
