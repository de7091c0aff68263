"""Where a command computes: what its words mean, what is said of the dashboard, what is refused."""

from __future__ import annotations

import logging
import socket
import threading
import time

import dask
import pytest
from distributed import LocalCluster

from blocks.execute.running import run_shards
from fidopt.cluster import computing, connect, deployment
from fidopt.cluster.starting import require, start
from fidopt.descriptors.deployment import Address, Kubernetes, Local, Slurm, Ssh
from fidopt.errors import MissingError, UsageError


class SlowToGo:
    """A cluster whose workers are slow to go, as on a busy machine."""

    scheduler_address = "tcp://127.0.0.1:1"

    def __init__(self, **_options):
        pass

    def __enter__(self):
        logging.getLogger("distributed.nanny").warning("worker restarted")
        return self

    def __exit__(self, *_error):
        logging.getLogger("distributed.nanny").warning("still alive")


class Client:
    dashboard_link = "http://127.0.0.1:8787/status"

    def __init__(self, *_cluster, **_options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass


@pytest.fixture
def busy(monkeypatch):
    monkeypatch.setattr("distributed.LocalCluster", SlowToGo)
    monkeypatch.setattr("distributed.Client", Client)


def test_a_warning_of_work_that_is_done_is_not_printed(busy, caplog):
    logger = logging.getLogger("distributed.nanny")
    logger.addHandler(caplog.handler)
    before, said = logger.level, []
    try:
        with connect(dashboard=True, say=said.append):
            pass
    finally:
        logger.removeHandler(caplog.handler)
    messages = set(caplog.messages)
    assert said == ["dashboard: http://127.0.0.1:8787/status"]
    assert "worker restarted" in messages
    assert "still alive" not in messages
    assert logger.level == before


def test_without_options_there_is_no_cluster():
    with connect() as client:
        assert client is None


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("local", Local),
        ("ssh.yml", Ssh),
        ("deploy/slurm.yml", Slurm),
        ("kubernetes", Kubernetes),
        ("tcp://127.0.0.1:1", Address),
    ],
)
def test_a_word_is_an_address_or_a_deploy_file_or_its_name(word, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert type(deployment(word)) is kind


def test_a_file_that_is_there_goes_before_one_that_comes_along(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "local").write_text("kind: local\nworkers: 7\n")
    mine = deployment("local")
    assert isinstance(mine, Local)
    assert mine.workers == 7


def test_a_word_that_is_neither_lists_the_names():
    with pytest.raises(UsageError, match=r"\(kubernetes, local, slurm, ssh\); got 'nowhere'"):
        deployment("nowhere")


def test_memory_leaves_this_process_the_threads_that_it_has_room_for(monkeypatch):
    monkeypatch.setattr("dask.system.CPU_COUNT", 64)
    with computing(memory="1GiB") as place:
        threads = _threads_that_write()
        assert place.client is None
        assert threads == 5  # (1024 - 350) / 128
        assert threads * place.task_bytes <= (1024 - 350) << 20
    with computing() as place:
        assert place.task_bytes >= 128 << 20
    assert dask.config.get("num_workers", None) is None


def _threads_that_write():
    """Return how many threads were at work at a time, of twenty tasks that wait for one another a little."""
    at_work, most, lock = 0, 0, threading.Lock()

    def task(_index):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.02)
        with lock:
            at_work -= 1
        return 1

    run_shards(task, [(n,) for n in range(20)], total=20)
    return most


@pytest.mark.parametrize("memory", ["much", "0", "-1GiB", "", "639MiB"])
def test_memory_that_is_no_size_or_too_little_is_refused(memory):
    with pytest.raises(UsageError, match="--memory expects"), computing(memory=memory):
        pass


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    with pytest.raises(MissingError, match=r"a cluster needs no-such-thing: pip install 'fidopt\[cluster\]'"):
        require("no_such_thing", "a cluster")


@pytest.mark.parametrize(
    ("started", "module", "said"),
    [
        (Ssh(hosts=("a",), cores=1, memory="1GiB"), "asyncssh", "asyncssh"),
        (Slurm(workers=1, cores=1, memory="1GiB", walltime="01:00:00"), "dask_jobqueue", "dask-jobqueue"),
        (Kubernetes(image="i", workers=1, cores=1, memory="1GiB"), "dask_kubernetes", "dask-kubernetes"),
    ],
)
def test_each_kind_says_which_package_it_needs(started, module, said, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else name)
    with pytest.raises(MissingError, match=f"needs {said}: pip install"), start(started):
        pass


def test_without_sbatch_there_is_no_slurm(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setenv("PATH", "")
    slurm = Slurm(workers=1, cores=1, memory="1GiB", walltime="01:00:00")
    with pytest.raises(MissingError, match="there is no sbatch here"), start(slurm):
        pass


def test_without_a_kubeconfig_there_is_no_kubernetes(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    kubernetes = Kubernetes(image="i", workers=1, cores=1, memory="1GiB")
    with pytest.raises(MissingError, match=r"there is no kubeconfig at .*none"), start(kubernetes):
        pass


def test_the_description_for_kubernetes_has_the_limits_and_the_volume():
    pytest.importorskip("dask_kubernetes", reason="pip install 'fidopt[kubernetes]'")
    from fidopt.cluster.budget import plan
    from fidopt.cluster.kubernetes import spec

    wanted = Kubernetes(image="i", workers=3, cores=4, memory="2GiB", claim="stores", mount="/images")
    worker = spec(wanted, plan(wanted))["spec"]["worker"]
    container = worker["spec"]["containers"][0]
    assert worker["replicas"] == 3
    assert ["--nthreads", "4", "--memory-limit", str(2 << 30)] == container["args"][2:6]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": str((2 << 30) + (512 << 20))}
    assert container["volumeMounts"] == [{"name": "stores", "mountPath": "/images"}]
    assert worker["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "stores"}


def test_what_answers_and_is_no_scheduler_is_named(tmp_path):
    with LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        (worker,) = cluster.workers.values()
        with (
            pytest.raises(UsageError, match=r"no Dask scheduler answers at .*: a worker is there"),
            connect(worker.address),
        ):
            pass


def test_nothing_goes_on_in_the_background_after_an_address_that_does_not_answer(monkeypatch):
    monkeypatch.setattr("fidopt.cluster.connection.ANSWER_WITHIN", "1s")
    made = []
    monkeypatch.setattr("distributed.Client", lambda *words, **_: made.append(words))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        for address in ("tcp://127.0.0.1:9", "http://127.0.0.1:9", f"tcp://127.0.0.1:{mute.getsockname()[1]}"):
            with pytest.raises(UsageError, match=f"no Dask scheduler answers at {address}: .+"), connect(address):
                pass
    assert made == []


def test_a_cluster_without_workers_is_waited_for_and_that_is_said(monkeypatch):
    monkeypatch.setattr("fidopt.cluster.budget._WORKERS_WITHIN", 0.2)
    said = []
    with LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as cluster:

        def say(message):
            said.append(message)
            cluster.scale(1)

        with computing(cluster.scheduler_address, say=say) as place:
            assert place.task_bytes >= 128 << 20
    assert said == ["the cluster has no worker yet; work begins with the first that comes, Ctrl-C ends the waiting"]
