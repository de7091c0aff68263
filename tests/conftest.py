"""Fixtures for tests that read the real data kept beside the checkout, or a store from a server."""

from __future__ import annotations

import locale
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.remote import Objects, serving

SHARED = Path(os.environ.get("FIDOPT_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared"))


#: What a test starts with: one that writes DICOM would leave the whole process, and its children's text, in ASCII.
LOCALE = locale.setlocale(locale.LC_ALL)


@pytest.fixture(autouse=True)
def own_locale() -> Iterator[None]:
    """Give the process's locale back after every test."""
    yield
    locale.setlocale(locale.LC_ALL, LOCALE)


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


@pytest.fixture(scope="session")
def servers() -> Iterator[tuple[Objects, Objects]]:
    """Return an S3 server and one over http; connections last as long as they do."""
    with serving(Objects(), bucket=True) as bucket, serving(Objects(), bucket=False) as web:
        yield bucket, web


@pytest.fixture
def bucket(servers: tuple[Objects, Objects], monkeypatch: pytest.MonkeyPatch) -> Objects:
    """Return an empty S3 server, which the environment names as everybody's."""
    servers[0].begin()
    for key, value in servers[0].environment.items():
        monkeypatch.setenv(key, value)
    return servers[0]


@pytest.fixture
def web(servers: tuple[Objects, Objects], tmp_path: Path) -> Objects:
    """Return a server of the test's folder over http."""
    servers[1].begin(tmp_path)
    return servers[1]
