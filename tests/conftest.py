"""Fixtures for tests that read the real data kept beside the checkout."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("FIDOPT_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def _lookup(folder: str) -> Callable[[str], Path]:
    def find(name: str) -> Path:
        path = SHARED / folder / name
        if not path.exists():
            pytest.skip(f"{folder}/{name} is not beside this checkout (FIDOPT_TEST_SHARED names its parent)")
        return path

    return find


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Return a function from a dataset's name to its folder of real files, skipping where it is absent."""
    return _lookup("data")


@pytest.fixture(scope="session")
def shared_case() -> Callable[[str], Path]:
    """Return a function from a file's name to a small input that must be answered rightly, skipping where absent."""
    return _lookup("cases")
