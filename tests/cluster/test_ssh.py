"""Two machines reached by SSH give what this process's threads give; the machines are this one's loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from fidopt.cli import main
from fidopt.cluster import deployment, run
from fidopt.errors import UsageError

pytestmark = pytest.mark.slow

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CONFIG = """
Port {port}
ListenAddress 127.0.0.1
ListenAddress ::1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
"""


def free_port():
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real sshd of the current user's on loopback; its keys and the deploy file's lines that reach it."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        pytest.skip("there is no sshd: apt-get install openssh-server")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder, port = tmp_path_factory.mktemp("ssh"), free_port()
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    public = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text("".join(f"[{host}]:{port} {public}" for host in ("127.0.0.1", "localhost")))
    (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder))
    log = (folder / "sshd.log").open("w")
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    _until_listening(port, process, folder / "sshd.log")
    lines = {"user": getpass.getuser(), "port": port, "key": folder / "user_key", "known_hosts": folder / "known_hosts"}
    yield "".join(f"{key}: {value}\n" for key, value in lines.items())
    process.terminate()
    process.wait(timeout=10)
    log.close()


def _until_listening(port, process, log):
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"sshd does not listen: {log.read_text()[-500:]}")


HOSTS = "kind: ssh\nhosts: [127.0.0.1, localhost]\ncores: 1\nmemory: 1GiB\n"


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_two_hosts_give_the_same_store(server, work, certificates, tmp_path, encrypted):
    file = tmp_path / "ssh.yml"
    file.write_text(HOSTS + server + (f"tls: {certificates}\n" if encrypted else ""))
    with run(deployment(str(file))) as running:
        running.client.wait_for_workers(2)
        workers = running.client.scheduler_info()["workers"]
        assert len(workers) == 2
        assert {worker["memory_limit"] for worker in workers.values()} == {1 << 30}
        assert running.address.startswith("tls://" if encrypted else "tcp://")
    assert main([*work.words(f"ssh-{encrypted}.ome.zarr"), "--cluster", str(file)]) == 0
    assert work.digest(f"ssh-{encrypted}.ome.zarr") == work.expected


def test_nothing_is_left_running_on_the_hosts(server, tmp_path):
    file = tmp_path / "ssh.yml"
    file.write_text(HOSTS + server)
    with run(deployment(str(file))) as running:
        started = {int(pid) for nanny in (False, True) for pid in running.client.run(os.getpid, nanny=nanny).values()}
        started.add(running.client.run_on_scheduler(os.getpid))
    end = time.monotonic() + 20
    while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in started):
        time.sleep(0.1)
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user_key": "host_key"}, "must work from here without a password"),
        ({"/known_hosts": "/host_key.pub"}, "must work from here without a password"),
        ({"memory": "python: /nowhere/python\nmemory"}, "`/nowhere/python` there must be an interpreter"),
    ],
    ids=["key", "host", "interpreter"],
)
def test_a_host_that_refuses_is_one_line(server, tmp_path, change, said):
    text = HOSTS + server
    for old, new in change.items():
        text = text.replace(old, new)
    (tmp_path / "ssh.yml").write_text(text)
    with pytest.raises(UsageError, match=said) as caught, run(deployment(str(tmp_path / "ssh.yml"))):
        pass
    assert "\n" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
