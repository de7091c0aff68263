from __future__ import annotations

import re
from pathlib import Path

import pytest

from fidopt.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
TOP = ("blocks", "fidopt", "datasets", "methods", "evaluation", "benchmarks", "tests", "docs", ".ci", "deploy")


def _code(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"`([^`\n]+)`", text) + [line.strip() for line in re.findall(r"^ {4}.*$", text, flags=re.M)]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_a_page_names_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(rf"(?<![\w/.<-])(?:{'|'.join(map(re.escape, TOP))})/[\w./-]*", text))
    named |= set(re.findall(r"\]\(([\w./-]+)\)", text))
    assert named
    named = {path for path in named if "NAME" not in path.split("/")}
    missing = sorted(path for path in named if not (ROOT / path.rstrip("./")).exists())
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_a_page_names_exists(page):
    called = {match for code in _code(page) for match in re.findall(r"\bfidopt ([a-z][a-z-]*)", code)}
    assert called <= set(COMMANDS)
    targets = {match for code in _code(page) for match in re.findall(r"^(?:\$ )?make ([a-z-]+)", code)}
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))


def test_every_function_the_architecture_walks_through_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:blocks|fidopt)(?:\.\w+)+)`", text))
    assert len(named) > 10
    missing = sorted(name for name in named if not _resolves(name))
    assert missing == []


def _resolves(name: str) -> bool:
    import importlib

    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False
