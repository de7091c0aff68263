"""Deploy files are read strictly, and all that is wrong with one is said at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fidopt.descriptors.deployment import Local, Slurm, Ssh, read_deployment, size_bytes
from fidopt.errors import DescriptorError

SHIPPED = sorted((Path(__file__).parents[2] / "deploy").glob("*.yml"))


@pytest.fixture
def problems(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text):
        Path("mine.yml").write_text(text)
        with pytest.raises(DescriptorError) as caught:
            read_deployment(Path("mine.yml"))
        return caught.value.problems

    return read


@pytest.mark.parametrize("path", [path for path in SHIPPED if path.name != "compose.yml"], ids=lambda path: path.stem)
def test_a_file_that_comes_along_is_sound_and_of_the_kind_it_is_named_for(path):
    read = read_deployment(path)
    assert read.kind == path.stem
    assert read.dashboard == "127.0.0.1:0" or read.dashboard == "127.0.0.1:8787"


def test_what_is_left_out_is_loopback_and_unencrypted(tmp_path):
    (tmp_path / "a.yml").write_text("kind: local\n")
    read = read_deployment(tmp_path / "a.yml")
    assert read == Local()
    assert (read.dashboard, read.tls, read.workers) == ("127.0.0.1:0", None, None)


def test_every_problem_of_a_file_is_said_with_its_key(problems):
    found = problems(
        "kind: ssh\nworkers: 1\nhosts: []\ncores: two\nmemory: 9\nports: 22\nworkers: 0\ndashboard: here\n"
    )
    assert found == (
        "mine.yml: workers: is given twice, again on line 7; keep one",
        "mine.yml: workers: must be positive, got 0",
        "mine.yml: cores: must be a whole number, got \"two\"",
        "mine.yml: memory: must be a text, got 9",
        "mine.yml: dashboard: must be HOST:PORT such as 127.0.0.1:8787, got \"here\"",
        "mine.yml: hosts: must not be empty, got []",
        "mine.yml: ports: unknown key; did you mean 'port'?",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("workers: 2\n", "kind: is missing; must be one of local, ssh, slurm, kubernetes, address"),
        ("kind: pbs\n", "kind: is 'pbs'; must be one of"),
        ("- local\n", "must be a mapping of keys to values, got list"),
        ("", "must be a mapping of keys to values, got nothing"),
        ("kind: local\nmemory: &a 2GiB\n", "line 2 has an anchor, an alias or a tag"),
        ("kind: local\nmemory: !!python/name:os.system\n", "line 2 has an anchor, an alias or a tag"),
        ("kind: local\n1: 2\n", "line 2 has a key that is not a text"),
        ("kind: [local\n", "is not YAML"),
        ("kind: local\nmemory: 2 gigs\n", "memory: must be a size such as 2GiB or 500MB, got"),
        ("kind: local\nmemory: 300MiB\n", "memory: must be at least 640MiB, got '300MiB'"),
        ("kind: local\ntls: keys\n", "tls.ca: there is no file keys/ca.pem"),
        ("kind: local\ntls: {ca: a, cert: b}\n", "tls.key: is missing"),
        ("kind: address\naddress: http://x\n", "address: must be a scheduler's address such as tcp://"),
        ("kind: address\naddress: tls://a:1\n", "tls: goes with an address of tls://HOST:PORT"),
        ("kind: slurm\nworkers: 1\ncores: 1\nmemory: 1GiB\nwalltime: 1h\n", "walltime: must be a time such as"),
        ("kind: ssh\nhosts: [a]\ncores: 1\nmemory: 1GiB\nkey: gone\n", "key: there is no file gone"),
        (
            "kind: kubernetes\nimage: i\nworkers: 1\ncores: 1\nmemory: 1GiB\ntls: {ca: a, cert: b, key: c}\n",
            "tls: is not",
        ),
    ],
)
def test_what_is_wrong_is_named(problems, text, problem):
    assert any(f"mine.yml: {problem}" in found or problem in found for found in problems(text))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.yml").write_bytes(b"\xff\xfe")
    with pytest.raises(DescriptorError, match="cannot be read as UTF-8"):
        read_deployment(tmp_path / "a.yml")


def test_a_time_and_a_country_are_texts(tmp_path):
    (tmp_path / "a.yml").write_text(
        "kind: slurm\nworkers: 1\ncores: 1\nmemory: 1GiB\nwalltime: 01:30:00\naccount: no\ntask: 1 GiB\n"
    )
    read = read_deployment(tmp_path / "a.yml")
    assert isinstance(read, Slurm)
    assert (read.walltime, read.account, read.task) == ("01:30:00", "no", "1 GiB")


def test_a_folder_of_certificates_is_its_three_files(tmp_path):
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text("")
    (tmp_path / "a.yml").write_text(f"kind: ssh\nhosts: [a]\ncores: 1\nmemory: 1GiB\ntls: {tmp_path}\n")
    read = read_deployment(tmp_path / "a.yml")
    assert isinstance(read, Ssh)
    assert read.tls is not None
    assert read.tls.key == f"{tmp_path}/key.pem"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 << 30),
        ("500 MB", 500_000_000),
        ("1.5gib", 3 << 29),
        ("7b", 7),
        ("2", None),
        ("GiB", None),
        ("-1GiB", None),
    ],
)
def test_a_size_is_a_number_and_its_unit(text, size):
    assert size_bytes(text) == size
