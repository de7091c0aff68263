"""What deploy/README.md has a person type is what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from fidopt.cli import COMMANDS, main
from fidopt.descriptors.deployment import KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXTS = [(DEPLOY / name).read_text() for name in ("README.md", "compose.yml")]
COMMAND_LINES = sorted({line for text in TEXTS for line in re.findall(r"^ {4}(fidopt .*)$", text, flags=re.M)})


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_and_its_options_exist(line, capsys):
    _, name, *words = shlex.split(line)
    assert name in COMMANDS
    main([name, "--help"])
    page = capsys.readouterr().out
    options = [word for word in words if word.startswith("--")]
    assert [option for option in options if not re.search(rf"{option}\b", page)] == []


def test_the_page_shows_all_the_image_commands():
    shown = {line.split()[1] for line in COMMAND_LINES}
    assert {"convert", "info", "pyramid", "warp", "cluster"} <= shown


def test_every_kind_of_cluster_and_every_common_key_is_explained():
    page = TEXTS[0]
    assert [kind for kind in KINDS if f"`{kind}.yml`" not in page and f"kind: {kind}" not in page] == []
    common = set.intersection(*(set(model.model_fields) for name, model in KINDS.items() if name != "address"))
    assert sorted(key for key in common - {"kind"} if f"| `{key}` |" not in page) == []


def test_what_was_not_run_says_so():
    for name in ("README.md", "Dockerfile", "compose.yml", "kubernetes.yml"):
        assert re.search(r"not been run|Nobody has (run|built)", (DEPLOY / name).read_text())


def test_containers_listen_on_this_machine_s_loopback_alone():
    services = yaml.safe_load(TEXTS[1])["services"]
    assert set(services) == {"scheduler", "worker", "job"}
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8787:8787"]
